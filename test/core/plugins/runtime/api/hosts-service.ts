import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../../../../support/panel/panel.ts';
import { selfSigned } from '../../../../support/servers/self-signed.ts';
import { startUpstream, type TestUpstream } from '../../../../support/servers/upstream.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const puppets = realpathSync(join(import.meta.dirname, '../../../../fixtures/puppets'));

type Done = {
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers of any shape, whose fields the tests assert
    readonly answer?: any;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers of any shape, whose fields the tests assert
    readonly failure?: { readonly code: number; readonly reason: string; readonly data: any };
};

let panel: TestPanel;
let upstream: TestUpstream;
let slow: TestUpstream;
let folder: string;
let operator: string;
let free = Promise.withResolvers<void>();
let made = 0;

const as = async (
    plugin: string,
    door: string,
    input: object = {},
    options: { token?: string; actor?: boolean } = {}
): Promise<Done> => {
    const { status, data, text } = await panel.client.post(
        `/api/plugins/puppet-${plugin}/do`,
        { door, input, as: options.actor ?? false },
        options.token === undefined ? {} : { token: options.token }
    );
    expect(status, text).to.equal(200);
    return data as Done;
};
const name = (): string => `h${(made += 1)}.test`;
const count = async (): Promise<number> => (await panel.client.get('/api/hosts')).data.length as number;
const visit = (host: string, path = '/'): Promise<{ readonly status: number; readonly text: string }> =>
    new Promise((resolve, reject) => {
        request(
            { host: '127.0.0.1', port: panel.httpPort, path, agent: false, headers: { host } },
            (answer) => {
                let text = '';
                answer
                    .setEncoding('utf8')
                    .on('data', (chunk: string) => {
                        text += chunk;
                    })
                    .on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
            }
        )
            .on('error', reject)
            .end();
    });
before({ timeout: 60_000 }, async () => {
    folder = mkdtempSync(join(tmpdir(), 'portico-serving-'));
    upstream = await startUpstream('up');
    slow = await startUpstream('slow', (asked, answer) => {
        if (asked.url !== '/slow') {
            return false;
        }
        void free.promise.then(() => answer.end('late'));
        return true;
    });
    panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: puppets } });
    await panel.panel.settled();
    operator = await panel.tokenOf('operator');
});

after({ timeout: 60_000 }, async () => {
    free.resolve();
    await panel.close();
    await upstream.close();
    await slow.close();
    rmSync(folder, { recursive: true });
});

