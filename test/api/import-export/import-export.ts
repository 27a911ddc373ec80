import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { codeOf } from '../../support/core/entrance.ts';
import type { Answer } from '../../support/panel/client.ts';
import { adminPassword, startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { selfSigned } from '../../support/servers/self-signed.ts';
import { startUpstream, type TestUpstream } from '../../support/servers/upstream.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const passphrase = 'over the hills and far away';
const base = '/api/import-export';

let upstream: TestUpstream;
let source: TestPanel;
let folder = '';
const secrets: string[] = ['a secret for ann', 'eve sells seashells daily', 'mac-key-of-the-ca'];

before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portico-transfer-'));
    upstream = await startUpstream('up');
    source = await startPanel();
    await fill(source);
});

after(async () => {
    await source.close();
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
});

async function made(answer: Promise<Answer>): Promise<Answer['data']> {
    const { status, text, data } = await answer;
    if (status >= 300) {
        throw new Error(text);
    }
    return data;
}

let recoveryCodes: readonly string[] = [];

/** One of everything. */
async function fill({ client }: TestPanel): Promise<void> {
    const root = join(folder, 'www');
    mkdirSync(root, { recursive: true });
    execFileSync('chmod', ['755', folder, root]);
    writeFileSync(join(root, 'index.html'), 'static content', { mode: 0o644 });
    const hook = 'http://192.0.2.9/hooks/a-secret-address';
    secrets.push('a-secret-address', 'a secret of the mail');
    const { secret: signing } = await made(
        client.post('/api/settings/channels', { name: 'hook', type: 'webhook', url: hook })
    );
    secrets.push(signing);
    await made(
        client.post('/api/settings/channels', {
            name: 'mail',
            type: 'email',
            events: ['certificate.*'],
            enabled: false,
            host: '192.0.2.9',
            username: 'panel',
            password: 'a secret of the mail',
            from: 'panel@example.test',
            to: ['ann@example.test']
        })
    );
    const gone = await made(client.post('/api/hosts', { domain: 'gone.test', upstream: upstream.address }));
    await made(client.delete(`/api/hosts/${gone.id}`));
    const pair = selfSigned(['secure.test', '*.secure.test']);
    secrets.push(pair.key.split('\n')[1] ?? '');
    const certificate = await made(
        client.post('/api/certificates', { source: 'upload', name: 'pair', ...pair })
    );
    await made(
        client.post('/api/hosts', {
            domain: 'full.test',
            aliases: ['www.full.test'],
            upstreams: [
                { address: upstream.address, weight: 3 },
                { address: '127.0.0.1:9', weight: 1 }
            ],
            loadBalancing: { policy: 'first', retries: 2, tryDurationSeconds: 3 },
            healthCheck: { path: null, passive: { maxFails: 3, failDurationSeconds: 20 } },
            locations: [{ path: '/api', upstream: upstream.address, stripPrefix: true }],
            headers: {
                request: [{ op: 'set', name: 'X-One', value: 'in' }],
                response: [{ op: 'add', name: 'X-Two', value: 'out' }]
            },
            access: {
                allow: ['127.0.0.0/8'],
                deny: ['192.0.2.1'],
                basicAuth: [{ username: 'ann', password: 'a secret for ann' }]
            },
            cors: { origins: ['https://a.test'] },
            securityHeaders: true,
            compression: true,
            bodyLimitBytes: 1000,
            timeouts: { connectSeconds: 3, readSeconds: 30 },
            errorPages: [{ status: 502, body: 'away' }],
            tags: ['x', 'y'],
            notes: 'a note\nof two lines'
        })
    );
    await made(
        client.post('/api/hosts', {
            domain: 'shop.secure.test',
            upstream: upstream.address,
            ssl: true,
            sslMode: 'certificate',
            certificateId: certificate.id,
            hsts: true
        })
    );
    await made(
        client.post('/api/hosts', {
            domain: 'old.test',
            type: 'redirect',
            redirect: { to: 'https://new.test', code: 301, keepPath: false },
            enabled: false
        })
    );
    await made(
        client.post('/api/hosts', {
            domain: 'files.test',
            type: 'static',
            static: { root, browse: true, spaFallback: true }
        })
    );
    await made(
        client.post('/api/hosts', {
            domain: 'php.test',
            type: 'php',
            php: { root, upstreams: [{ address: '127.0.0.1:9', weight: 9 }, { address: '127.0.0.1:10' }] }
        })
    );
    await made(
        client.post('/api/hosts', {
            domain: 'native.test',
            upstream: upstream.address,
            advanced: [{ handler: 'headers', response: { set: { 'X-Native': ['yes'] } } }],
            maintenance: false
        })
    );
    await made(
        client.put('/api/settings', {
            'engine.acmeEmail': 'ops@example.com',
            'engine.acmeEab': { keyId: 'kid', macKey: 'mac-key-of-the-ca' },
            'panel.stepUpMinutes': 20,
            'dns.nameservers': ['192.0.2.53']
        })
    );
    await made(
        client.post('/api/users/roles', {
            name: 'publisher',
            description: 'writes hosts',
            permissions: ['hosts:read', 'hosts:write']
        })
    );
    await made(
        client.post('/api/users', {
            username: 'eve',
            password: 'eve sells seashells daily',
            role: 'publisher',
            mustChangePassword: false
        })
    );
    await made(
        client.post('/api/users', {
            username: 'off',
            password: 'nobody comes in by this',
            role: 'viewer',
            disabled: true
        })
    );
    await made(
        client.post('/api/dns-providers', {
            name: 'own zone',
            type: 'rfc2136',
            credentials: {
                nameserver: '192.0.2.9',
                zone: 'example.com',
                keyName: 'k.example.com',
                keySecret: 'c2VjcmV0IHNlY3JldCE='
            },
            isDefault: true
        })
    );
    const token = (await client.login('eve', 'eve sells seashells daily')).data.token as string;
    const { secret } = await made(
        client.post('/api/auth/totp', { password: 'eve sells seashells daily' }, { token })
    );
    secrets.push(secret as string);
    ({ recoveryCodes } = (await made(
        client.put('/api/auth/totp', { code: codeOf(secret as string, Date.now()) }, { token })
    )) as { recoveryCodes: readonly string[] });
}

