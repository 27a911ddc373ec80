/** What auth/ stores. Times are milliseconds since 1970; credentials are hashed or sealed. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** One login, from then until its refresh token has expired. Ids are never given twice. */
export const SessionEntity = defineEntity({
    name: 'Session',
    tableName: 'auth_sessions',
    properties: (p) => ({
        id: p.integer().primary(),
        userId: p.integer(),
        /** The id of the one refresh token that is not spent. */
        refreshId: p.string(),
        /** The id of the refresh token that was spent last; null before the first was. */
        spentId: p.string().nullable(),
        spentAt: p.integer().nullable(),
        createdAt: p.integer(),
        /** Written now and then, not at each request. */
        lastSeenAt: p.integer(),
        /** Last login or step-up. */
        provenAt: p.integer(),
        expiresAt: p.integer(),
        ip: p.string(),
        userAgent: p.string().nullable()
    })
});

/** An API token; or a mandate of a plugin or a grant to an OAuth client, whose `hash` is of no secret. A revoked one stays as a row until it would have expired, so that its bearer is told what happened. */
export const ApiTokenEntity = defineEntity({
    name: 'ApiToken',
    tableName: 'auth_tokens',
    properties: (p) => ({
        id: p.integer().primary(),
        userId: p.integer(),
        name: p.string(),
        hash: p.string(),
        permissions: p.json<string[]>(),
        createdAt: p.integer(),
        expiresAt: p.integer(),
        lastUsedAt: p.integer().nullable(),
        revokedAt: p.integer().nullable(),
        /** The plugin that holds the mandate; null for a token. */
        plugin: p.string().nullable(),
        /** The ids of the routes that a mandate is for. */
        routes: p.json<string[]>().nullable(),
        /** The OAuth client that holds the grant; null for a token or mandate. */
        clientId: p.string().nullable(),
        /** The path that the tokens of a grant are good for. */
        resource: p.string().nullable()
    })
});

/** An OAuth client that was registered here. */
export const OauthClientEntity = defineEntity({
    name: 'OAuthClient',
    tableName: 'auth_oauth_clients',
    properties: (p) => ({
        id: p.string().primary(),
        /** The only user who may authorize it; null: it registered itself, and every user may. */
        userId: p.integer().nullable(),
        name: p.string(),
        redirectUris: p.json<string[]>(),
        createdAt: p.integer()
    })
});

/** A code, access token or refresh token of an OAuth grant, as a hash. A spent one stays, so that its second use is noticed. */
export const OauthTokenEntity = defineEntity({
    name: 'OAuthToken',
    tableName: 'auth_oauth_tokens',
    properties: (p) => ({
        id: p.integer().primary(),
        hash: p.string(),
        grantId: p.integer(),
        kind: p.string(),
        expiresAt: p.integer(),
        spentAt: p.integer().nullable(),
        /** Of a code: where it was sent. */
        redirectUri: p.string().nullable(),
        /** Of a code: the SHA-256 of what its client must show (RFC 7636). */
        challenge: p.string().nullable()
    })
});

/** An account's second factor, and what is known of attempts at it. */
export const SecondFactorEntity = defineEntity({
    name: 'SecondFactor',
    tableName: 'auth_second_factors',
    properties: (p) => ({
        userId: p.integer().primary(),
        /** Sealed; null while the first one waits to be confirmed. */
        secret: p.string().nullable(),
        /** Sealed; waits to be confirmed. */
        pending: p.string().nullable(),
        /** The last time step whose code was used; none at or before it works again. */
        lastStep: p.integer(),
        /** When the last wrong codes came. */
        wrongAt: p.json<number[]>(),
        /** Until when no code is looked at. */
        closedUntil: p.integer(),
        /** What the recovery codes are hashed under; null: a key of this panel, as older versions did. */
        recoverySalt: p.string().nullable()
    })
});

/** A recovery code that was not used yet, as a hash. */
export const RecoveryCodeEntity = defineEntity({
    name: 'RecoveryCode',
    tableName: 'auth_recovery_codes',
    properties: (p) => ({ hash: p.string().primary(), userId: p.integer() })
});

/** A challenge that was solved once and is still young enough to be tried again. */
export const SpentChallengeEntity = defineEntity({
    name: 'SpentChallenge',
    tableName: 'auth_spent_challenges',
    properties: (p) => ({ challenge: p.string().primary(), expiresAt: p.integer() })
});

