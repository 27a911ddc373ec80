/** The tables of the plugin's own database. Times are milliseconds since 1970. */
import { approvalsTable } from '@portico/agents';
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p, type Row } from '@portico/sdk/db';

/** Which protocol a provider speaks. */
export type ProviderType = 'openai' | 'anthropic';
/** Why an answer ended; null while it is under way. */
export type EndReason = 'stop' | 'length' | 'stopped' | 'approval' | 'limit' | 'error';

/** A service that answers for models. */
export const ProviderEntity = defineEntity({
    name: 'AiProvider',
    tableName: 'providers',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        name: p.string(),
        type: p.string().$type<ProviderType>(),
        baseUrl: p.string(),
        /** Sealed. */
        apiKey: p.text().nullable(),
        /** JSON object of names and values, sealed as one text. */
        headers: p.text().nullable(),
        /** JSON array: the names in `headers`, which may be shown. */
        headerNames: p.text(),
        model: p.string(),
        embeddingModel: p.string().nullable(),
        maxOutputTokens: p.integer().nullable(),
        /** Of a million tokens. */
        priceInput: p.float().nullable(),
        priceOutput: p.float().nullable(),
        isDefault: p.boolean(),
        enabled: p.boolean()
    }
});
/** A row of `providers`. */
export type ProviderRow = Row<InferEntity<typeof ProviderEntity>>;

/** A conversation of one user. */
export const ConversationEntity = defineEntity({
    name: 'AiConversation',
    tableName: 'conversations',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        userId: p.integer(),
        /** `Actor.key` of the user or API token that began it: a token sees its own conversations only. */
        actorKey: p.string(),
        title: p.string(),
        providerId: p.integer().nullable(),
        pinned: p.boolean(),
        /** JSON object: what stands for an address or name in what the model sees, with `strict` redaction. */
        placeholders: p.text(),
        createdAt: p.integer(),
        updatedAt: p.integer()
    }
});
/** A row of `conversations`. */
export type ConversationRow = Row<InferEntity<typeof ConversationEntity>>;

/** What a user wrote, or what the assistant answered. */
export const MessageEntity = defineEntity({
    name: 'AiMessage',
    tableName: 'messages',
    properties: {
        id: p.integer().primary(),
        conversationId: p.integer(),
        role: p.string().$type<'user' | 'assistant'>(),
        text: p.text(),
        /** JSON array of steps of an answer, of attachments of a question. */
        parts: p.text(),
        reason: p.string().$type<EndReason>().nullable(),
        input: p.integer(),
        output: p.integer(),
        cost: p.float().nullable(),
        at: p.integer()
    }
});
/** A row of `messages`. */
export type MessageRow = Row<InferEntity<typeof MessageEntity>>;

/** One request to a model, counted before it was sent. */
export const UsageEntity = defineEntity({
    name: 'AiUsage',
    tableName: 'usage',
    properties: {
        id: p.integer().primary(),
        at: p.integer(),
        userId: p.integer(),
        username: p.string(),
        providerId: p.integer(),
        provider: p.string(),
        input: p.integer(),
        output: p.integer(),
        cost: p.float()
    }
});

/** What an admin said of one tool. */
export const SwitchEntity = defineEntity({
    name: 'AiSwitch',
    tableName: 'switches',
    properties: {
        route: p.string().primary(),
        enabled: p.boolean(),
        approval: p.string().$type<'ask' | 'auto'>()
    }
});
/** A row of `switches`. */
export type SwitchRow = Row<InferEntity<typeof SwitchEntity>>;

/** Calls that wait for a user, and what came of them. */
export const approvalTable = approvalsTable('AiApproval');

