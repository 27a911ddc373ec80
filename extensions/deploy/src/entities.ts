/** The tables of the plugin's own database. Times are milliseconds since 1970. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p, type Row } from '@portico/sdk/db';

/** What asked for a deployment. */
export type Trigger = 'manual' | 'push' | 'poll' | 'rollback' | 'preview';
/** Where a deployment stands. */
export type DeploymentState =
    | 'queued'
    | 'building'
    | 'releasing'
    | 'canary'
    | 'live'
    | 'retired'
    | 'failed'
    | 'cancelled'
    | 'superseded';

/** The table of projects; secrets of a project are in tables of their own. */
export const ProjectEntity = defineEntity({
    name: 'DeployProject',
    tableName: 'deploy_projects',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        name: p.string(),
        /** JSON: what an admin says of it, see `projects/schema.ts`. */
        config: p.text(),
        /** The deployment that serves; null before the first. */
        live: p.integer().nullable(),
        hostId: p.integer().nullable(),
        /** Users stopped it. */
        stopped: p.boolean(),
        /** Number of the newest deployment. */
        lastNumber: p.integer(),
        /** The part of the hook's address that names this project; null without a hook. */
        hookKey: p.string().nullable(),
        /** Sealed. */
        hookSecret: p.text().nullable(),
        /** The project that this one is a preview of. */
        previewOf: p.integer().nullable(),
        /** It runs code of a fork: no secret goes there. */
        fork: p.boolean(),
        createdAt: p.integer()
    }
});
/** A row of `deploy_projects`. */
export type ProjectRow = Row<InferEntity<typeof ProjectEntity>>;

/** One deployment of a project. */
export const DeploymentEntity = defineEntity({
    name: 'DeployDeployment',
    tableName: 'deploy_deployments',
    properties: {
        id: p.integer().primary(),
        projectId: p.integer(),
        number: p.integer(),
        trigger: p.string().$type<Trigger>(),
        ref: p.string().nullable(),
        commit: p.string().nullable(),
        message: p.text().nullable(),
        author: p.string().nullable(),
        state: p.string().$type<DeploymentState>(),
        reason: p.string().nullable(),
        /** The deployment whose release is taken again. */
        from: p.integer().nullable(),
        clearCache: p.boolean(),
        artifactSha256: p.string().nullable(),
        artifactBytes: p.integer().nullable(),
        kept: p.boolean(),
        /** JSON, see `deployments/steps.ts`. */
        steps: p.text(),
        /** JSON: how the release runs, see `build/plan.ts`; null until it is built. */
        plan: p.text().nullable(),
        port: p.integer().nullable(),
        queuedAt: p.integer(),
        startedAt: p.integer().nullable(),
        switchedAt: p.integer().nullable(),
        finishedAt: p.integer().nullable(),
        taskId: p.integer().nullable(),
        /** JSON: the signed provenance of the release; null until it is built. */
        provenance: p.text().nullable()
    }
});
/** A row of `deploy_deployments`. */
export type DeploymentRow = Row<InferEntity<typeof DeploymentEntity>>;

/** Variables of one project or of one group. */
export const VariablesEntity = defineEntity({
    name: 'DeployVariables',
    tableName: 'deploy_variables',
    properties: {
        /** `project:1` or `group:1`. */
        owner: p.string().primary(),
        /** JSON, sealed as one text. */
        sealed: p.text()
    }
});

/** A group of variables that projects share. */
export const GroupEntity = defineEntity({
    name: 'DeployGroup',
    tableName: 'deploy_groups',
    properties: { id: p.integer().primary(), version: p.integer(), name: p.string() }
});
/** A row of `deploy_groups`. */
export type GroupRow = Row<InferEntity<typeof GroupEntity>>;

/** How repositories of one host are reached. */
export const ConnectionEntity = defineEntity({
    name: 'DeployConnection',
    tableName: 'deploy_connections',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        name: p.string(),
        /** JSON: what may be shown. */
        config: p.text(),
        /** JSON, sealed as one text. */
        secrets: p.text()
    }
});
/** A row of `deploy_connections`. */
export type ConnectionRow = Row<InferEntity<typeof ConnectionEntity>>;

/** A pull request of a project. */
export const PreviewEntity = defineEntity({
    name: 'DeployPreview',
    tableName: 'deploy_previews',
    properties: {
        id: p.integer().primary(),
        projectId: p.integer(),
        /** Number of the pull request. */
        number: p.integer(),
        /** Where the git server has its head. */
        ref: p.string(),
        branch: p.string(),
        fork: p.boolean(),
        /** The head of the pull request. */
        commit: p.string(),
        approvedCommit: p.string().nullable(),
        /** The project that it runs as; null while nothing of it runs. */
        childId: p.integer().nullable(),
        closed: p.boolean(),
        domain: p.string(),
        /** The comment on the pull request. */
        commentId: p.integer().nullable(),
        expiresAt: p.integer()
    }
});
/** A row of `deploy_previews`. */
export type PreviewRow = Row<InferEntity<typeof PreviewEntity>>;

