import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    type Answer,
    codeOf,
    type Entrance,
    openEntrance,
    password,
    system,
    systemCall
} from '../support/core/entrance.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const next = 'three green lamps 9';
let at: Entrance;
let token: string;
let id: number;

const open = async (): Promise<void> => {
    at = await openEntrance();
    id = await at.add('owner', 'admin');
    token = await at.tokenOf('owner');
};
const close = (): Promise<void> => at.remove();
const ask = (
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: object,
    by = token,
    headers?: Record<string, string>
): Promise<Answer> =>
    at.ask(method, path, {
        token: by,
        ...(body === undefined ? {} : { body }),
        ...(headers === undefined ? {} : { headers })
    });
const code = async (answer: Promise<Answer>): Promise<number> => (await answer).code;
const rows = (): unknown[] => at.store.db.prepare<[], object>('select * from users order by id').all();

describe('POST /api/users', () => {
    beforeEach(open);
    afterEach(close);

    it('creates an account that can log in, and answers what a read answers', async () => {
        const created = await ask('POST', '/api/users', {
            username: 'Alice.Smith',
            password: next,
            role: 'operator'
        });
        expect([created.status, created.headers['location'], created.headers['etag']]).to.equal([
            201,
            `/api/users/${created.data.id}`,
            '"1"'
        ]);
        expect(created.data).to.equal({
            id: created.data.id,
            username: 'Alice.Smith',
            role: 'operator',
            disabled: false,
            totpEnabled: false,
            mustChangePassword: false,
            lastLoginAt: null,
            createdAt: new Date(at.clock.time).toISOString(),
            updatedAt: new Date(at.clock.time).toISOString(),
            version: 1
        });
        expect((await ask('GET', `/api/users/${created.data.id}`)).data).to.equal(created.data);
        expect(await code(at.login('alice.smith', next))).to.equal(0);
        expect((await ask('GET', `/api/users/${created.data.id}`)).data).to.equal({
            ...created.data,
            lastLoginAt: new Date(at.clock.time).toISOString()
        });
        expect(at.recorded.find(({ resource }) => resource === 'users')).to.include({
            action: 'create',
            resourceId: created.data.id,
            status: 201
        });
        expect(JSON.stringify(at.recorded)).not.to.contain(next);
    });

    it('refuses a taken name in any case, a bad name, a weak password, an unknown role and unknown fields', async () => {
        const before = rows();
        expect(
            (await ask('POST', '/api/users', { username: 'OWNER', password: next, role: 'viewer' })).data
        ).to.equal({ reason: 'CONFLICT', field: 'username' });
        for (const username of ['ab', 'a b c', 'ownér', 'оwner', '../etc', '-abc', 'a'.repeat(65), '']) {
            expect(
                await code(ask('POST', '/api/users', { username, password: next, role: 'viewer' })),
                username
            ).to.equal(40001);
        }
        expect(
            (await ask('POST', '/api/users', { username: 'alice', password: 'alice12345', role: 'viewer' }))
                .data.errors[0].path
        ).to.equal('password');
        expect(
            (await ask('POST', '/api/users', { username: 'alice', password: next, role: 'king' })).data
                .errors[0].path
        ).to.equal('role');
        expect(
            await code(
                ask('POST', '/api/users', {
                    username: 'alice',
                    password: next,
                    role: 'viewer',
                    isAdmin: true
                })
            )
        ).to.equal(40001);
        expect(
            await code(
                ask('POST', '/api/users', {
                    username: 'alice',
                    password: next,
                    role: 'viewer',
                    disabled: 'true'
                })
            )
        ).to.equal(40001);
        expect(rows()).to.equal(before);
    });

    it('gives one account when a name is taken twice at once', async () => {
        const answers = await Promise.all(
            [1, 2, 3].map(() =>
                ask('POST', '/api/users', { username: 'alice', password: next, role: 'viewer' })
            )
        );
        expect(answers.map((answer) => answer.code).sort()).to.equal([0, 40900, 40900]);
    });

    it('needs a fresh session', async () => {
        at.clock.time += 15 * 60_000;
        expect(
            await code(ask('POST', '/api/users', { username: 'alice', password: next, role: 'viewer' }))
        ).to.equal(40301);
    });
});