describe('ctx.hosts', () => {
    it("makes a host that serves, is the plugin's own, is on record, and stays when the plugin goes", async () => {
        const domain = name();
        const { answer } = await as('own', 'hosts.create', { host: { domain, upstream: upstream.address } });
        expect([answer.applied, answer.host.owner, answer.host.version]).to.equal([true, 'puppet-own', 1]);
        expect(answer.revision > 0).to.be.true();
        expect(JSON.parse((await visit(domain)).text).name).to.equal('up');
        const changed = await as('own', 'hosts.update', {
            id: answer.host.id,
            change: { maintenance: true },
            version: 1
        });
        expect([
            changed.answer.applied,
            changed.answer.host.version,
            changed.answer.host.maintenance
        ]).to.equal([true, 2, true]);
        expect((await visit(domain)).status).to.equal(503);
        const { data: entries } = await panel.client.get('/api/audit?resource=hosts&limit=2');
        expect(
            entries.map((entry: { action: string; actor: { plugin: string | null } }) => [
                entry.action,
                entry.actor.plugin
            ])
        ).to.equal([
            ['update', 'puppet-own'],
            ['create', 'puppet-own']
        ]);
        await as('own', 'hosts.update', { id: answer.host.id, change: { maintenance: false } });
        expect((await panel.client.put('/api/plugins/puppet-own', { enabled: false })).data.state).to.equal(
            'disabled'
        );
        expect((await visit(domain)).status).to.equal(200);
        expect((await panel.client.get(`/api/hosts/${answer.host.id}`)).data.owner).to.equal('puppet-own');
        expect((await panel.client.put('/api/plugins/puppet-own', { enabled: true })).data.state).to.equal(
            'running'
        );
        expect((await as('own', 'hosts.remove', { id: answer.host.id, version: 3 })).answer).to.be.null();
        expect((await visit(domain)).status).to.equal(404);
    });

    it('minds the version that is meant', async () => {
        const {
            answer: { host }
        } = await as('own', 'hosts.create', { host: { domain: name(), upstream: upstream.address } });
        await panel.client.put(`/api/hosts/${host.id}`, { maintenance: true });
        const late = await as('own', 'hosts.update', {
            id: host.id,
            change: { maintenance: false },
            version: 1
        });
        expect(late.failure).to.include({ code: 41200, reason: 'VERSION_STALE' });
        expect((await as('own', 'hosts.remove', { id: host.id, version: 1 })).failure?.code).to.equal(41200);
        expect((await panel.client.get(`/api/hosts/${host.id}`)).data).to.include({
            maintenance: true,
            version: 2
        });
    });

    it('covers with `own` what the plugin made, with `read` all but changes, with `write` all', async () => {
        const {
            data: { id, domain }
        } = await panel.client.post('/api/hosts', { domain: name(), upstream: upstream.address });
        const mine = (
            await as('own', 'hosts.create', { host: { domain: name(), upstream: upstream.address } })
        ).answer.host;
        const ids = async (plugin: string, filter: object = {}): Promise<number[]> =>
            (await as(plugin, 'hosts.list', { filter })).answer.map((host: { id: number }) => host.id);
        expect(await ids('own'))
            .to.include(mine.id)
            .and.to.not.include(id);
        expect(await ids('reader')).to.include([id, mine.id]);
        expect(await ids('writer', { domain })).to.equal([id]);
        expect(await ids('writer', { owner: 'puppet-own' }))
            .to.include(mine.id)
            .and.to.not.include(id);
        for (const door of ['hosts.update', 'hosts.remove', 'hosts.upstreams']) {
            expect((await as('own', door, { id, change: { notes: 'mine' } })).failure?.code, door).to.equal(
                40400
            );
        }
        for (const [door, input] of [
            ['hosts.create', { host: { domain: name(), upstream: upstream.address } }],
            ['hosts.update', { id, change: { notes: 'x' } }],
            ['hosts.remove', { id }]
        ] as const) {
            expect((await as('reader', door, input)).failure).to.include({
                code: 50305,
                reason: 'CAPABILITY_MISSING'
            });
            expect((await as('nobody', door, input)).failure?.code).to.equal(50305);
        }
        expect((await as('nobody', 'hosts.list')).failure?.code).to.equal(50305);
        expect(
            (await as('writer', 'hosts.update', { id, change: { notes: 'by the writer' } })).answer.host.notes
        ).to.equal('by the writer');
        expect((await panel.client.get(`/api/hosts/${id}`)).data).to.include({
            owner: null,
            notes: 'by the writer',
            version: 2
        });
    });

    it('refuses what would be refused to every user, and changes nothing', async () => {
        const domain = name();
        await as('own', 'hosts.create', { host: { domain, upstream: upstream.address } });
        const hosts = await count();
        expect(
            (await as('own', 'hosts.create', { host: { domain, upstream: upstream.address } })).failure
        ).to.include({ code: 40900, reason: 'CONFLICT' });
        expect(
            (
                await as('own', 'hosts.create', {
                    host: { domain: 'no such name', upstream: upstream.address }
                })
            ).failure?.code
        ).to.equal(40001);
        expect(
            (await as('own', 'hosts.create', { host: { domain: name(), upstream: '{env.HOME}:80' } })).failure
                ?.code
        ).to.equal(40001);
        expect((await as('own', 'hosts.update', { id: 4711, change: {} })).failure?.code).to.equal(40400);
        expect(await count()).to.equal(hosts);
    });

    it('refuses sockets and folders that no grant of the plugin names, wherever in a host they stand', async () => {
        const hosts = await count();
        const address = upstream.address;
        const bad: readonly object[] = [
            { upstream: 'unix//run/other.sock' },
            { upstreams: [{ address }, { address: 'unix//run/other.sock' }] },
            { upstream: 'unix//run/granted.sock/../other.sock' },
            { upstream: address, locations: [{ path: '/x', upstream: 'unix//run/docker.sock' }] },
            { type: 'php', php: { root: '/srv/granted', fastcgi: 'unix//run/php.sock' } },
            { type: 'php', php: { root: '/etc', fastcgi: '127.0.0.1:9000' } },
            {
                type: 'php',
                php: {
                    root: '/srv/granted',
                    upstreams: [{ address: 'unix//run/granted.sock' }, { address: 'unix//run/php.sock' }]
                }
            },
            { type: 'static', static: { root: '/etc' } },
            { type: 'static', static: { root: '/srv/granted/../../etc' } },
            { type: 'static', static: { root: '/srv/granted-not' } },
            { upstream: address, advanced: [{ handler: 'static_response', body: 'x' }] },
            { upstream: address, headers: { request: [{ op: 'set', name: 'HOST', value: 'inner' }] } },
            {
                upstream: address,
                access: { forwardAuth: { url: 'http://127.0.0.1:1/', copyHeaders: ['hOsT'] } }
            }
        ];
        for (const part of bad) {
            const { failure } = await as('own', 'hosts.create', { host: { domain: name(), ...part } });
            expect([40300, 40001], JSON.stringify([part, failure])).to.include(failure?.code);
        }
        expect(await count()).to.equal(hosts);
        const { answer } = await as('own', 'hosts.create', {
            host: { domain: name(), upstream: 'unix//run/granted.sock' }
        });
        expect(answer.host.upstream).to.equal('unix//run/granted.sock');
        expect(
            (
                await as('own', 'hosts.update', {
                    id: answer.host.id,
                    change: { locations: [{ path: '/y', upstream: 'unix//run/granted.sock' }] }
                })
            ).answer.host.locations
        ).to.have.length(1);
        expect(
            (
                await as('own', 'hosts.update', {
                    id: answer.host.id,
                    change: { locations: [{ path: '/y', upstream: 'unix//run/other.sock' }] }
                })
            ).failure?.code
        ).to.equal(40300);
        expect(
            (
                await as('own', 'hosts.update', {
                    id: answer.host.id,
                    change: { notes: 'unix is a family of systems' }
                })
            ).answer.host.version
        ).to.equal(3);
    });

    it('acts for an actor with no more than the actor may and the plugin is granted', async () => {
        const domain = name();
        const { answer } = await as(
            'own',
            'hosts.create',
            { host: { domain, upstream: upstream.address } },
            { token: operator, actor: true }
        );
        expect([answer.applied, answer.host.owner]).to.equal([true, 'puppet-own']);
        const {
            data: [entry]
        } = await panel.client.get('/api/audit?resource=hosts&limit=1');
        expect([entry.actor.username, entry.actor.plugin]).to.equal(['operator1', 'puppet-own']);
        // An operator must not reach sockets, whatever the plugin's grant says; an admin may, but not through a plugin without one.
        expect(
            (
                await as(
                    'own',
                    'hosts.create',
                    { host: { domain: name(), upstream: 'unix//run/granted.sock' } },
                    { token: operator, actor: true }
                )
            ).failure?.code
        ).to.equal(40300);
        expect(
            (
                await as(
                    'own',
                    'hosts.create',
                    { host: { domain: name(), upstream: 'unix//run/other.sock' } },
                    { actor: true }
                )
            ).failure?.code
        ).to.equal(40300);
        expect(
            (
                await as(
                    'own',
                    'hosts.create',
                    { host: { domain: name(), upstream: 'unix//run/granted.sock' } },
                    { actor: true }
                )
            ).answer.applied
        ).to.be.true();
    });

    it('changes no host for an actor who may use the plugin, but may not change hosts', async () => {
        const role = await panel.client.post('/api/users/roles', {
            name: 'puller',
            permissions: ['puppet-own:write']
        });
        expect(role.status).to.equal(201);
        const as_ = { token: await panel.tokenOf('puller'), actor: true };
        const {
            answer: { host }
        } = await as('own', 'hosts.create', { host: { domain: name(), upstream: upstream.address } });
        const hosts = await count();
        for (const [door, input] of [
            ['hosts.create', { host: { domain: name(), upstream: upstream.address } }],
            ['hosts.update', { id: host.id, change: { maintenance: true } }],
            ['hosts.remove', { id: host.id }]
        ] as const) {
            expect((await as('own', door, input, as_)).failure, door).to.include({
                code: 40300,
                data: { permission: 'hosts:write' }
            });
        }
        expect(await count()).to.equal(hosts);
        expect((await panel.client.get(`/api/hosts/${host.id}`)).data.version).to.equal(1);
    });

    it('counts the requests under way at each upstream', async () => {
        const {
            answer: { host }
        } = await as('own', 'hosts.create', {
            host: {
                domain: name(),
                upstreams: [{ address: slow.address }, { address: upstream.address }],
                loadBalancing: { policy: 'first' }
            }
        });
        free = Promise.withResolvers<void>();
        const waiting = [visit(host.domain, '/slow'), visit(host.domain, '/slow')];
        const states = async (): Promise<Record<string, number>> =>
            Object.fromEntries(
                (await as('own', 'hosts.upstreams', { id: host.id })).answer.map(
                    ({ address, requests }: { address: string; requests: number }) => [address, requests]
                )
            );
        await until(async () => (await states())[slow.address] === 2, 'both requests are counted');
        expect((await states())[upstream.address] ?? 0).to.equal(0);
        free.resolve();
        expect((await Promise.all(waiting)).map(({ text }) => text)).to.equal(['late', 'late']);
        await until(async () => (await states())[slow.address] === 0, 'nothing is under way');
    });

    it('counts them at the FastCGI servers of a host, too', async () => {
        const addresses = ['127.0.0.1:9', 'unix//run/granted.sock'];
        const upstreams = addresses.map((address) => ({ address }));
        const { answer } = await as('own', 'hosts.create', {
            host: { domain: name(), type: 'php', php: { root: '/srv/granted', upstreams } }
        });
        const states = (await as('own', 'hosts.upstreams', { id: answer.host.id })).answer;
        expect(
            states
                .map(({ address, requests }: { address: string; requests: number }) => [address, requests])
                .sort()
        ).to.equal(addresses.map((address) => [address, 0]));
        const single = { php: { root: '/srv/granted', fastcgi: '127.0.0.1:10' } };
        await as('own', 'hosts.update', { id: answer.host.id, change: single });
        await until(
            async () =>
                JSON.stringify(
                    (await as('own', 'hosts.upstreams', { id: answer.host.id })).answer.map(
                        ({ address }: { address: string }) => address
                    )
                ) === '["127.0.0.1:10"]',
            'the other server is listed'
        );
    });
});

