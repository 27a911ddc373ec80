/** Repositories over the network, on real servers: backed up to, copied between, restored from; and what a wrong credential does. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type RcloneServer, serveFolder } from '../../support/servers/storage/rclone.ts';
import { openS3, type S3Server } from '../../support/servers/storage/s3.ts';
import { openSshd, type SshServer } from '../../support/servers/storage/sshd.ts';
import { until } from '../../support/until.ts';
import { type BackupRig, createBackupRig } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

/** Does something with all of them at once: each waits for a server most of the time. */
async function forEach<T>(
    all: Readonly<Record<string, T>>,
    work: (name: string, value: T) => Promise<void>
): Promise<void> {
    await Promise.all(Object.entries(all).map(([name, value]) => work(name, value)));
}

/** How many bytes of the client pass before it is hindered: more than a request that asks, less than one that brings a file. */
const hinderedAfter = 50_000;

/** The way to a server, on which what brings files is hindered: its connection is cut three times, or each goes on to nowhere. */
class Way {
    hindrance: 'cut' | 'stall' | null = null;
    hindered = 0;
    readonly #sockets = new Set<Socket>();
    readonly #server: Server;

    private constructor(port: number) {
        this.#server = createServer((client) => {
            const server = connect(port, '127.0.0.1');
            let passed = 0;
            let isStalled = false;
            client.on('data', (chunk) => {
                passed += chunk.length;
                if (passed > hinderedAfter && this.hindrance !== null && !isStalled) {
                    this.hindered += 1;
                    isStalled = this.hindrance === 'stall';
                    if (this.hindrance === 'cut') {
                        this.hindrance = this.hindered < 3 ? 'cut' : null;
                        client.resetAndDestroy();
                        return;
                    }
                }
                if (!isStalled) {
                    server.write(chunk);
                }
            });
            server.pipe(client);
            for (const [one, other] of [
                [client, server],
                [server, client]
            ] as const) {
                this.#sockets.add(one);
                one.once('close', () => {
                    this.#sockets.delete(one);
                    other.destroy();
                });
                one.on('error', () => other.destroy());
            }
        });
    }

    static async to(port: number): Promise<Way> {
        const way = new Way(port);
        way.#server.listen(0, '127.0.0.1');
        await once(way.#server, 'listening');
        return way;
    }

    get port(): number {
        return (this.#server.address() as AddressInfo).port;
    }

    async close(): Promise<void> {
        this.#sockets.forEach((socket) => socket.destroy());
        this.#server.close();
        await once(this.#server, 'close');
    }
}

describe('repositories of @portico/plugin-backup', { timeout: 180_000 }, () => {
    let rig: BackupRig;
    let ssh: SshServer;
    let rest: RcloneServer;
    let dav: RcloneServer;
    let s3: S3Server;
    /** The fields of each type, and the field that makes it wrong with the code that this gives. */
    let targets: Record<string, { readonly good: object; readonly bad: object; readonly code: number }>;

    before(async () => {
        rig = await createBackupRig();
        const folder = (name: string): string => {
            mkdirSync(join(rig.root, name));
            return join(rig.root, name);
        };
        [ssh, rest, dav, s3] = await Promise.all([
            openSshd(folder('ssh')),
            serveFolder('restic', folder('rest')),
            serveFolder('webdav', folder('dav')),
            openS3('backups')
        ]);
        writeFileSync(join(folder('site'), 'a.txt'), 'the first text');
        const login = (server: RcloneServer) => ({
            username: server.username,
            loginPassword: server.password
        });
        targets = {
            sftp: {
                good: {
                    host: '127.0.0.1',
                    port: ssh.port,
                    username: ssh.username,
                    privateKey: ssh.privateKey,
                    hostKey: ssh.hostKey,
                    path: join(rig.root, 'sftp')
                },
                bad: { hostKey: `ssh-ed25519 ${ssh.hostKey.split(' ')[1]?.slice(0, -6)}AAAAAA` },
                code: 42253
            },
            s3: {
                good: {
                    endpoint: s3.endpoint,
                    bucket: 'backups',
                    prefix: 'panel/one',
                    region: 'us-east-1',
                    accessKeyId: s3.accessKeyId,
                    secretAccessKey: s3.secretAccessKey,
                    pathStyle: true,
                    ca: s3.ca
                },
                bad: { secretAccessKey: 'another secret' },
                code: 42252
            },
            rest: {
                good: { url: `${rest.url}one/`, ...login(rest) },
                bad: { loginPassword: 'wrong' },
                code: 42252
            },
            webdav: { good: { url: dav.url, ...login(dav) }, bad: { loginPassword: 'wrong' }, code: 42252 },
            rclone: {
                good: {
                    remote: {
                        type: 'webdav',
                        options: { url: dav.url, vendor: 'other', user: dav.username, pass: dav.password }
                    },
                    path: 'below'
                },
                bad: { remote: { type: 'local', options: {} } },
                code: 40001
            }
        };
    });

    after(async () => {
        await rig.close();
        await Promise.all([ssh.close(), rest.close(), dav.close(), s3.close()]);
    });

    const ids: Record<string, number> = {};

    it('are made over SFTP, S3, REST, WebDAV and by rclone, and refused with a wrong credential', async () => {
        await forEach(targets, async (type, { good, bad, code }) => {
            const body = { name: type, type, password: 'correct horse', ...good };
            const refused = await rig.ask('POST', '/repositories', { ...body, ...bad });
            const error =
                refused.status === 202
                    ? (await rig.host.tasks.wait(refused.data.id as number)).error
                    : { code: refused.code };
            expect(error, type).to.include({ code });
            ids[type] = await rig.repository(body);
        });
        const { text } = await rig.ask('GET', '/repositories');
        const secrets = [s3.secretAccessKey, rest.password, dav.password, 'correct horse', 'PRIVATE KEY'];
        expect(
            secrets.filter((secret) => text.includes(secret) || text.includes(encodeURIComponent(secret)))
        ).to.equal([]);
        expect((await rig.made('GET', `/repositories/${ids['s3']}`)).secretsSet).to.equal([
            'password',
            'secretAccessKey'
        ]);
    });

    it('take a run with its copies, and give a file back from each', async () => {
        const { id } = await rig.made('POST', '/plans', {
            name: 'everywhere',
            repositoryId: ids['rest'],
            copyTo: [ids['sftp'], ids['s3'], ids['webdav'], ids['rclone']],
            sources: [{ type: 'folder', path: join(rig.root, 'site') }],
            keep: { last: 1 }
        });
        const run = await rig.run(id);
        expect([run.state, run.message]).to.equal(['succeeded', null]);
        await forEach(ids, async (type, repository) => {
            const [snapshot] = await rig.made('GET', `/repositories/${repository}/snapshots`);
            expect(snapshot.planId, type).to.equal(id);
            const folder = join(rig.root, `back-${type}`);
            const task = await rig.ended(
                'POST',
                `/repositories/${repository}/snapshots/${snapshot.id}/restore`,
                {
                    items: [{ path: join(rig.root, 'site') }],
                    folder
                }
            );
            expect(task.state, `${type}: ${JSON.stringify(task.error)}`).to.equal('succeeded');
            expect(readFileSync(join(folder, rig.root, 'site', 'a.txt'), 'utf8')).to.equal('the first text');
        });
    });

    it('copy between two of a kind that have credentials of their own', async () => {
        const others = { sftp: { path: join(rig.root, 'sftp2') }, s3: { prefix: 'panel/two' } };
        await forEach(others, async (type, change) => {
            const { good } = targets[type] as { good: object };
            const to = await rig.repository({ type, ...good, ...change, password: 'another horse' });
            const task = await rig.ended('POST', `/repositories/${ids[type]}/copy`, { to });
            expect(task.result, `${type}: ${JSON.stringify(task.error)}`).to.equal({ copied: 1 });
            expect((await rig.made('GET', `/repositories/${to}/snapshots`)).length).to.equal(1);
        });
    });

    it('are whole after a target that cuts connections, and let go of one that stalls', async () => {
        const [cutting, stalling] = await Promise.all([Way.to(rest.port), Way.to(rest.port)]);
        const planTo = async (name: string, { port }: Way) => {
            const repositoryId = await rig.repository({
                ...{ name, type: 'rest', url: `http://127.0.0.1:${port}/${name}/` },
                ...{ username: rest.username, loginPassword: rest.password }
            });
            const folder = join(rig.root, `of-${name}`);
            mkdirSync(folder);
            writeFileSync(join(folder, 'data'), randomBytes(1_000_000));
            const sources = [{ type: 'folder', path: folder }];
            const { id } = await rig.made('POST', '/plans', { name, repositoryId, sources, retries: 0 });
            return { repositoryId, planId: id as number };
        };
        const isWhole = async (repositoryId: number): Promise<void> => {
            const check = await rig.ended('POST', `/repositories/${repositoryId}/check`, {
                readPercent: 100
            });
            expect([check.state, check.error]).to.equal(['succeeded', null]);
        };
        try {
            await Promise.all([
                (async () => {
                    const { repositoryId, planId } = await planTo('cut', cutting);
                    cutting.hindrance = 'cut';
                    const run = await rig.run(planId);
                    expect([run.state, run.message]).to.equal(['succeeded', null]);
                    expect(cutting.hindered).to.be.above(1);
                    await isWhole(repositoryId);
                })(),
                (async () => {
                    const { repositoryId, planId } = await planTo('stalled', stalling);
                    stalling.hindrance = 'stall';
                    const { id } = await rig.made('POST', `/plans/${planId}/run`, {});
                    await until(() => stalling.hindered > 0, 'a connection that stalls');
                    await rig.made('DELETE', `/runs/${id}`);
                    const read = () => rig.made('GET', `/runs/${id}`);
                    await until(async () => (await read()).finishedAt !== null, 'the end of the run');
                    expect((await read()).state).to.equal('cancelled');
                    stalling.hindrance = null;
                    const run = await rig.run(planId);
                    expect([run.state, run.message]).to.equal(['succeeded', null]);
                    // A restic that did not end in time leaves its lock, which the check removes.
                    await isWhole(repositoryId);
                    expect(readdirSync(join(rig.root, 'rest/stalled/locks'))).to.equal([]);
                })()
            ]);
        } finally {
            await Promise.all([cutting.close(), stalling.close()]);
        }
    });

    it('say that a target does not answer, and keep what was there', async () => {
        await rest.close();
        const task = await rig.ended('POST', `/repositories/${ids['rest']}/check`, {});
        expect(task.error).to.include({ code: 50352 });
        expect(await rig.made('GET', `/repositories/${ids['rest']}`)).to.include({
            state: 'unreachable',
            snapshots: 1
        });
        const tested = await rig.ended('POST', '/repositories/test', {
            name: 'x',
            type: 'rest',
            ...targets['rest']?.good
        });
        expect(tested.result).to.include({ reachable: false, opens: false });
    });

    it('leave no secret in arguments, environments, logs and audit', async () => {
        const secrets = [
            s3.secretAccessKey,
            rest.password,
            dav.password,
            'correct horse',
            'another horse',
            'PRIVATE KEY'
        ];
        const seen = [
            JSON.stringify(rig.host.log),
            JSON.stringify(rig.host.audit),
            JSON.stringify(rig.host.programs.calls.map(({ args, options }) => [args, options.env]))
        ];
        expect(
            secrets.filter((secret) =>
                seen.some((text) => text.includes(secret) || text.includes(encodeURIComponent(secret)))
            )
        ).to.equal([]);
    });
});
