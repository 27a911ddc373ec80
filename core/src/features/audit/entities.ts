/**
 * The tables of the audit log. `audit_entries` is the log itself; its only index is its number, so that writing an entry touches one page.
 * `audit_facets` (a row for each entry) and `audit_words` (a trigram index of blocks of entries) serve filters and are filled in batches.
 * Both can be rebuilt from the entries, and the verification does not rely on them.
 */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** An entry of the chain. `id` is its number, without gaps; `at` is in milliseconds since 1970. */
export const AuditEntryEntity = defineEntity({
    name: 'AuditEntry',
    tableName: 'audit_entries',
    properties: (p) => ({
        id: p.integer().primary(),
        at: p.integer(),
        actorId: p.integer().nullable(),
        username: p.string().nullable(),
        tokenId: p.integer().nullable(),
        mandateId: p.integer().nullable(),
        plugin: p.string().nullable(),
        action: p.string(),
        resource: p.string(),
        resourceId: p.string().nullable(),
        outcome: p.string(),
        status: p.integer().nullable(),
        code: p.integer(),
        /** How many equal events the entry stands for. */
        count: p.integer(),
        ip: p.string().nullable(),
        userAgent: p.string().nullable(),
        requestId: p.string().nullable(),
        /** Canonical JSON; null when nothing changed. */
        changes: p.text().nullable(),
        /** HMAC-SHA256 over the entry and the hash before it, hexadecimal. */
        hash: p.string(),
        /** 1 when an earlier entry has a later time, since the clock was set back. */
        late: p.integer()
    })
});

/** A signed entry number. `regular`: the entry was there with this hash. `sealed`: the entries up to it were pruned. */
export const AuditCheckpointEntity = defineEntity({
    name: 'AuditCheckpoint',
    tableName: 'audit_checkpoints',
    properties: (p) => ({
        sequence: p.integer().primary(),
        kind: p.string(),
        hash: p.string(),
        at: p.integer(),
        /** How many entries have been pruned in all; 0 for `regular`. */
        removed: p.integer(),
        signature: p.string()
    })
});

/** The entities of the audit log. */
export const auditEntities = [AuditEntryEntity, AuditCheckpointEntity] as const;

class CreateAuditTables extends Migration {
    override up(): void {
        // resource_id has no type: SQLite then keeps integers as integers and text as text.
        this.addSql(`create table audit_entries (
            id integer primary key not null,
            at integer not null,
            actor_id integer,
            username text,
            token_id integer,
            plugin text,
            action text not null,
            resource text not null,
            resource_id,
            outcome text not null,
            status integer,
            code integer not null,
            count integer not null,
            ip text,
            user_agent text,
            request_id text,
            changes text,
            hash text not null,
            late integer not null
        )`);
        this.addSql(`create table audit_checkpoints (
            sequence integer primary key not null,
            kind text not null check (kind in ('regular', 'sealed')),
            hash text not null,
            at integer not null,
            removed integer not null,
            signature text not null
        )`);
        this.addSql(`create table audit_facets (
            id integer primary key not null,
            actor_id integer,
            username text collate nocase,
            action text not null,
            resource text not null,
            resource_id,
            outcome text not null,
            late integer not null
        )`);
        this.addSql('create index audit_facets_actor_id on audit_facets (actor_id)');
        this.addSql('create index audit_facets_username on audit_facets (username)');
        this.addSql('create index audit_facets_action on audit_facets (action)');
        this.addSql('create index audit_facets_resource on audit_facets (resource)');
        this.addSql('create index audit_facets_resource_id on audit_facets (resource_id)');
        this.addSql('create index audit_facets_outcome on audit_facets (outcome)');
        this.addSql('create index audit_facets_late on audit_facets (id) where late = 1');
        this.addSql(
            "create virtual table audit_words using fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram')"
        );
        this.addSql(
            'create table audit_indexed (one integer primary key check (one = 1), facets integer not null, blocks integer not null)'
        );
        this.addSql('insert into audit_indexed (one, facets, blocks) values (1, 0, 0)');
    }
}

class AddMandates extends Migration {
    override up(): void {
        this.addSql('alter table audit_entries add column mandate_id integer');
    }
}

/** The migrations of the audit log. */
export const auditMigrations: readonly MigrationObject[] = [
    { name: '0001-audit', class: CreateAuditTables },
    { name: '0002-mandates', class: AddMandates }
];