describe('ctx.certificates', () => {
    it("makes certificates that are the plugin's own, also after a restart, and takes them away", async () => {
        const { answer } = await as('own', 'certificates.upload', {
            certificate: { name: 'of the plugin', ...selfSigned(['tls.test']) }
        });
        expect(answer).to.include({ name: 'of the plugin', owner: 'puppet-own', domains: ['tls.test'] });
        expect(JSON.stringify(answer)).to.not.contain('PRIVATE KEY');
        const {
            data: { id: other }
        } = await panel.client.post('/api/certificates', {
            name: 'of a person',
            ...selfSigned(['person.test'])
        });
        const { data: view } = await panel.client.get(`/api/certificates/${answer.id}`);
        expect([view.owner, (await panel.client.get(`/api/certificates/${other}`)).data.owner]).to.equal([
            'puppet-own',
            null
        ]);
        // What is read may be sent back: the owner stays.
        expect(
            (await panel.client.put(`/api/certificates/${answer.id}`, { ...view, name: 'renamed' })).data
        ).to.include({ owner: 'puppet-own', name: 'renamed' });
        await panel.restart();
        await panel.panel.settled();
        const listed = (await as('reader', 'certificates.list', { filter: { owner: 'puppet-own' } })).answer;
        expect(listed.map(({ id, owner }: { id: number; owner: string }) => [id, owner])).to.equal([
            [answer.id, 'puppet-own']
        ]);
        expect(
            (await as('reader', 'certificates.list', { filter: { domain: 'person.test' } })).answer.map(
                ({ id }: { id: number }) => id
            )
        ).to.equal([other]);
        expect((await as('own', 'certificates.remove', { id: answer.id })).answer).to.be.null();
        expect((await panel.client.get(`/api/certificates/${answer.id}`)).code).to.equal(40400);
    });

    it('needs the capability, and refuses what is damaged or in use', async () => {
        expect((await as('writer', 'certificates.list')).failure?.code).to.equal(50305);
        expect(
            (
                await as('reader', 'certificates.upload', {
                    certificate: { name: 'x', ...selfSigned(['x.test']) }
                })
            ).failure
        ).to.include({ code: 50305, reason: 'CAPABILITY_MISSING' });
        const { key } = selfSigned(['one.test']);
        const { certificate } = selfSigned(['two.test']);
        expect(
            (await as('own', 'certificates.upload', { certificate: { name: 'x', certificate, key } })).failure
                ?.code
        ).to.equal(40001);
        const { answer } = await as('own', 'certificates.upload', {
            certificate: { name: 'used', ...selfSigned(['used.test']) }
        });
        const { data: host } = await panel.client.post('/api/hosts', {
            domain: 'used.test',
            upstream: upstream.address,
            ssl: true,
            sslMode: 'certificate',
            certificateId: answer.id
        });
        expect((await as('own', 'certificates.remove', { id: answer.id })).failure).to.include({
            code: 40901,
            reason: 'IN_USE'
        });
        expect((await as('reader', 'certificates.remove', { id: answer.id })).failure?.code).to.equal(50305);
        expect(host.certificateId).to.equal(answer.id);
        expect((await panel.client.get(`/api/certificates/${answer.id}`)).data.usedBy).to.equal([host.id]);
    });

    it('keeps the owner in an export and an import', async () => {
        const { answer } = await as('own', 'certificates.upload', {
            certificate: { name: 'moves', ...selfSigned(['moves.test']) }
        });
        const passphrase = 'over the hills and far away';
        const { data: document } = await panel.client.post('/api/import-export/export', { passphrase });
        const written = (document.sections.certificates.rows ?? document.sections.certificates) as readonly {
            readonly id: number;
            readonly owner: string | null;
        }[];
        expect(written.find(({ id }) => id === answer.id)?.owner).to.equal('puppet-own');
        await panel.client.delete(`/api/certificates/${answer.id}`);
        const imported = await panel.client.post('/api/import-export/import', {
            document,
            passphrase,
            mode: 'merge'
        });
        await until(
            async () => (await panel.client.get(`/api/tasks/${imported.data.id}`)).data.state === 'succeeded',
            'the import is done'
        );
        const { data: all } = await panel.client.get('/api/certificates');
        expect(all.find((each: { name: string }) => each.name === 'moves').owner).to.equal('puppet-own');
    });
});
