/** Accounts and logins on a real database behind a real HTTP server. The test sets the clock, the audit log is kept in memory, and password hashes are cheap and counted. */
import { createHash } from 'node:crypto';

import { hash as argon2, verify as verifyArgon2 } from '@node-rs/argon2';
import { generateSync } from 'otplib';

import { Auth, type AuthLimits } from '../../../core/src/features/auth/auth.ts';
import { authEntities, authMigrations } from '../../../core/src/features/auth/entities.ts';
import { authRoutes } from '../../../core/src/features/auth/routes.ts';
import { Accounts } from '../../../core/src/features/users/accounts/accounts.ts';
import { Console } from '../../../core/src/features/users/console.ts';
import { userEntities, userMigrations } from '../../../core/src/features/users/entities.ts';
import { Passwords } from '../../../core/src/features/users/passwords/passwords.ts';
import { Permissions } from '../../../core/src/features/users/roles/permissions.ts';
import { Roles } from '../../../core/src/features/users/roles/roles.ts';
import { userRoutes } from '../../../core/src/features/users/routes.ts';
import { Users } from '../../../core/src/features/users/users.ts';
import type { Call, Caller } from '../../../core/src/platform/call.ts';
import { Outbound } from '../../../core/src/platform/outbound/client.ts';
import type { AuditEntry, Recorder } from '../../../core/src/server/http/ports.ts';
import { findProtectedResource, json, type Route, stream } from '../../../core/src/server/http/route.ts';
import { createHttpServer, type HttpServer } from '../../../core/src/server/http/server.ts';
import { createTestPorts } from './http-ports.ts';
import { type HandClock, handClock, openStore, type Store } from './store.ts';

/** An answer over HTTP. */
export interface Answer {
    readonly status: number;
    readonly code: number;
    readonly message: string;
    // A test reads the fields that it expects, and so checks them.
    readonly data: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- see above
    readonly headers: Readonly<Record<string, string | undefined>>;
    readonly body: string;
}

export interface AskOptions {
    readonly token?: string;
    readonly body?: unknown;
    readonly ip?: string;
    readonly headers?: Readonly<Record<string, string>>;
}

export interface Entrance {
    readonly store: Store;
    readonly clock: HandClock;
    readonly settings: Record<string, number | boolean>;
    /** Audit entries that were recorded one by one, after their commit. */
    readonly recorded: AuditEntry[];
    /** Audit entries of refusals, which the panel merges. */
    readonly refused: AuditEntry[];
    readonly hashes: { made: number; compared: number };
    readonly permissions: Permissions;
    auth: Auth;
    users: Users;
    roles: Roles;
    accounts: Accounts;
    console: Console;
    server: HttpServer;
    ask(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, options?: AskOptions): Promise<Answer>;
    /** Solves a new challenge and answers its payload in base64. */
    solve(ip?: string): Promise<string>;
    login(username: string, password: string, more?: { totp?: string; ip?: string }): Promise<Answer>;
    /** Adds an account without the API; its password is {@link password}. */
    add(username: string, role: string): Promise<number>;
    /** Logs in and answers the access token. */
    tokenOf(username: string, more?: { totp?: string; ip?: string }): Promise<string>;
    /** Stops and starts everything on the same folder. */
    restart(): Promise<void>;
    remove(): Promise<void>;
}

export const password = 'a mild breeze on tuesday night';

/** The code that an authenticator app shows at a time. */
export function codeOf(secret: string, time: number): string {
    return generateSync({ secret, epoch: Math.floor(time / 1000) });
}

/** Finds the number of a challenge, as a client does. */
export function solveChallenge(challenge: {
    algorithm: string;
    challenge: string;
    salt: string;
    maxnumber: number;
    signature: string;
}): string {
    for (let number = 0; number <= challenge.maxnumber; number += 1) {
        if (createHash('sha256').update(`${challenge.salt}${number}`).digest('hex') === challenge.challenge) {
            return Buffer.from(
                JSON.stringify({
                    algorithm: challenge.algorithm,
                    challenge: challenge.challenge,
                    number,
                    salt: challenge.salt,
                    signature: challenge.signature,
                    took: 1
                })
            ).toString('base64');
        }
    }
    throw new Error('The challenge has no solution');
}