/** A command of a project that runs at certain times. */
export const CronEntity = defineEntity({
    name: 'DeployCron',
    tableName: 'deploy_crons',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        projectId: p.integer(),
        name: p.string(),
        /** JSON: what an admin says of it. */
        config: p.text(),
        /** JSON: how it ended last. */
        lastRun: p.text().nullable()
    }
});
/** A row of `deploy_crons`. */
export type CronRow = Row<InferEntity<typeof CronEntity>>;

/** A delivery of a hook that was taken: the same one does nothing again. */
export const DeliveryEntity = defineEntity({
    name: 'DeployDelivery',
    tableName: 'deploy_deliveries',
    properties: { id: p.string().primary(), at: p.integer() }
});

/** A key of the plugin's own. */
export const KeyEntity = defineEntity({
    name: 'DeployKey',
    tableName: 'deploy_keys',
    properties: { name: p.string().primary(), sealed: p.text() }
});

/** The entities of the plugin. */
export const entities = [
    ProjectEntity,
    DeploymentEntity,
    VariablesEntity,
    GroupEntity,
    ConnectionEntity,
    PreviewEntity,
    CronEntity,
    DeliveryEntity,
    KeyEntity
];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-projects-deployments',
        up: [
            `create table deploy_projects (id integer primary key autoincrement, version integer not null, name text not null unique, config text not null,
            live integer, host_id integer, stopped integer not null, last_number integer not null, hook_key text unique, hook_secret text, created_at integer not null)`,
            `create table deploy_deployments (id integer primary key autoincrement, project_id integer not null references deploy_projects (id) on delete cascade,
            number integer not null, trigger text not null, ref text, "commit" text, message text, author text, state text not null, reason text, "from" integer,
            clear_cache integer not null, artifact_sha256 text, artifact_bytes integer, kept integer not null, steps text not null, plan text, port integer,
            queued_at integer not null, started_at integer, switched_at integer, finished_at integer, task_id integer, provenance text)`,
            'create unique index deploy_numbers on deploy_deployments (project_id, number)',
            'create index deploy_states on deploy_deployments (state, id)',
            'create table deploy_variables (owner text primary key, sealed text not null)',
            'create table deploy_groups (id integer primary key autoincrement, version integer not null, name text not null unique)',
            `create table deploy_connections (id integer primary key autoincrement, version integer not null, name text not null unique, config text not null,
            secrets text not null)`,
            'create table deploy_deliveries (id text primary key, at integer not null)',
            'create table deploy_keys (name text primary key, sealed text not null)'
        ]
    },
    {
        name: '0002-previews-crons',
        up: [
            'alter table deploy_projects add column preview_of integer references deploy_projects (id)',
            'alter table deploy_projects add column fork integer not null default 0',
            `create table deploy_previews (id integer primary key autoincrement, project_id integer not null references deploy_projects (id) on delete cascade,
            number integer not null, branch text not null, fork integer not null, "commit" text not null, approved_commit text, child_id integer,
            closed integer not null, domain text not null, comment_id integer, expires_at integer not null)`,
            'create unique index deploy_preview_numbers on deploy_previews (project_id, number)',
            `create table deploy_crons (id integer primary key autoincrement, version integer not null,
            project_id integer not null references deploy_projects (id) on delete cascade, name text not null, config text not null, last_run text)`,
            'create unique index deploy_cron_names on deploy_crons (project_id, name)'
        ]
    },
    {
        name: '0003-preview-refs',
        up: [
            "alter table deploy_previews add column ref text not null default ''",
            "update deploy_previews set ref = 'refs/pull/' || number || '/head'"
        ]
    },
    {
        // The one before gave every preview the ref of GitHub and Gitea. Previews are GitLab's where the connection says so, else where the host's name does.
        name: '0004-merge-request-refs',
        up: [
            `update deploy_previews set ref = 'refs/merge-requests/' || number || '/head'
            where ref = 'refs/pull/' || number || '/head' and exists (
                select 1 from deploy_projects project
                left join deploy_connections connection on connection.id = json_extract(project.config, '$.source.connection')
                where project.id = deploy_previews.project_id and case
                    when json_extract(connection.config, '$.forge') is not null then json_extract(connection.config, '$.forge') = 'gitlab'
                    else json_extract(project.config, '$.source.url') like '%://gitlab.%' or json_extract(project.config, '$.source.url') like '%@gitlab.%'
                end)`
        ]
    }
];