describe('PUT /api/users/{id}', () => {
    beforeEach(open);
    afterEach(close);

    it('merges, ignores read-only fields that come back, and counts the version up', async () => {
        const alice = await at.add('alice', 'operator');
        const { data: before } = await ask('GET', `/api/users/${alice}`);
        const same = await ask('PUT', `/api/users/${alice}`, { ...before, username: 'alicia' });
        expect(same.data).to.include({ username: 'alicia', role: 'operator', version: 2 });
        expect((await ask('GET', `/api/users/${alice}`)).data).to.equal(same.data);
        const stale = await ask('PUT', `/api/users/${alice}`, { ...before, username: 'other' });
        expect([stale.code, stale.data.version]).to.equal([41200, 2]);
        expect(
            await code(ask('PUT', `/api/users/${alice}`, { username: 'other' }, token, { 'if-match': '"1"' }))
        ).to.equal(41200);
        expect(
            await code(ask('PUT', `/api/users/${alice}`, { username: 'other' }, token, { 'if-match': '"2"' }))
        ).to.equal(0);
        expect(await code(ask('PUT', '/api/users/999', { username: 'other' }))).to.equal(40400);
        expect(await code(ask('PUT', `/api/users/${alice}`, { username: 'Owner' }))).to.equal(40900);
    });

    it('ends the sessions of that user on a new password or role, at once, and not on anything else', async () => {
        const alice = await at.add('alice', 'operator');
        const me = async (theirs: string): Promise<number> =>
            code(at.ask('GET', '/api/auth/me', { token: theirs }));
        const session = await at.tokenOf('alice');
        const { data: api } = await ask('POST', '/api/auth/tokens', { name: 'ci' }, session);
        await ask('PUT', `/api/users/${alice}`, { username: 'alicia' });
        expect(await me(session)).to.equal(0);
        await ask('PUT', `/api/users/${alice}`, { role: 'viewer' });
        expect([await me(session), await me(api.token)]).to.equal([40103, 0]);
        const again = await at.tokenOf('alicia');
        await ask('PUT', `/api/users/${alice}`, { password: next });
        expect([await me(again), await me(api.token)]).to.equal([40103, 0]);
        expect(await code(at.login('alicia', next))).to.equal(0);
        await ask('PUT', `/api/users/${alice}`, { disabled: true });
        expect(await me(api.token)).to.equal(40103);
        expect(await code(at.login('alicia', next))).to.equal(40110);
    });

    it("keeps the session that made the change of one's own account", async () => {
        const other = await at.tokenOf('owner');
        expect(await code(ask('PUT', `/api/users/${id}`, { password: next }))).to.equal(0);
        expect(await code(at.ask('GET', '/api/auth/me', { token }))).to.equal(0);
        expect(await code(at.ask('GET', '/api/auth/me', { token: other }))).to.equal(40103);
    });

    it('needs a fresh session for password and role, and for nothing else', async () => {
        const alice = await at.add('alice', 'operator');
        at.clock.time += 15 * 60_000;
        expect(await code(ask('PUT', `/api/users/${alice}`, { password: next }))).to.equal(40301);
        expect(await code(ask('PUT', `/api/users/${alice}`, { role: 'admin' }))).to.equal(40301);
        expect(await code(ask('PUT', `/api/users/${alice}`, { role: 'operator', disabled: true }))).to.equal(
            0
        );
    });

    it('keeps the last enabled admin, also against two changes at once', async () => {
        const second = await at.add('second', 'admin');
        await at.add('idle', 'admin').then((idle) => ask('PUT', `/api/users/${idle}`, { disabled: true }));
        const theirs = await at.tokenOf('second');
        const answers = await Promise.all([
            ask('PUT', `/api/users/${second}`, { role: 'viewer' }),
            ask('PUT', `/api/users/${id}`, { role: 'viewer' }, theirs)
        ]);
        const codes = answers.map((answer) => answer.code);
        expect(codes.filter((each) => each === 0)).to.have.length(1);
        const left = at.store.db
            .prepare<[], { id: number }>("select id from users where role = 'admin' and disabled = 0")
            .all();
        expect(left).to.have.length(1);
        const last = left[0]?.id ?? 0;
        const by = last === id ? token : theirs;
        for (const body of [{ role: 'operator' }, { disabled: true }]) {
            const answer = await ask('PUT', `/api/users/${last}`, body, by);
            expect([answer.code, answer.data.by]).to.equal([40901, 'last-admin']);
        }
        expect(await code(ask('DELETE', `/api/users/${last}`, undefined, by))).to.equal(40901);
    });
});

