/**
 * One of each kind of secret, each with a text of its own, is handed to a panel that runs as it does for people; then everything that it
 * wrote, said and started is searched for them. They may lie in few places, and be told once.
 */
import { randomBytes } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readOrigin } from '../../core/src/engine/caddy/origin.ts';
import { type EngineFolders, engineHome } from '../../core/src/engine/files/home.ts';
import { codeOf } from '../support/core/entrance.ts';
import { Client } from '../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../support/panel/process.ts';
import { selfSigned } from '../support/servers/self-signed.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

interface Canary {
    readonly text: string;
    /** Files that are there to hold it. */
    readonly file?: RegExp;
    /** The requests whose answers tell it. */
    readonly told?: RegExp;
}

/** Shown as it is to a fresh session with `engine:secrets`. */
const unmasked = /^GET \/api\/(?:proxyengine\/(?:config|drift|revisions)|hosts\/\d+\/preview)/;

const passwordOf = (name: string): string => `canary ${name} ${randomBytes(9).toString('hex')}`;

describe('a secret', { timeout: 240_000 }, () => {
    let at: PanelProcess;
    let client: Client;
    let folders: EngineFolders;
    const canaries = new Map<string, Canary>();
    const answers: { readonly request: string; readonly text: string; readonly viewer: boolean }[] = [];
    const jwtSecret = `canary-jwt-${randomBytes(24).toString('hex')}`;
    const adminPassword = passwordOf('admin');

    const keep = (kind: string, text: string, more: Omit<Canary, 'text'> = {}): string => {
        canaries.set(kind, { text, ...more });
        return text;
    };
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers of any shape, whose fields the tests assert
    const must = async (answer: ReturnType<Client['get']>): Promise<any> => {
        const { status, data, text } = await answer;
        expect(status, text.slice(0, 300)).to.be.below(300);
        return data;
    };

    before({ timeout: 120_000 }, async () => {
        keep('jwt secret', jwtSecret);
        keep("admin's password", adminPassword);
        at = await createPanelProcess({
            environment: {
                PORTICO_JWT_SECRET: jwtSecret,
                PORTICO_ADMIN_PASSWORD: adminPassword,
                PORTICO_LOG_LEVEL: 'debug'
            }
        });
        await at.start();
        folders = engineHome(at.dataDir, null);
        client = new Client(
            at.port,
            (method, path, { text, headers }) =>
                void answers.push({
                    request: `${method} ${path}`,
                    text,
                    viewer: headers['x-request-id'] === 'viewer'
                })
        );
        const login = await must(client.login('admin', adminPassword));
        client.token = keep('access token', login.token as string, { told: /^POST \/api\/auth\/login$/ });
        keep('refresh token', login.refreshToken as string, { told: /^POST \/api\/auth\/login$/ });
        await fill();
        keep("name of the engine's admin API", readOrigin(folders), {
            file: /\/(?:engine\/(?:origin|last\.json)|engine\.log|output\.log)$/
        });
    });

    after(async () => at.close());

    /** Hands out every kind, rightly and in the wrong places. */
    async function fill(): Promise<void> {
        const password = keep("user's password", passwordOf('user'));
        const user = await must(
            client.post('/api/users', { username: 'keeper', password, role: 'operator' })
        );
        await must(
            client.put(`/api/users/${user.id}`, { password: keep('changed password', passwordOf('changed')) })
        );
        const { token } = await must(
            client.post('/api/auth/tokens', { name: 'canary', permissions: ['hosts:read'] })
        );
        keep('API token', token as string, { told: /^POST \/api\/auth\/tokens$/ });
        const { secret } = await must(client.post('/api/auth/totp', { password: adminPassword }));
        keep('TOTP secret', secret as string, { told: /^POST \/api\/auth\/totp$/ });
        const { recoveryCodes } = await must(
            client.put('/api/auth/totp', { code: codeOf(secret as string, Date.now()) })
        );
        keep('recovery code', recoveryCodes[0] as string, { told: /^PUT \/api\/auth\/totp$/ });
        const { ticket } = await must(client.post('/api/auth/tickets', { path: '/api/hosts?limit=1' }));
        keep('ticket', ticket as string, { told: /^POST \/api\/auth\/tickets$/ });
        await must(client.get(`/api/hosts?limit=1&ticket=${ticket as string}`, { token: null }));

        await must(
            client.put('/api/settings', {
                'engine.acmeEab': {
                    keyId: 'canary-id',
                    macKey: keep('EAB key', `canary${randomBytes(20).toString('hex')}`, {
                        file: /\/engine\/last\.json$/
                    })
                }
            })
        );
        const basic = passwordOf('basic');
        const headers = {
            request: [
                {
                    op: 'set',
                    name: 'Authorization',
                    value: keep('header value', `Bearer canary${randomBytes(12).toString('hex')}`, {
                        file: /\/engine\/last\.json$/
                    })
                }
            ]
        };
        const host = await must(
            client.post(
                '/api/hosts',
                {
                    domain: 'canary.test',
                    upstream: '127.0.0.1:9',
                    headers,
                    access: {
                        basicAuth: [{ username: 'basic', password: keep('basic-auth password', basic) }]
                    }
                },
                { headers: { 'idempotency-key': 'canary' } }
            )
        );
        const { certificate, key } = selfSigned(['canary-tls.test']);
        keep("certificate's key", key.split('\n')[1] ?? '', {
            file: /\/certificates(?:-[0-9a-f]{32})?\/\d+-[0-9a-f]+\.key$/,
            told: /^GET \/api\/certificates\/\d+\/download/
        });
        const uploaded = await must(
            client.post('/api/certificates', { source: 'upload', name: 'canary', certificate, key })
        );
        await must(
            client.post('/api/hosts', {
                domain: 'canary-tls.test',
                upstream: '127.0.0.1:9',
                ssl: true,
                sslMode: 'certificate',
                certificateId: uploaded.id
            })
        );
        const webhook = keep('webhook secret', `whsec_${randomBytes(24).toString('base64')}`);
        await must(
            client.post('/api/settings/channels', {
                name: 'canary',
                type: 'webhook',
                url: `https://192.0.2.1/${keep('webhook address', `canary${randomBytes(12).toString('hex')}`)}`,
                secret: webhook,
                events: ['certificate.*']
            })
        );
        const mail = {
            type: 'email',
            host: '192.0.2.1',
            security: 'tls',
            from: 'a@canary.test',
            to: ['b@canary.test'],
            username: 'u',
            events: ['certificate.*']
        };
        await must(
            client.post('/api/settings/channels', {
                name: 'canary mail',
                ...mail,
                password: keep('mail password', passwordOf('mail'))
            })
        );

        // In places where they are wrong, and may be repeated in a complaint.
        await client.post('/api/hosts', {
            domain: 'canary.test',
            upstream: basic,
            access: { basicAuth: [{ username: 'x', password: 7 }] }
        });
        await client.post('/api/certificates', {
            source: 'upload',
            name: 'mixed',
            certificate: selfSigned(['canary-tls.test']).certificate,
            key
        });
        await client.post('/api/certificates', {
            source: 'upload',
            name: 'cut',
            certificate,
            key: key.slice(0, -40)
        });
        await client.post('/api/certificates', {
            source: 'upload',
            name: key,
            certificate: key,
            key: certificate
        });
        await client.put('/api/auth/password', { currentPassword: basic, newPassword: password.slice(0, 9) });
        await client.post('/api/auth/step-up', { totp: recoveryCodes[1], password: adminPassword });
        await client.post('/api/auth/refresh', {}, { token });
        await client.get('/api/hosts', { token: `${token as string}x` });
        await client.get('/api/hosts', { headers: { authorization: `Basic ${token as string}` } });
        await client.post('/api/auth/login', `{"password":"${password}"`);
        await client.post(`/api/hosts/${host.id}/clone`, { domain: 'canary-two.test' });
        await client.put(`/api/hosts/${host.id}`, { notes: 'a revision more' });
    }

    it('is told only to the caller who asked for it, once', async () => {
        await must(
            client.post('/api/users', {
                username: 'watcher',
                password: 'a watcher walks along the quay',
                role: 'viewer',
                mustChangePassword: false
            })
        );
        const viewer = (await must(client.login('watcher', 'a watcher walks along the quay')))
            .token as string;
        const { paths } = JSON.parse((await client.get('/api/openapi.json')).text) as {
            paths: Record<string, Record<string, unknown>>;
        };
        for (const path of Object.keys(paths).filter(
            (name) =>
                paths[name]?.['get'] !== undefined &&
                !name.includes('/plugins/') &&
                !name.endsWith('/logs') &&
                !name.endsWith('/events')
        )) {
            for (const id of ['1', '2', '3']) {
                await client.get(path.replace(/\{[^}]+\}/g, id));
                await client.get(path.replace(/\{[^}]+\}/g, id), {
                    token: viewer,
                    headers: { 'x-request-id': 'viewer' }
                });
            }
        }
        expect(answers.length).to.be.above(100);
        for (const [kind, { text, told }] of canaries) {
            const written = JSON.stringify(text).slice(1, -1);
            const leaks = answers
                .filter(
                    (answer) =>
                        answer.text.includes(written) &&
                        (told === undefined || !told.test(answer.request)) &&
                        !(unmasked.test(answer.request) && !answer.viewer)
                )
                .map(({ request }) => request);
            expect(leaks, kind).to.equal([]);
        }
    });

    it('lies in no file but the few that are there for it', () => {
        const found: string[] = [];
        for (const path of filesOf([at.dataDir, folders.persistent, folders.runtime])) {
            const bytes = readFileSync(path);
            for (const [kind, { text, file }] of canaries) {
                if (
                    file?.test(path) !== true &&
                    [
                        text,
                        Buffer.from(text).toString('base64').slice(0, -4),
                        Buffer.from(text).toString('hex')
                    ].some((form) => bytes.includes(form))
                ) {
                    found.push(`${kind} in ${path}`);
                }
            }
        }
        expect(found).to.equal([]);
    });

    it('is not in the log, and in no process that the panel started', () => {
        const children = readdirSync('/proc')
            .filter((name) => /^\d+$/.test(name))
            .map(Number)
            .filter((pid) => pid === at.enginePid() || parentOf(pid) === at.pid);
        expect(children).to.include(at.enginePid() as number);
        const open = children.flatMap((pid) =>
            ['cmdline', 'environ'].map((name) => ({
                where: `${name} of ${pid}`,
                text: contentOf(`/proc/${pid}/${name}`)
            }))
        );
        expect(at.output.length).to.be.above(200);
        for (const { where, text } of [
            ...open,
            { where: 'the log', text: at.output },
            { where: "the panel's own command line", text: contentOf(`/proc/${at.pid}/cmdline`) }
        ]) {
            for (const [kind, canary] of canaries) {
                expect(
                    text.includes(JSON.stringify(canary.text).slice(1, -1)),
                    `${kind} in ${where}`
                ).to.be.false();
            }
            expect(where.startsWith('environ') && /PORTICO_/.test(text), where).to.be.false();
        }
    });

    it('is in files and folders that no other account may open', () => {
        const wide: string[] = [];
        for (const path of [
            ...filesOf([at.dataDir, folders.persistent, folders.runtime]),
            ...foldersOf([at.dataDir, folders.persistent, folders.runtime])
        ]) {
            const stats = lstatSync(path);
            const mode = stats.mode & 0o7777;
            const shared =
                path.startsWith(folders.table) ||
                [folders.persistent, folders.runtime, folders.certificates].includes(path);
            const most = stats.isDirectory() ? (shared ? 0o750 : 0o700) : 0o600;
            if ((mode & ~most) !== 0) {
                wide.push(`${path} has ${mode.toString(8)}`);
            }
        }
        expect(wide).to.equal([]);
        expect([lstatSync(folders.adminSocket).mode & 0o077, lstatSync(at.dataDir).mode & 0o777]).to.equal([
            0, 0o700
        ]);
    });
});

function filesOf(roots: readonly string[]): string[] {
    return entriesOf(roots).filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true);
}

function foldersOf(roots: readonly string[]): string[] {
    return [...roots, ...entriesOf(roots)].filter(
        (path) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true
    );
}

/** Everything below, without following links: the SDK that plugins are given is one. */
function entriesOf(roots: readonly string[]): string[] {
    return roots.flatMap((root) =>
        readdirSync(root, { withFileTypes: true }).flatMap((entry) => {
            const path = join(root, entry.name);
            return entry.isDirectory() ? [path, ...entriesOf([path])] : [path];
        })
    );
}

function parentOf(pid: number): number {
    return Number(/^PPid:\s*(\d+)$/m.exec(contentOf(`/proc/${pid}/status`))?.[1] ?? 0);
}

function contentOf(path: string): string {
    try {
        return readFileSync(path, 'utf8');
    } catch {
        return '';
    }
}