/** What the assistant changed. */
export const ChangeEntity = defineEntity({
    name: 'AiChange',
    tableName: 'changes',
    properties: {
        id: p.integer().primary(),
        approvalId: p.integer().nullable(),
        conversationId: p.integer().nullable(),
        userId: p.integer(),
        username: p.string(),
        route: p.string(),
        method: p.string(),
        path: p.text(),
        /** JSON: the arguments with secrets masked. */
        shown: p.text(),
        /** JSON: what differs between before and after. */
        changes: p.text(),
        /** How it is taken back, sealed; null where there is no way. */
        undo: p.text().nullable(),
        /** Why there is no way back. */
        why: p.text().nullable(),
        state: p.string().$type<'done' | 'undoing' | 'undone'>(),
        at: p.integer(),
        undoneAt: p.integer().nullable()
    }
});
/** A row of `changes`. */
export type ChangeRow = Row<InferEntity<typeof ChangeEntity>>;

/** What a user wants the assistant to know. */
export const MemoryEntity = defineEntity({
    name: 'AiMemory',
    tableName: 'memories',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        userId: p.integer(),
        text: p.text(),
        /** JSON array. */
        tags: p.text(),
        /** JSON array of numbers; null without an embedding model. */
        vector: p.text().nullable(),
        /** The provider and model that made the vector: only vectors of one model can be compared. */
        vectorOf: p.string().nullable(),
        createdAt: p.integer(),
        updatedAt: p.integer()
    }
});
/** A row of `memories`. */
export type MemoryRow = Row<InferEntity<typeof MemoryEntity>>;

/** When the panel inspects itself; one row. */
export const InspectionPlanEntity = defineEntity({
    name: 'AiInspectionPlan',
    tableName: 'inspection_plan',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        enabled: p.boolean(),
        time: p.string(),
        timezone: p.string(),
        summary: p.boolean(),
        notify: p.string().$type<'always' | 'findings' | 'never'>(),
        /** The right of the admin who enabled it to have the state read. */
        mandateId: p.integer().nullable(),
        userId: p.integer().nullable(),
        username: p.string().nullable()
    }
});
/** A row of `inspection_plan`. */
export type InspectionPlanRow = Row<InferEntity<typeof InspectionPlanEntity>>;

/** What one inspection found. */
export const InspectionEntity = defineEntity({
    name: 'AiInspection',
    tableName: 'inspections',
    properties: {
        id: p.integer().primary(),
        at: p.integer(),
        trigger: p.string().$type<'manual' | 'daily'>(),
        username: p.string(),
        score: p.integer(),
        /** JSON. */
        findings: p.text(),
        /** JSON array: what could not be looked at. */
        skipped: p.text(),
        summary: p.text(),
        input: p.integer(),
        output: p.integer(),
        cost: p.float().nullable()
    }
});
/** A row of `inspections`. */
export type InspectionRow = Row<InferEntity<typeof InspectionEntity>>;

/** What happens when a notification comes. */
export const PolicyEntity = defineEntity({
    name: 'AiPolicy',
    tableName: 'policies',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        name: p.string(),
        event: p.string(),
        severity: p.string().$type<'info' | 'warning' | 'error'>().nullable(),
        text: p.string().nullable(),
        /** JSON: route, params, query, payload; sealed, as a payload may hold a secret. */
        action: p.text(),
        route: p.string(),
        mode: p.string().$type<'suggest' | 'ask' | 'auto'>(),
        cooldownSeconds: p.integer(),
        perDay: p.integer(),
        enabled: p.boolean(),
        mandateId: p.integer().nullable(),
        userId: p.integer(),
        username: p.string()
    }
});
/** A row of `policies`. */
export type PolicyRow = Row<InferEntity<typeof PolicyEntity>>;

/** What a policy did. */
export const PolicyRunEntity = defineEntity({
    name: 'AiPolicyRun',
    tableName: 'policy_runs',
    properties: {
        id: p.integer().primary(),
        policyId: p.integer(),
        at: p.integer(),
        event: p.string(),
        title: p.string(),
        state: p.string().$type<'suggested' | 'asked' | 'done' | 'failed' | 'limited'>(),
        code: p.integer().nullable(),
        approvalId: p.integer().nullable()
    }
});
/** A row of `policy_runs`. */
export type PolicyRunRow = Row<InferEntity<typeof PolicyRunEntity>>;