describe('DELETE /api/users/{id}', () => {
    beforeEach(open);
    afterEach(close);

    it('removes the account with sessions, tokens and second factor; a new one of the name is another', async () => {
        const alice = await at.add('alice', 'operator');
        const session = await at.tokenOf('alice');
        const { data: enrolment } = await ask('POST', '/api/auth/totp', { password }, session);
        await ask('PUT', '/api/auth/totp', { code: codeOf(enrolment.secret, at.clock.time) }, session);
        const { data: api } = await ask('POST', '/api/auth/tokens', { name: 'ci' }, session);
        const removed = await ask('DELETE', `/api/users/${alice}`);
        expect([removed.status, removed.data]).to.equal([200, null]);
        expect(await code(ask('GET', `/api/users/${alice}`))).to.equal(40400);
        expect(await code(at.ask('GET', '/api/auth/me', { token: session }))).to.equal(40103);
        expect(await code(at.ask('GET', '/api/auth/me', { token: api.token }))).to.equal(40103);
        const again = await at.add('alice', 'operator');
        expect(again).to.be.above(alice);
        expect(await code(at.ask('GET', '/api/auth/me', { token: session }))).to.equal(40103);
        expect(await code(at.login('alice', password))).to.equal(0);
    });
});

describe('authority', () => {
    beforeEach(open);
    afterEach(close);

    const manager = async (permissions: string[]): Promise<string> => {
        await ask('POST', '/api/users/roles', { name: 'manager', permissions });
        await at.add('manager', 'manager');
        return at.tokenOf('manager');
    };

    it('is not given by a user who does not have it, by account, role or token', async () => {
        const by = await manager(['users:read', 'users:write', 'hosts:read']);
        const viewer = await at.add('viewer', 'viewer');
        const tries: [Answer, string][] = [
            [
                await ask('POST', '/api/users', { username: 'alice', password: next, role: 'admin' }, by),
                'audit:read'
            ],
            [await ask('PUT', `/api/users/${viewer}`, { role: 'admin' }, by), 'audit:read'],
            [
                await ask(
                    'POST',
                    '/api/users/roles',
                    { name: 'king', permissions: ['hosts:read', 'hosts:write'] },
                    by
                ),
                'hosts:write'
            ],
            [
                await ask(
                    'PUT',
                    '/api/users/roles/manager',
                    { permissions: ['hosts:read', 'hosts:unsafe'] },
                    by
                ),
                'hosts:unsafe'
            ],
            [
                await ask('POST', '/api/auth/tokens', { name: 'ci', permissions: ['hosts:write'] }, by),
                'hosts:write'
            ]
        ];
        for (const [answer, permission] of tries) {
            expect([answer.code, answer.data.permission]).to.equal([40300, permission]);
        }
    });

    it('protects the accounts of those who have more', async () => {
        const by = await manager(['users:read', 'users:write']);
        const before = rows();
        for (const [method, path, body] of [
            ['PUT', `/api/users/${id}`, { password: next }],
            ['PUT', `/api/users/${id}`, { disabled: true }],
            ['PUT', `/api/users/${id}`, { username: 'other' }],
            ['DELETE', `/api/users/${id}`, undefined],
            ['DELETE', `/api/users/${id}/sessions`, undefined],
            ['DELETE', `/api/users/${id}/totp`, undefined]
        ] as const) {
            expect(await code(ask(method, path, body, by)), `${method} ${path}`).to.equal(40300);
        }
        expect(rows()).to.equal(before);
        expect(await code(at.ask('GET', '/api/auth/me', { token }))).to.equal(0);
    });

    it('is not had by a viewer beyond reading and their own account', async () => {
        await ask('POST', '/api/users/roles', { name: 'reader', permissions: ['users:read'] });
        await at.add('viewer', 'viewer');
        const by = await at.tokenOf('viewer');
        expect(await code(ask('GET', '/api/users', undefined, by))).to.equal(0);
        expect(
            await code(ask('POST', '/api/users', { username: 'alice', password: next, role: 'viewer' }, by))
        ).to.equal(40300);
        expect(
            await code(ask('PUT', '/api/auth/password', { currentPassword: password, newPassword: next }, by))
        ).to.equal(0);
        expect(
            await code(ask('POST', '/api/auth/tokens', { name: 'ci', permissions: ['hosts:read'] }, by))
        ).to.equal(0);
        expect(await code(ask('DELETE', '/api/auth/sessions', undefined, by))).to.equal(0);
    });
});

