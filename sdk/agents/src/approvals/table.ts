/** The table of approvals, in the plugin's own database. Times are milliseconds since 1970. */
import type { Effect } from '@portico/sdk';
import { defineEntity, type InferEntity, p, type Row } from '@portico/sdk/db';

/** Where an approval stands. `approved` with a claim is being executed; every state but `pending` and `approved` is final. */
export type ApprovalState = 'pending' | 'approved' | 'executed' | 'failed' | 'rejected' | 'expired';

/**
 * Makes the entity of a plugin's approvals, and the statements of the migration that creates its table.
 *
 * @param name - of the entity, unique in the panel: `McpApproval`
 * @example `const approvals = approvalsTable('McpApproval');` and then `entities: [approvals.entity]`, `migrations: [{ name: '0001-approvals', up: approvals.up }]`
 */
export function approvalsTable(name: string) {
    const entity = defineEntity({
        name,
        tableName: 'approvals',
        properties: {
            id: p.integer().primary(),
            state: p.string().$type<ApprovalState>(),
            /** What it belongs to in the plugin: a tool, a conversation. */
            scope: p.string(),
            /** JSON object: what else the plugin wants to know of it. */
            facts: p.text(),
            route: p.string(),
            effect: p.string().$type<Effect>(),
            dangerous: p.boolean(),
            /** The arguments, sealed; null once it is over. */
            sealed: p.text().nullable(),
            /** JSON: the arguments with secrets masked. */
            shown: p.text(),
            hash: p.string(),
            etag: p.string().nullable(),
            /** JSON. */
            plan: p.text(),
            /** Whose it is; `actorKey` also tells one token from another. */
            userId: p.integer(),
            actorKey: p.string(),
            username: p.string(),
            tokenId: p.integer().nullable(),
            createdAt: p.integer(),
            expiresAt: p.integer(),
            decidedBy: p.string().nullable(),
            decidedAt: p.integer().nullable(),
            reason: p.string().nullable(),
            /** Since when it is executed; set once, by compare-and-set. */
            claimedAt: p.integer().nullable(),
            code: p.integer().nullable()
        }
    });
    return { entity, up: statements };
}

const statements: readonly string[] = [
    `create table approvals (id integer primary key autoincrement, state text not null, scope text not null, facts text not null, route text not null, effect text not null,
    dangerous integer not null, sealed text, shown text not null, hash text not null, etag text, plan text not null, user_id integer not null, actor_key text not null, username text not null,
    token_id integer, created_at integer not null, expires_at integer not null, decided_by text, decided_at integer, reason text, claimed_at integer, code integer)`,
    'create index approvals_open on approvals (state, expires_at)',
    'create index approvals_of_user on approvals (user_id, id)',
    'create index approvals_of_scope on approvals (scope, id)'
];

/** What {@link approvalsTable} makes. */
export type ApprovalsTable = ReturnType<typeof approvalsTable>;

/** A row of the table; an empty column is null. */
export type ApprovalRow = Row<InferEntity<ApprovalsTable['entity']>>;