const ended = async (panel: TestPanel, answer: Answer): Promise<Answer['data']> => {
    expect([answer.status, answer.text.slice(0, 300)]).to.equal([202, answer.text.slice(0, 300)]);
    return until(async () => {
        const { data } = await panel.client.get(`/api/tasks/${answer.data.id}`);
        return data.state === 'succeeded' || data.state === 'failed' ? (data as object) : null;
    }, 'the import ends') as Promise<Answer['data']>;
};

const plainOf = async ({ client }: TestPanel): Promise<Answer['data']> =>
    (await client.get(`${base}/export`)).data.sections;

function visit(
    panel: TestPanel,
    host: string,
    path = '/',
    headers: Readonly<Record<string, string>> = {}
): Promise<{ status: number; headers: Readonly<Record<string, unknown>> }> {
    return new Promise((resolve, reject) => {
        const sent = request(
            { host: '127.0.0.1', port: panel.httpPort, path, headers: { host, ...headers }, agent: false },
            (answer) => {
                answer.resume();
                answer.once('end', () =>
                    resolve({ status: answer.statusCode ?? 0, headers: answer.headers })
                );
            }
        );
        sent.once('error', reject);
        sent.end();
    });
}

describe('POST /api/import-export/export', () => {
    it('shows no secret without a passphrase, and only sealed ones with it', async () => {
        const plain = await source.client.get(`${base}/export`);
        expect([plain.status, plain.data.format, plain.data.formatVersion, plain.data.secrets]).to.equal([
            200,
            'portico-export',
            1,
            undefined
        ]);
        expect(Object.keys(plain.data.sections)).to.equal([
            'settings',
            'roles',
            'users',
            'channels',
            'dnsProviders',
            'certificates',
            'hosts',
            'plugins'
        ]);
        const sealed = await source.client.post(`${base}/export`, { passphrase });
        expect(sealed.data.secrets.kdf.name).to.equal('argon2id');
        for (const text of [plain.text, sealed.text]) {
            for (const secret of [
                ...secrets,
                '$2b$',
                '$argon2id$v=',
                'PRIVATE KEY',
                'c2VjcmV0IHNlY3JldCE=',
                passphrase
            ]) {
                expect(text).to.not.contain(secret);
            }
        }
        const { data: entries } = await source.client.get('/api/audit?action=export&limit=1');
        expect(entries[0].changes.after).to.equal({
            sections: [
                'settings',
                'roles',
                'users',
                'channels',
                'dnsProviders',
                'certificates',
                'hosts',
                'plugins'
            ],
            secrets: true
        });
    });

    it('takes along what the named sections need, and refuses names that there are not', async () => {
        expect(
            Object.keys((await source.client.post(`${base}/export`, { sections: ['hosts'] })).data.sections)
        ).to.equal(['certificates', 'hosts']);
        const { code, data } = await source.client.post(`${base}/export`, { sections: ['sessions'] });
        expect([code, data.errors[0].path]).to.equal([40001, 'sections.0']);
    });

    it('is not for those who may not, nor with secrets for a token without their permissions', async () => {
        const refused = await source.client.post(
            `${base}/export`,
            {},
            { token: await source.tokenOf('operator') }
        );
        expect([refused.code, refused.data.permission]).to.equal([40300, 'export:run']);
        const { token } = await made(
            source.client.post('/api/auth/tokens', {
                name: 'exporter',
                permissions: ['export:run', 'certificates:read']
            })
        );
        expect(Object.keys((await source.client.get(`${base}/export`, { token })).data.sections)).to.equal([
            'certificates'
        ]);
        const keys = await source.client.post(
            `${base}/export`,
            { sections: ['certificates'], passphrase },
            { token }
        );
        expect([keys.code, keys.data.permission]).to.equal([40300, 'certificates:secrets']);
    });
});