/** The entities of the plugin. */
export const entities = [
    ProviderEntity,
    ConversationEntity,
    MessageEntity,
    UsageEntity,
    SwitchEntity,
    approvalTable.entity,
    ChangeEntity,
    MemoryEntity,
    InspectionPlanEntity,
    InspectionEntity,
    PolicyEntity,
    PolicyRunEntity
];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-conversations',
        up: [
            `create table providers (id integer primary key autoincrement, version integer not null, name text not null, type text not null, base_url text not null, api_key text, headers text,
            header_names text not null, model text not null, embedding_model text, max_output_tokens integer, price_input real, price_output real, is_default integer not null, enabled integer not null)`,
            `create table conversations (id integer primary key autoincrement, version integer not null, user_id integer not null, actor_key text not null, title text not null,
            provider_id integer references providers (id) on delete set null, pinned integer not null, placeholders text not null, created_at integer not null, updated_at integer not null)`,
            'create index conversations_of_user on conversations (user_id, id)',
            `create table messages (id integer primary key autoincrement, conversation_id integer not null references conversations (id) on delete cascade, role text not null, text text not null,
            parts text not null, reason text, input integer not null, output integer not null, cost real, at integer not null)`,
            'create index messages_of_conversation on messages (conversation_id, id)',
            // `owner` is a word such as u12: the search of one user reads the index of that word, not the texts of all.
            `create virtual table message_texts using fts5 (owner, text, tokenize = "unicode61 remove_diacritics 2")`,
            `create table usage (id integer primary key autoincrement, at integer not null, user_id integer not null, username text not null, provider_id integer not null, provider text not null,
            input integer not null, output integer not null, cost real not null)`,
            'create index usage_of_user on usage (user_id, at)',
            'create index usage_by_time on usage (at)'
        ]
    },
    {
        name: '0002-tools',
        up: [
            'create table switches (route text primary key, enabled integer not null, approval text not null)',
            ...approvalTable.up,
            `create table changes (id integer primary key autoincrement, approval_id integer, conversation_id integer, user_id integer not null, username text not null, route text not null,
            method text not null, path text not null, shown text not null, changes text not null, undo text, why text, state text not null, at integer not null, undone_at integer)`,
            'create index changes_of_user on changes (user_id, id)',
            // What approved calls answered: the assistant reads it when it goes on.
            'create table answers (approval_id integer primary key, answer text not null, at integer not null)'
        ]
    },
    {
        name: '0003-memories-inspections-policies',
        up: [
            `create table memories (id integer primary key autoincrement, version integer not null, user_id integer not null, text text not null, tags text not null, vector text, vector_of text,
            created_at integer not null, updated_at integer not null)`,
            'create index memories_of_user on memories (user_id, id)',
            `create virtual table memory_texts using fts5 (owner, text, tokenize = "unicode61 remove_diacritics 2")`,
            `create table inspection_plan (id integer primary key, version integer not null, enabled integer not null, time text not null, timezone text not null, summary integer not null,
            notify text not null, mandate_id integer, user_id integer, username text)`,
            `create table inspections (id integer primary key autoincrement, at integer not null, trigger text not null, username text not null, score integer not null, findings text not null,
            skipped text not null, summary text not null, input integer not null, output integer not null, cost real)`,
            `create table policies (id integer primary key autoincrement, version integer not null, name text not null, event text not null, severity text, text text, action text not null,
            route text not null, mode text not null, cooldown_seconds integer not null, per_day integer not null, enabled integer not null, mandate_id integer, user_id integer not null, username text not null)`,
            `create table policy_runs (id integer primary key autoincrement, policy_id integer not null references policies (id) on delete cascade, at integer not null, event text not null,
            title text not null, state text not null, code integer, approval_id integer)`,
            'create index policy_runs_of_policy on policy_runs (policy_id, id)'
        ]
    }
];
