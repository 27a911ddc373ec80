/** The tables of accounts, and of the roles that users created. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** An account. An id is never used again, since the audit log, sessions and tokens refer to it. Times are milliseconds since 1970. */
export const UserEntity = defineEntity({
    name: 'User',
    tableName: 'users',
    properties: (p) => ({
        id: p.integer().primary(),
        version: p.integer(),
        username: p.string(),
        /** The name in lower case, so that two accounts never differ in case only. */
        usernameKey: p.string(),
        /** argon2id, as a PHC string. */
        passwordHash: p.string(),
        role: p.string(),
        disabled: p.boolean(),
        mustChangePassword: p.boolean(),
        lastLoginAt: p.integer().nullable(),
        createdAt: p.integer(),
        updatedAt: p.integer()
    })
});

/** A role that a user created. The three fixed ones have no row. */
export const RoleEntity = defineEntity({
    name: 'Role',
    tableName: 'roles',
    properties: (p) => ({
        name: p.string().primary(),
        version: p.integer(),
        description: p.string(),
        permissions: p.json<string[]>(),
        createdAt: p.integer(),
        updatedAt: p.integer()
    })
});

/** The entities of accounts and roles. */
export const userEntities = [UserEntity, RoleEntity] as const;

class CreateUserTables extends Migration {
    override up(): void {
        this.addSql(`create table users (
            id integer primary key autoincrement,
            version integer not null,
            username text not null,
            username_key text not null unique,
            password_hash text not null,
            role text not null,
            disabled integer not null,
            must_change_password integer not null,
            last_login_at integer,
            created_at integer not null,
            updated_at integer not null
        )`);
        this.addSql('create index users_role on users (role)');
        this.addSql(`create table roles (
            name text primary key not null,
            version integer not null,
            description text not null,
            permissions text not null,
            created_at integer not null,
            updated_at integer not null
        )`);
    }
}

/** The migrations of accounts and roles. */
export const userMigrations: readonly MigrationObject[] = [{ name: '0001-users', class: CreateUserTables }];