/** Failed logins by network, by account, and by account from one network. */
export const ThrottleEntity = defineEntity({
    name: 'Throttle',
    tableName: 'auth_throttle',
    properties: (p) => ({
        key: p.string().primary(),
        failures: p.integer(),
        blockedUntil: p.integer(),
        failedAt: p.integer(),
        succeededAt: p.integer()
    })
});

/** Every entity of this feature. */
export const authEntities = [
    SessionEntity,
    ApiTokenEntity,
    OauthClientEntity,
    OauthTokenEntity,
    SecondFactorEntity,
    RecoveryCodeEntity,
    SpentChallengeEntity,
    ThrottleEntity
] as const;

class CreateAuthTables extends Migration {
    override up(): void {
        this.addSql(`create table auth_sessions (
            id integer primary key autoincrement,
            user_id integer not null,
            refresh_id text not null,
            created_at integer not null,
            last_seen_at integer not null,
            proven_at integer not null,
            expires_at integer not null,
            ip text not null,
            user_agent text
        )`);
        this.addSql('create index auth_sessions_user on auth_sessions (user_id)');
        this.addSql(`create table auth_tokens (
            id integer primary key autoincrement,
            user_id integer not null,
            name text not null,
            hash text not null unique,
            permissions text not null,
            created_at integer not null,
            expires_at integer not null,
            last_used_at integer,
            revoked_at integer
        )`);
        this.addSql('create index auth_tokens_user on auth_tokens (user_id)');
        this.addSql(`create table auth_second_factors (
            user_id integer primary key not null,
            secret text,
            pending text,
            last_step integer not null,
            wrong_at text not null,
            closed_until integer not null
        )`);
        this.addSql(
            'create table auth_recovery_codes (hash text primary key not null, user_id integer not null) without rowid'
        );
        this.addSql('create index auth_recovery_codes_user on auth_recovery_codes (user_id)');
        this.addSql(
            'create table auth_spent_challenges (challenge text primary key not null, expires_at integer not null) without rowid'
        );
        this.addSql(`create table auth_throttle (
            key text primary key not null,
            failures integer not null,
            blocked_until integer not null,
            failed_at integer not null,
            succeeded_at integer not null
        ) without rowid`);
    }
}

/** Codes that are hashed under a key of this panel could not move with their account to another one. */
class AddRecoverySalt extends Migration {
    override up(): void {
        this.addSql('alter table auth_second_factors add column recovery_salt text');
    }
}

/** A mandate is listed and ends like a token. */
class AddMandates extends Migration {
    override up(): void {
        this.addSql('alter table auth_tokens add column plugin text');
        this.addSql('alter table auth_tokens add column routes text');
    }
}

/** A client whose answer was lost sends the token that it has spent: the session must know which one that was, also after a restart. */
class AddSpentToken extends Migration {
    override up(): void {
        this.addSql('alter table auth_sessions add column spent_id text');
        this.addSql('alter table auth_sessions add column spent_at integer');
    }
}

/** A grant is listed and ends like a token; what its client shows is kept beside it, as hashes. */
class AddOAuth extends Migration {
    override up(): void {
        this.addSql('alter table auth_tokens add column client_id text');
        this.addSql('alter table auth_tokens add column resource text');
        this.addSql(`create table auth_oauth_clients (
            id text primary key not null,
            user_id integer,
            name text not null,
            redirect_uris text not null,
            created_at integer not null
        ) without rowid`);
        this.addSql(`create table auth_oauth_tokens (
            id integer primary key autoincrement,
            hash text not null unique,
            grant_id integer not null references auth_tokens (id) on delete cascade,
            kind text not null,
            expires_at integer not null,
            spent_at integer,
            redirect_uri text,
            challenge text
        )`);
        this.addSql('create index auth_oauth_tokens_grant on auth_oauth_tokens (grant_id)');
    }
}

/** The tables of this feature, in the order in which they were added. */
export const authMigrations: readonly MigrationObject[] = [
    { name: '0001-auth', class: CreateAuthTables },
    { name: '0002-recovery-salt', class: AddRecoverySalt },
    { name: '0003-mandates', class: AddMandates },
    { name: '0004-spent-refresh-token', class: AddSpentToken },
    { name: '0005-oauth', class: AddOAuth }
];