/** A call of the system, which is recorded like any other. */
export function systemCall(recorder: Recorder, actor: Caller): Call {
    return {
        id: 'console',
        actor,
        ip: null,
        userAgent: null,
        ifMatch: null,
        signal: new AbortController().signal,
        async complete(tx, { reply, ...detail }) {
            await recorder.record(tx, {
                action: 'run',
                resource: 'panel',
                ...detail,
                actor: { id: null, username: 'system', tokenId: null, plugin: null },
                outcome: 'success',
                status: null,
                code: 0,
                ip: null,
                userAgent: null,
                requestId: null
            });
            return reply;
        }
    };
}

export const system: Caller = {
    kind: 'system',
    id: null,
    username: 'system',
    role: null,
    tokenId: null,
    permissions: [],
    key: 'system',
    can: () => true,
    sessionId: null,
    plugin: null,
    fresh: true
};

/** Opens everything. `routes` are mounted beside those of auth/ and users/. */
export async function openEntrance(
    options: {
        limits?: AuthLimits;
        jwtSecret?: string;
        routes?: Route[];
        outbound?: Pick<Outbound, 'request'>;
    } = {}
): Promise<Entrance> {
    const store = await openStore({
        entities: [...userEntities, ...authEntities],
        migrations: [
            ...userMigrations.map((each) => ({ ...each, name: `users-${each.name}` })),
            ...authMigrations
        ]
    });
    const clock = handClock();
    const settings: Record<string, number | boolean> = {
        'panel.accessTokenMinutes': 30,
        'panel.refreshTokenDays': 14,
        'panel.stepUpMinutes': 15,
        'panel.requireTotp': false,
        'panel.oauthRegistration': false
    };
    const recorded: AuditEntry[] = [];
    const refused: AuditEntry[] = [];
    const hashes = { made: 0, compared: 0 };
    const recorder: Recorder = {
        record: async (tx, entry) => tx.afterCommit(() => recorded.push(entry)),
        recordAlone: async (entry) => void recorded.push(entry),
        refused: async (entry) => void refused.push(entry)
    };
    const hasher = {
        hash: (text: string, cost: object) => {
            hashes.made += 1;
            return argon2(text, { ...cost, algorithm: 2 });
        },
        verify: (hashed: string, text: string) => {
            hashes.compared += 1;
            return verifyArgon2(hashed, text);
        }
    };
    const permissions = new Permissions();
    const parts = (): Pick<Entrance, 'auth' | 'users' | 'roles' | 'accounts' | 'console' | 'server'> => {
        const { db, keyring } = store;
        const passwords = new Passwords({ cost: { memoryCost: 64, timeCost: 1, parallelism: 1 }, hasher });
        const roles = new Roles({ db, clock, permissions });
        const accounts = new Accounts({ db, clock, passwords, roles });
        const ports = createTestPorts();
        const mounted: { server?: HttpServer } = {};
        const auth = new Auth({
            db,
            clock,
            keyring,
            recorder,
            accounts,
            jwtSecret: options.jwtSecret ?? null,
            settings: { get: (key: string) => settings[key] as never }, // a number or a flag, as the key says
            resolve: (path) => mounted.server?.resolve(path) ?? null,
            oauth: {
                outbound: options.outbound ?? new Outbound({ allow: () => [], log: ports.log }),
                resource: (path) =>
                    findProtectedResource(
                        (place, method) => mounted.server?.resolve(place, method) ?? null,
                        path
                    ),
                permissions: () => permissions.all(),
                origin: (host) => ports.origin(host)
            },
            limits: { challengeNumber: 50, challengesPerMinute: 1e9, ...options.limits }
        });
        const users = new Users({ db, clock, accounts, roles, logins: auth });
        const server = createHttpServer({
            name: 'core',
            prefix: '',
            routes: [
                ...authRoutes(auth),
                ...userRoutes({ users, roles, permissions }),
                ...(options.routes ?? [])
            ],
            ports: {
                ...ports,
                authenticator: auth.authenticator,
                recorder,
                clientAddress: (peer, forwarded) => forwarded ?? peer
            }
        });
        mounted.server = server;
        return {
            auth,
            users,
            roles,
            accounts,
            server,
            console: new Console({ db, accounts, users, logins: auth })
        };
    };
    const entrance: Entrance = {
        store,
        clock,
        settings,
        recorded,
        refused,
        hashes,
        permissions,
        ...parts(),
        async ask(method, path, { token, body, ip = '203.0.113.7', headers = {} } = {}) {
            const answer = await entrance.server.inject({
                method,
                url: path,
                headers: {
                    'x-forwarded-for': ip,
                    'user-agent': 'test agent',
                    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
                    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
                    ...headers
                },
                ...(body === undefined
                    ? {}
                    : { payload: typeof body === 'string' ? body : JSON.stringify(body) })
            });
            const { code, message, data } =
                answer.payload === ''
                    ? { code: 0, message: '', data: null }
                    : (JSON.parse(answer.payload) as Answer);
            return {
                status: answer.statusCode,
                code,
                message,
                data,
                headers: answer.headers as Record<string, string>,
                body: answer.payload
            };
        },
        async solve(ip) {
            return solveChallenge(
                (await entrance.ask('GET', '/api/auth/login', ip === undefined ? {} : { ip })).data
            );
        },
        async login(username, secret, { totp, ip } = {}) {
            return entrance.ask('POST', '/api/auth/login', {
                body: {
                    username,
                    password: secret,
                    altcha: await entrance.solve(ip),
                    ...(totp === undefined ? {} : { totp })
                },
                ...(ip === undefined ? {} : { ip })
            });
        },
        async add(username, role) {
            const passwordHash = await entrance.accounts.hash(username, password, 'password');
            return (await store.db.write((tx) => entrance.users.insert(tx, { username, passwordHash, role })))
                .id;
        },
        async tokenOf(username, more) {
            const answer = await entrance.login(username, password, more);
            if (answer.code !== 0) {
                throw new Error(`${username} cannot log in: ${answer.body}`);
            }
            return answer.data.token as string;
        },
        async restart() {
            await entrance.auth.stop();
            await store.reopen();
            Object.assign(entrance, parts());
        },
        async remove() {
            await entrance.auth.stop();
            await store.remove();
        }
    };
    return entrance;
}