describe('POST /api/import-export/import', () => {
    it('keeps the settings of plugins that are not installed, sealed, and gives them out again', async () => {
        const document = {
            format: 'portico-export',
            formatVersion: 1,
            createdAt: '2026-01-01T00:00:00.000Z',
            sections: {
                plugins: [
                    {
                        name: 'weather',
                        package: 'portico-plugin-weather',
                        version: '1.2.3',
                        enabled: true,
                        settings: { city: 'Oslo' }
                    }
                ]
            }
        };
        const { result } = await ended(
            source,
            await source.client.post(`${base}/import`, { document, mode: 'merge', dryRun: false })
        );
        expect(result.sections.plugins).to.include({
            create: ['weather'],
            notes: [
                {
                    name: 'weather',
                    message: 'not installed: portico-plugin-weather 1.2.3; its settings are kept until it is'
                }
            ]
        });
        expect((await plainOf(source)).plugins).to.equal(document.sections.plugins);
        const forgotten = { ...document, sections: { plugins: [] } };
        expect(
            (
                await ended(
                    source,
                    await source.client.post(`${base}/import`, {
                        document: forgotten,
                        mode: 'replace',
                        dryRun: false
                    })
                )
            ).result.sections.plugins.delete
        ).to.equal(['weather']);
        expect((await plainOf(source)).plugins).to.equal([]);
    });

    it('makes the same panel of an empty one, down to passwords, second factors and keys', async () => {
        const { data: document } = await source.client.post(`${base}/export`, { passphrase });
        const target = await startPanel();
        try {
            const dry = await target.client.post(`${base}/import`, {
                document,
                passphrase,
                mode: 'replace',
                dryRun: true
            });
            expect([dry.status, dry.data?.sections?.hosts?.create ?? dry.text]).to.equal([
                200,
                ['full.test', 'shop.secure.test', 'old.test', 'files.test', 'php.test', 'native.test']
            ]);
            expect((await target.client.get('/api/hosts')).data).to.equal([]);
            const { state, result, error } = await ended(
                target,
                await target.client.post(`${base}/import`, {
                    document,
                    passphrase,
                    mode: 'replace',
                    dryRun: false
                })
            );
            expect([state, error]).to.equal(['succeeded', null]);
            expect({ ...result, dryRun: true, applied: null }).to.equal(dry.data);
            const [was, is] = [await plainOf(source), await plainOf(target)];
            for (const section of [
                'settings',
                'roles',
                'channels',
                'dnsProviders',
                'certificates',
                'hosts'
            ]) {
                expect(is[section]).to.equal(was[section]);
            }
            const known = (users: { username: string }[]): object[] =>
                users
                    .filter(({ username }) => username !== 'admin')
                    .map((user) => ({ ...user, lastLoginAt: null, id: 0 }));
            expect(known(is.users)).to.equal(
                known(was.users).filter(
                    (user) =>
                        ['eve', 'off'].includes((user as { username: string }).username) ||
                        is.users.some(
                            (each: { username: string }) =>
                                each.username === (user as { username: string }).username
                        )
                )
            );
            const channels = async (panel: TestPanel): Promise<unknown> =>
                (await panel.client.get('/api/settings/channels')).data.map((channel: object) => ({
                    ...channel,
                    version: 0
                }));
            expect(await channels(target)).to.equal(await channels(source));
            expect((await visit(target, 'full.test')).status).to.equal(401);
            const allowed = await visit(target, 'full.test', '/', {
                authorization: `Basic ${Buffer.from('ann:a secret for ann').toString('base64')}`
            });
            expect([allowed.status, allowed.headers['x-two']]).to.equal([200, 'out']);
            expect((await visit(target, 'native.test')).headers['x-native']).to.equal('yes');
            expect((await visit(target, 'files.test', '/nothing')).status).to.equal(200);
            const needed = await target.client.login('eve', 'eve sells seashells daily');
            expect(needed.code).to.equal(40113);
            expect(
                (
                    await target.client.login('eve', 'eve sells seashells daily', {
                        totp: recoveryCodes[0] ?? ''
                    })
                ).status
            ).to.equal(200);
            expect(
                (
                    await target.client.login('eve', 'eve sells seashells daily', {
                        totp: recoveryCodes[0] ?? ''
                    })
                ).code
            ).to.equal(40114);
            expect((await target.client.login('admin', adminPassword)).status).to.equal(200);
            const again = await target.client.post(`${base}/import`, {
                document,
                passphrase,
                mode: 'replace',
                dryRun: true
            });
            for (const section of Object.values(again.data.sections as Record<string, { counts: object }>)) {
                expect(section.counts).to.include({ create: 0, delete: 0 });
            }
            const { data: next } = await target.client.post('/api/hosts', {
                domain: 'next.test',
                upstream: upstream.address
            });
            expect(was.hosts.every(({ id }: { id: number }) => id < next.id)).to.be.true();
            await target.restart();
            expect((await plainOf(target)).hosts.filter(({ id }: { id: number }) => id !== next.id)).to.equal(
                was.hosts
            );
        } finally {
            await target.close();
        }
    });

    it('brings users in disabled and hosts without passwords where the document has no secrets, and says so', async () => {
        const { data: document } = await source.client.get(`${base}/export`);
        const target = await startPanel();
        try {
            const { state, result } = await ended(
                target,
                await target.client.post(`${base}/import`, { document, mode: 'merge', dryRun: false })
            );
            expect(state).to.equal('succeeded');
            const said = (section: string): string[] =>
                result.sections[section].notes.map(
                    ({ name, message }: { name: string; message: string }) => `${name}: ${message}`
                );
            expect(said('users')).to.contain(
                'eve: arrives disabled and without a password: the document has no secrets'
            );
            expect(said('hosts').filter((text) => !text.startsWith('files'))).to.equal([
                'full.test: access.basicAuth: ann left out, since the document has no passwords; no password is asked any more',
                'shop.secure.test: arrives disabled, with sslMode internal: its certificate 1 is not in the document, or without its key'
            ]);
            expect(said('certificates')).to.equal(['pair: left out: its key is not in the document']);
            expect(said('settings')).to.equal(['engine.acmeEab: left out: the document has no secrets']);
            const { data: users } = await target.client.get('/api/users?q=eve');
            expect(users[0]).to.include({
                disabled: true,
                role: 'publisher',
                totpEnabled: false,
                mustChangePassword: true
            });
            expect((await target.client.login('eve', 'eve sells seashells daily')).code).to.equal(40110);
            const again = await target.client.post(`${base}/import`, {
                document: (await source.client.post(`${base}/export`, { passphrase })).data,
                passphrase,
                mode: 'merge',
                dryRun: true
            });
            expect(again.data?.sections?.hosts.update ?? again.text).to.equal([
                'full.test',
                'shop.secure.test'
            ]);
        } finally {
            await target.close();
        }
    });

    it('refuses a document whole that is foreign, of another version, damaged, or sealed under another passphrase', async () => {
        const { data: document } = await source.client.post(`${base}/export`, { passphrase });
        const before = JSON.stringify(await plainOf(source));
        const attempt = async (
            changed: object,
            more: object = { passphrase }
        ): Promise<readonly [number, string]> => {
            const { code, message, data } = await source.client.post(`${base}/import`, {
                document: changed,
                mode: 'replace',
                dryRun: false,
                ...more
            });
            return [code, data?.errors?.[0]?.message ?? message];
        };
        expect((await attempt({ hello: 'world' }))[0]).to.equal(40000);
        expect((await attempt({ ...document, formatVersion: 2 }))[1]).to.contain('upgrade first');
        expect((await attempt({ ...document, formatVersion: -1 }))[0]).to.equal(40000);
        expect(await attempt(document, {})).to.equal([
            40001,
            'passphrase is required: the document has secrets'
        ]);
        expect(await attempt(document, { passphrase: 'another passphrase' })).to.equal([
            40001,
            'passphrase is wrong'
        ]);
        const damaged = 'document is damaged, or was changed after it was sealed';
        const { box } = document.secrets as { box: string };
        expect(
            await attempt({
                ...document,
                secrets: {
                    ...document.secrets,
                    box: `${box.slice(0, 40)}${box[40] === 'A' ? 'B' : 'A'}${box.slice(41)}`
                }
            })
        ).to.equal([40001, damaged]);
        expect(
            await attempt({ ...document, secrets: { ...document.secrets, box: box.slice(0, -8) } })
        ).to.equal([40001, damaged]);
        expect(
            await attempt({
                ...document,
                sections: { ...document.sections, hosts: document.sections.hosts.slice(1) }
            })
        ).to.equal([40001, damaged]);
        const swapped = document.sections.users.map((user: object) => ({ ...user, role: 'admin' }));
        expect(await attempt({ ...document, sections: { ...document.sections, users: swapped } })).to.equal([
            40001,
            damaged
        ]);
        expect(
            (
                await attempt({
                    ...document,
                    secrets: { ...document.secrets, kdf: { ...document.secrets.kdf, memoryKiB: 4_000_000 } }
                })
            )[0]
        ).to.equal(40001);
        const { secrets: _without, ...plain } = document as Record<string, unknown> & {
            sections: Record<string, unknown>;
        };
        expect((await attempt({ ...plain, sections: { ...plain.sections, sessions: [] } }, {}))[1]).to.equal(
            'There is no section sessions'
        );
        const broken = await source.client.post(`${base}/import`, {
            document: {
                ...plain,
                sections: {
                    hosts: [
                        { domain: 'ok.test', upstream: '127.0.0.1:1' },
                        { domain: 'no upstream' },
                        { domain: 'x.test', upstream: '127.0.0.1:1', nonsense: 1 }
                    ]
                }
            },
            mode: 'merge',
            dryRun: true
        });
        expect(broken.data.errors.map(({ path }: { path: string }) => path)).to.equal([
            'document.sections.hosts.1.domain',
            'document.sections.hosts.1.upstream',
            'document.sections.hosts.2.nonsense'
        ]);
        expect(JSON.stringify(await plainOf(source))).to.equal(before);
    });

    it('undoes everything when the engine refuses one host', async () => {
        const before = JSON.stringify(await plainOf(source));
        const sections = {
            settings: { 'engine.acmeEmail': 'other@example.com' },
            users: [],
            hosts: [
                { domain: 'fine.test', upstream: upstream.address },
                { domain: 'bad.test', upstream: upstream.address, advanced: [{ handler: 'rate_limit' }] }
            ]
        };
        const document = {
            format: 'portico-export',
            formatVersion: 1,
            createdAt: '2026-01-01T00:00:00.000Z',
            sections
        };
        const dry = await source.client.post(`${base}/import`, { document, mode: 'merge', dryRun: true });
        expect(dry.code).to.equal(42200);
        const { state, error } = await ended(
            source,
            await source.client.post(`${base}/import`, { document, mode: 'merge' })
        );
        expect([state, error.code]).to.equal(['failed', 42200]);
        expect(JSON.stringify(await plainOf(source))).to.equal(before);
        expect((await visit(source, 'fine.test')).status).to.equal(404);
        expect((await visit(source, 'native.test')).status).to.equal(200);
        const { data: entries } = await source.client.get('/api/audit?action=import&outcome=failure&limit=1');
        expect(entries[0].code).to.equal(42200);
    });

    it('never touches the account of the user who imports, who neither gives nor takes what is above them', async () => {
        const { data: document } = await source.client.get(`${base}/export`);
        const users = document.sections.users.filter(
            ({ username }: { username: string }) => username !== 'admin'
        );
        const without = { ...document, sections: { users, roles: document.sections.roles } };
        const dry = await source.client.post(`${base}/import`, {
            document: without,
            mode: 'replace',
            dryRun: true
        });
        expect(dry.data.sections.users.delete).to.equal([]);
        expect(dry.data.sections.users.notes.map(({ name }: { name: string }) => name)).to.contain('admin');
        const demoted = {
            ...document,
            sections: { users: [{ ...document.sections.users[0], role: 'viewer', disabled: true }] }
        };
        expect(
            (await source.client.post(`${base}/import`, { document: demoted, mode: 'merge', dryRun: true }))
                .data.sections.users
        ).to.include({ update: [], unchanged: ['admin'] });

        await made(
            source.client.post('/api/users/roles', {
                name: 'mover',
                permissions: ['import:run', 'users:read', 'users:write', 'hosts:read']
            })
        );
        const token = await source.tokenOf('mover', 'mover');
        const raise = (role: string): object => ({
            document: { ...document, sections: { users: [{ ...users[0], username: 'newcomer', role }] } },
            mode: 'merge',
            dryRun: false
        });
        const raised = await source.client.post(`${base}/import`, raise('admin'), { token });
        expect([raised.code, typeof raised.data.permission]).to.equal([40300, 'string']);
        const removal = await source.client.post(
            `${base}/import`,
            { document: { ...document, sections: { users: [] } }, mode: 'replace', dryRun: false },
            { token }
        );
        expect(removal.code).to.equal(40300);
        const hosts = await source.client.post(
            `${base}/import`,
            { document: { ...document, sections: { hosts: [] } }, mode: 'replace', dryRun: false },
            { token }
        );
        expect([hosts.code, hosts.data.permission]).to.equal([40300, 'hosts:write']);
        const { token: api } = await made(
            source.client.post('/api/auth/tokens', {
                name: 'importer',
                permissions: ['import:run', 'users:read', 'users:write']
            })
        );
        expect((await source.client.post(`${base}/import`, raise('viewer'), { token: api })).code).to.equal(
            40300
        );
        expect((await source.client.get('/api/users?q=newcomer')).data).to.equal([]);
    });

    it("needs hosts:unsafe for what does, plugins:manage for an owner, and leads no host into the panel's own folders", async () => {
        await made(
            source.client.post('/api/users/roles', {
                name: 'host-mover',
                permissions: ['import:run', 'hosts:read', 'hosts:write']
            })
        );
        const token = await source.tokenOf('host-mover', 'host-mover');
        const importing = (host: object, as: string | null): Promise<Answer> =>
            source.client.post(
                `${base}/import`,
                {
                    document: {
                        format: 'portico-export',
                        formatVersion: 1,
                        createdAt: '2026-01-01T00:00:00.000Z',
                        sections: { hosts: [host] }
                    },
                    mode: 'merge',
                    dryRun: false
                },
                as === null ? {} : { token: as }
            );
        const unsafe = await importing({ domain: 'unsafe.test', upstream: 'unix//run/some.sock' }, token);
        expect([unsafe.code, unsafe.data.permission]).to.equal([40300, 'hosts:unsafe']);
        const owned = { domain: 'owned.test', upstream: upstream.address, owner: 'deploy' };
        const gift = await importing(owned, token);
        expect([gift.code, gift.data.permission]).to.equal([40300, 'plugins:manage']);
        expect((await ended(source, await importing(owned, null))).state).to.equal('succeeded');
        const theft = await importing({ ...owned, owner: null }, token);
        expect([theft.code, theft.data.permission]).to.equal([40300, 'plugins:manage']);
        const changed = await importing({ ...owned, notes: 'Ours' }, token);
        expect((await ended(source, changed)).state).to.equal('succeeded');
        const [{ id, owner, notes }] = (await source.client.get('/api/hosts?q=owned.test')).data;
        expect([owner, notes]).to.equal(['deploy', 'Ours']);
        await made(source.client.delete(`/api/hosts/${id}`));
        const inside = await importing(
            { domain: 'inside.test', type: 'static', static: { root: source.config.dataDir } },
            null
        );
        expect([inside.code, inside.data.errors[0].path]).to.equal([
            40001,
            'document.sections.hosts.0.static.root'
        ]);
        const taken = await importing(
            { domain: 'other.test', aliases: ['www.full.test'], upstream: upstream.address },
            token
        );
        expect([taken.code, taken.data.errors[0].path]).to.equal([
            40001,
            'document.sections.hosts.0.aliases.0'
        ]);
    });

    it('needs a session that proved itself lately, but not to look', async () => {
        let ahead = 0;
        const target = await startPanel({ clock: { now: () => Date.now() + ahead } });
        try {
            const { data: document } = await target.client.get(`${base}/export`);
            ahead = 20 * 60_000;
            expect(
                (await target.client.post(`${base}/import`, { document, mode: 'merge', dryRun: true })).status
            ).to.equal(200);
            expect(
                (await target.client.post(`${base}/import`, { document, mode: 'merge', dryRun: false })).code
            ).to.equal(40301);
            expect((await target.client.post(`${base}/export`, { passphrase })).code).to.equal(40301);
            expect((await target.client.post(`${base}/export`, {})).status).to.equal(200);
        } finally {
            await target.close();
        }
    });

    it('serves the sites of a Caddyfile, as hosts where it can and as they stand where it cannot', async () => {
        const text = `
            http://one.caddy.test {
                reverse_proxy /api/* ${upstream.address}
                reverse_proxy ${upstream.address}
            }
            http://two.caddy.test {
                redir https://elsewhere.test{uri} 301
            }
            http://odd.caddy.test {
                respond "brew" 418
            }
            http://auth.caddy.test {
                basicauth {
                    bob $2a$04$Zkiu1VNzXSs1NGBqnPqNVu4kDzFSbqA.mLMyLMcNvc1hHaB4AXTGO
                }
                reverse_proxy ${upstream.address}
            }
            http://php.caddy.test {
                root * /srv/php
                php_fastcgi 127.0.0.1:9 127.0.0.1:10
            }
            :18999 {
                respond "x"
            }`;
        const document = { format: 'caddyfile', text };
        const { state, result, error } = await ended(
            source,
            await source.client.post(`${base}/import`, { document, mode: 'merge', dryRun: false })
        );
        expect([state, error]).to.equal(['succeeded', null]);
        expect(result.sections.hosts.create).to.only.include([
            'one.caddy.test',
            'two.caddy.test',
            'odd.caddy.test',
            'auth.caddy.test',
            'php.caddy.test'
        ]);
        expect(result.sections.hosts.notes).to.equal([
            {
                name: 'odd.caddy.test',
                message: 'becomes advanced, as it stands: its handler static_response has the setting body'
            }
        ]);
        expect(result.notes).to.equal(['Left out: a route on :18999 that is for every name; a host has one']);
        expect((await visit(source, 'one.caddy.test', '/api/x')).status).to.equal(200);
        expect((await visit(source, 'two.caddy.test', '/y')).headers['location']).to.equal(
            'https://elsewhere.test/y'
        );
        expect((await visit(source, 'odd.caddy.test')).status).to.equal(418);
        expect((await visit(source, 'auth.caddy.test')).status).to.equal(401);
        const {
            data: [one]
        } = await source.client.get('/api/hosts?q=one.caddy.test');
        const {
            data: [php]
        } = await source.client.get('/api/hosts?q=php.caddy.test');
        expect(php.php.upstreams).to.equal([
            { address: '127.0.0.1:9', weight: 1 },
            { address: '127.0.0.1:10', weight: 1 }
        ]);
        expect([one.ssl, one.upstream, one.locations]).to.equal([
            false,
            upstream.address,
            [{ path: '/api', upstream: upstream.address, stripPrefix: false }]
        ]);
    });

    it('says what of a Caddyfile it drops, and keeps its health checks', async () => {
        const text = `{
                email ops@caddy.test
                acme_ca https://ca.caddy.test/directory
                grace_period 10s
                storage file_system /var/lib/other
                log {
                    output file /var/log/caddy.log
                }
                servers {
                    timeouts {
                        read_body 10s
                    }
                }
            }
            healthy.test {
                tls me@healthy.test {
                    protocols tls1.3
                    client_auth {
                        mode require
                    }
                }
                log
                handle_errors {
                    respond "sorry"
                }
                reverse_proxy 127.0.0.1:1 127.0.0.1:2 {
                    health_uri /health?x=1
                    health_interval 10s
                    health_timeout 1500ms
                    health_status 204
                    fail_duration 1m
                    max_fails 3
                    lb_try_duration 5s
                }
            }
            http://loose.test {
                reverse_proxy 127.0.0.1:1 {
                    health_uri /up
                }
            }
            http://picky.test {
                reverse_proxy 127.0.0.1:1 {
                    health_uri /up
                    health_body ok
                }
            }
            http://files.test {
                root * /srv
                file_server {
                    hide *.key
                }
            }`;
        const { data: plan } = await source.client.post(`${base}/import`, {
            document: { format: 'caddyfile', text },
            mode: 'merge',
            dryRun: true
        });
        expect(plan.notes).to.equal([
            'Left out: email me@healthy.test; the setting engine.acmeEmail has the address that CAs are told',
            'Left out: the CA https://ca.caddy.test/directory; the setting engine.acmeDirectory names the one that sslMode auto asks',
            'Left out: log: what is logged, and where to',
            'Left out: the settings storage of that Caddy itself',
            'Left out: the settings grace_period of all servers',
            'Left out: the settings read_timeout of the server on :443',
            'Left out: the settings read_timeout of the server on :80'
        ]);
        const notes = (domain: string): string[] =>
            plan.sections.hosts.notes.flatMap(({ name, message }: { name: string; message: string }) =>
                name === domain ? [message] : []
            );
        expect(notes('healthy.test')).to.equal([
            'healthCheck: timeoutSeconds is 2; it was 1.5 s',
            'left out: handle_errors, what it answers in place of an error',
            'left out: client_auth; visitors need no certificate of their own any more',
            'left out: the settings protocol_min of its TLS'
        ]);
        expect(notes('loose.test')).to.equal([
            'healthCheck: a status of 2xx is healthy; it was every status from 200 to 399'
        ]);
        expect(notes('picky.test')).to.equal([
            'becomes advanced, as it stands: its configuration has the setting expect_body'
        ]);
        expect(notes('files.test')).to.equal(['left out: hide *.key; these files are served']);
        const [healthy] = text.split('http://loose.test');
        await ended(
            source,
            await source.client.post(`${base}/import`, {
                document: { format: 'caddyfile', text: healthy },
                mode: 'merge',
                dryRun: false
            })
        );
        const [host] = (await source.client.get('/api/hosts?q=healthy.test')).data;
        expect([host.healthCheck, host.loadBalancing.tryDurationSeconds]).to.equal([
            {
                path: '/health?x=1',
                intervalSeconds: 10,
                timeoutSeconds: 2,
                expectStatus: 204,
                passive: { maxFails: 3, failDurationSeconds: 60 }
            },
            5
        ]);
        await made(source.client.delete(`/api/hosts/${host.id}`));
    });

    it('lets a Caddyfile read nothing of this machine', async () => {
        for (const text of [
            'import /etc/passwd',
            'a.test {\n "im\\port" /etc/passwd\n}',
            'a.test {\n {$X:import} /etc/passwd\n}',
            'import *'
        ]) {
            const {
                code,
                data,
                text: answer
            } = await source.client.post(`${base}/import`, {
                document: { format: 'caddyfile', text },
                mode: 'merge',
                dryRun: true
            });
            expect([text, code, data.errors?.[0]?.path]).to.equal([text, 40001, 'document.text']);
            expect(answer).to.not.contain('root:');
        }
        const { code, data } = await source.client.post(`${base}/import`, {
            document: { format: 'caddyfile', text: 'a.test {\n  no_such_directive\n}' },
            mode: 'merge',
            dryRun: true
        });
        expect([code, data.errors[0].message]).to.equal([
            40001,
            'The Caddyfile cannot be read: Caddyfile:2: unrecognized directive: no_such_directive'
        ]);
        const snippet = await source.client.post(`${base}/import`, {
            document: {
                format: 'caddyfile',
                text: '(log) {\n encode gzip\n}\nhttp://snip.test {\n import log\n respond 204\n}'
            },
            mode: 'merge',
            dryRun: true
        });
        expect(snippet.status).to.equal(200);
    });
});