describe('/api/users/roles', () => {
    beforeEach(open);
    afterEach(close);

    it('refuses a name that every object of a client has', async () => {
        const refused = await ask('POST', '/api/users/roles', { name: 'constructor', permissions: [] });
        expect([refused.code, refused.data.errors[0].path]).to.equal([40001, 'name']);
    });

    it('lists the three fixed ones, which no user can change', async () => {
        const { data } = await ask('GET', '/api/users/roles');
        expect(data.map(({ name, fixed }: { name: string; fixed: boolean }) => [name, fixed])).to.equal([
            ['viewer', true],
            ['operator', true],
            ['admin', true]
        ]);
        const [viewer, operator, admin] = data as { permissions: string[] }[];
        expect(viewer?.permissions).to.equal([
            'audit:read',
            'certificates:read',
            'dns:read',
            'engine:read',
            'hosts:read',
            'plugins:read',
            'settings:read',
            'users:read'
        ]);
        expect(operator?.permissions).to.equal(
            [
                ...(viewer?.permissions ?? []),
                'certificates:write',
                'engine:control',
                'engine:logs',
                'hosts:write'
            ].sort()
        );
        const { data: known } = await ask('GET', '/api/users/permissions');
        expect(admin?.permissions).to.equal(known.map(({ name }: { name: string }) => name));
        expect(
            known
                .filter(({ dangerous }: { dangerous: boolean }) => dangerous)
                .map(({ name }: { name: string }) => name)
        ).to.equal(['hosts:unsafe', 'import:run', 'plugins:manage', 'settings:write', 'users:write']);
        expect(await code(ask('PUT', '/api/users/roles/viewer', { permissions: ['hosts:write'] }))).to.equal(
            40300
        );
        expect(await code(ask('DELETE', '/api/users/roles/admin'))).to.equal(40300);
        expect(await code(ask('POST', '/api/users/roles', { name: 'admin' }))).to.equal(40900);
    });

    it('creates, changes and removes one; what it may counts from the next request on', async () => {
        const created = await ask('POST', '/api/users/roles', {
            name: 'deployer',
            description: 'Hosts only',
            permissions: ['hosts:write', 'hosts:read', 'hosts:read']
        });
        expect([created.status, created.headers['location'], created.data.permissions]).to.equal([
            201,
            '/api/users/roles/deployer',
            ['hosts:read', 'hosts:write']
        ]);
        expect((await ask('GET', '/api/users/roles/deployer')).data).to.equal(created.data);
        const dora = await at.add('dora', 'deployer');
        const theirs = await at.tokenOf('dora');
        expect((await at.ask('GET', '/api/auth/me', { token: theirs })).data.permissions).to.equal([
            'hosts:read',
            'hosts:write'
        ]);
        const changed = await ask('PUT', '/api/users/roles/deployer', {
            ...created.data,
            permissions: ['hosts:read']
        });
        expect(changed.data).to.include({ description: 'Hosts only', version: 2 });
        expect((await at.ask('GET', '/api/auth/me', { token: theirs })).data.permissions).to.equal([
            'hosts:read'
        ]);
        expect(await code(ask('PUT', '/api/users/roles/deployer', { version: 1, permissions: [] }))).to.equal(
            41200
        );
        const used = await ask('DELETE', '/api/users/roles/deployer');
        expect([used.code, used.data.by]).to.equal([40901, ['dora']]);
        await ask('PUT', `/api/users/${dora}`, { role: 'viewer' });
        expect(await code(ask('DELETE', '/api/users/roles/deployer'))).to.equal(0);
        expect(await code(ask('GET', '/api/users/roles/deployer'))).to.equal(40400);
        expect(
            await code(ask('POST', '/api/users/roles', { name: 'odd', permissions: ['nothing:known'] }))
        ).to.equal(40001);
    });

    it('needs a fresh session', async () => {
        at.clock.time += 15 * 60_000;
        expect(await code(ask('POST', '/api/users/roles', { name: 'odd' }))).to.equal(40301);
    });

    it('knows the permissions of a plugin while it is registered', async () => {
        const viewer = await at.add('viewer', 'viewer');
        const theirs = await at.tokenOf('viewer');
        const mine = async (): Promise<string[]> =>
            (await at.ask('GET', '/api/auth/me', { token: theirs })).data.permissions as string[];
        const remove = at.permissions.register('notes', [
            { name: 'notes:read', title: 'Read notes', roles: ['viewer', 'operator', 'admin'] },
            { name: 'notes:write', title: 'Write notes', roles: ['admin'] }
        ]);
        expect(await mine()).to.include('notes:read');
        expect((await at.ask('GET', '/api/auth/me', { token })).data.permissions).to.include([
            'notes:read',
            'notes:write'
        ]);
        expect(() =>
            at.permissions.register('other', [{ name: 'hosts:read', title: '', roles: [] }])
        ).to.throw(TypeError, /hosts:read, which the core has already/);
        remove();
        expect(await mine()).not.to.include('notes:read');
        expect(viewer).to.be.a.number();
    });
});