/** Routes with different kinds of access, to try callers on. */
export function things(): Route[] {
    const base = { audit: { action: 'run', resource: 'things' } };
    return [
        json({
            ...base,
            method: 'GET',
            path: '/api/things',
            id: 'things.list',
            access: 'hosts:read',
            summary: 'List',
            handler: () => ['thing']
        }),
        json({
            ...base,
            method: 'POST',
            path: '/api/things',
            id: 'things.create',
            access: 'hosts:write',
            summary: 'Create',
            handler: () => null
        }),
        json({
            ...base,
            method: 'POST',
            path: '/api/things/validate',
            id: 'things.validate',
            access: 'hosts:read',
            effect: 'read',
            summary: 'Validate',
            handler: () => null
        }),
        json({
            ...base,
            method: 'POST',
            path: '/api/things/odd',
            id: 'things.odd',
            access: 'hosts:read',
            summary: 'Write by a reading permission',
            handler: () => null
        }),
        json({
            ...base,
            method: 'GET',
            path: '/api/things/secret',
            id: 'things.secret',
            access: 'hosts:unsafe',
            stepUp: true,
            summary: 'See a secret',
            handler: () => 'secret'
        }),
        stream({
            path: '/api/things/events',
            id: 'things.events',
            access: 'hosts:read',
            summary: 'Watch',
            async *handler() {
                yield { data: 1 };
            }
        })
    ];
}
