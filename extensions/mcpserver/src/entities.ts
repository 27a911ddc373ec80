/** The tables of the plugin's own database. Times are milliseconds since 1970. */
import { approvalsTable } from '@portico/agents';
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p } from '@portico/sdk/db';

/** How a write is approved. */
export type ApprovalWay = 'panel' | 'client' | 'none';

/** The table of approvals. */
export const approvals = approvalsTable('McpserverApproval');

/** What an admin decided about one tool. */
export const SwitchEntity = defineEntity({
    name: 'McpserverSwitch',
    tableName: 'switches',
    properties: {
        /** Name of the tool. */
        name: p.string().primary(),
        enabled: p.boolean(),
        approval: p.string().$type<ApprovalWay>().nullable()
    }
});

/** A prompt of the admin. */
export const PromptEntity = defineEntity({
    name: 'McpserverPrompt',
    tableName: 'prompts',
    properties: {
        name: p.string().primary(),
        title: p.string(),
        description: p.text(),
        /** JSON array. */
        arguments: p.text(),
        text: p.text()
    }
});

/** One call of a tool. */
export const CallEntity = defineEntity({
    name: 'McpserverCall',
    tableName: 'calls',
    properties: {
        id: p.integer().primary(),
        at: p.integer(),
        tool: p.string(),
        /** Null for a tool of the plugin itself. */
        route: p.string().nullable(),
        userId: p.integer(),
        username: p.string(),
        tokenId: p.integer().nullable(),
        client: p.string().nullable(),
        code: p.integer(),
        ms: p.integer(),
        bytes: p.integer(),
        approvalId: p.integer().nullable()
    }
});
/** A row of `calls` that is not saved yet. */
export type NewCall = {
    readonly [K in Exclude<keyof InferEntity<typeof CallEntity>, symbol | 'id'>]: K extends 'route' | 'client'
        ? string | null
        : K extends 'tokenId' | 'approvalId'
          ? number | null
          : InferEntity<typeof CallEntity>[K];
};

/** The entities of the plugin. */
export const entities = [approvals.entity, SwitchEntity, PromptEntity, CallEntity];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    { name: '0001-approvals', up: [...approvals.up] },
    {
        name: '0002-switches-prompts-calls',
        up: [
            'create table switches (name text not null primary key, enabled integer not null, approval text)',
            'create table prompts (name text not null primary key, title text not null, description text not null, arguments text not null, text text not null)',
            `create table calls (id integer primary key autoincrement, at integer not null, tool text not null, route text, user_id integer not null, username text not null, token_id integer,
            client text, code integer not null, ms integer not null, bytes integer not null, approval_id integer)`,
            'create index calls_at on calls (at)',
            'create index calls_of_user on calls (user_id, id)'
        ]
    }
];