describe('GET /api/users', () => {
    beforeEach(open);
    afterEach(close);

    it('pages by an opaque cursor and filters', async () => {
        for (const name of ['anna', 'bert', 'c_rl', 'dora']) {
            await at.add(name, 'viewer');
        }
        const first = await ask('GET', '/api/users?limit=2&role=viewer');
        expect([first.data.length, first.headers['x-total-count']]).to.equal([2, '4']);
        const url = /<([^>]+)>; rel="next"/.exec(first.headers['link'] ?? '')?.[1] ?? '';
        await at.add('emil', 'viewer');
        const second = await ask('GET', url);
        expect(second.data.map(({ username }: { username: string }) => username)).to.equal(['c_rl', 'dora']);
        expect((await ask('GET', '/api/users?q=_')).data).to.have.length(1);
        expect((await ask('GET', '/api/users?q=%25')).data).to.have.length(0);
        expect(await code(ask('GET', '/api/users?cursor=nonsense'))).to.equal(40001);
        expect(await code(ask('GET', '/api/users?limit=0'))).to.equal(40001);
        expect(JSON.stringify((await ask('GET', '/api/users')).data)).not.to.contain('argon2');
    });
});

describe('DELETE /api/users/{id}/sessions and /totp', () => {
    beforeEach(open);
    afterEach(close);

    it('logs a user out everywhere, and takes a lost second factor away', async () => {
        const alice = await at.add('alice', 'operator');
        const session = await at.tokenOf('alice');
        expect(await code(ask('DELETE', `/api/users/${alice}/sessions`))).to.equal(0);
        expect(await code(at.ask('GET', '/api/auth/me', { token: session }))).to.equal(40103);
        expect(await code(ask('DELETE', `/api/users/${alice}/totp`))).to.equal(40400);
        const again = await at.tokenOf('alice');
        const { data } = await ask('POST', '/api/auth/totp', { password }, again);
        await ask('PUT', '/api/auth/totp', { code: codeOf(data.secret, at.clock.time) }, again);
        expect((await ask('GET', `/api/users/${alice}`)).data.totpEnabled).to.be.true();
        expect(await code(ask('DELETE', `/api/users/${alice}/totp`))).to.equal(0);
        expect(await code(at.ask('GET', '/api/auth/me', { token: again }))).to.equal(40103);
        expect((await ask('GET', `/api/users/${alice}`)).data.totpEnabled).to.be.false();
        expect(await code(at.login('alice', password))).to.equal(0);
        expect(await code(ask('DELETE', '/api/users/999/sessions'))).to.equal(40400);
    });
});

describe('Console', () => {
    beforeEach(async () => {
        at = await openEntrance();
    });
    afterEach(close);

    const call = (): ReturnType<typeof systemCall> =>
        systemCall(
            {
                record: async (tx, entry) => tx.afterCommit(() => at.recorded.push(entry)),
                recordAlone: async () => undefined,
                refused: async () => undefined
            },
            system
        );

    it('makes the first admin with the password that was given, once', async () => {
        const made = await at.console.firstRun(call(), password);
        expect(made).to.include({ username: 'admin', password: null });
        expect(await at.console.firstRun(call(), 'another good password')).to.be.null();
        const { data } = await at.login('admin', password);
        expect(data.user).to.include({ role: 'admin', mustChangePassword: false });
    });

    it('makes a password where none was given, which must be changed', async () => {
        const made = await at.console.firstRun(call(), null);
        expect(made?.password).to.match(/^[a-z2-9]{4}(-[a-z2-9]{4}){4}$/);
        const { data } = await at.login('admin', made?.password ?? '');
        expect(data.user.mustChangePassword).to.be.true();
        expect(JSON.stringify([at.recorded, at.store.lines])).not.to.contain(made?.password ?? '');
    });

    it('refuses a weak first password by the name of its variable, and makes no user', async () => {
        await expect(at.console.firstRun(call(), 'password123')).to.reject(
            Error,
            /^PORTICO_ADMIN_PASSWORD cannot be used/
        );
        expect(rows()).to.be.empty();
    });

    it('opens an account again: password, lock-outs, sessions, disabled, and the second factor on demand', async () => {
        id = await at.add('owner', 'admin');
        token = await at.tokenOf('owner');
        const { data } = await ask('POST', '/api/auth/totp', { password });
        await ask('PUT', '/api/auth/totp', { code: codeOf(data.secret, at.clock.time) });
        for (let attempt = 0; attempt < 6; attempt += 1) {
            await at.login('owner', 'wrong password', { ip: '198.51.100.1' });
        }
        const opened = await at.console.resetPassword(call(), 'OWNER', { secondFactor: true });
        expect(await code(at.ask('GET', '/api/auth/me', { token }))).to.equal(40103);
        const login = await at.login('owner', opened.password ?? '', { ip: '198.51.100.1' });
        expect(login.data.user).to.include({ mustChangePassword: true, totpEnabled: false });
        expect(
            at.recorded.find(({ resource, action }) => resource === 'users' && action === 'update')?.actor
                .username
        ).to.equal('system');
        await expect(at.console.resetPassword(call(), 'nobody')).to.reject(Error, /no user nobody/);
    });

    it('makes an API token for an account', async () => {
        await at.add('owner', 'operator');
        const made = await at.auth.createToken(call(), 'owner', {
            name: 'backup',
            permissions: ['hosts:read']
        });
        expect(await code(at.ask('GET', '/api/auth/me', { token: made.data.token }))).to.equal(0);
        const refused = (await expect(
            at.auth.createToken(call(), 'owner', { name: 'more', permissions: ['users:write'] })
        ).to.reject()) as Error & { code: number };
        expect(refused.code).to.equal(40300);
    });
});
