/** The tables of the plugin's own database. Times are milliseconds since 1970. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p, type Row } from '@portico/sdk/db';

/** Where a site stands: `creating` and `removing` are taken up again by the next start of the plugin. */
export type Phase = 'creating' | 'ready' | 'removing';
/** What a new site holds. */
export type Template = 'empty' | 'php' | 'wordpress' | 'laravel';
/** How the engine gets a site's certificate. */
export type SslMode = 'auto' | 'internal';

/** The table of sites. */
export const SiteEntity = defineEntity({
    name: 'PhpSite',
    tableName: 'php_sites',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        phase: p.string().$type<Phase>(),
        name: p.string(),
        domain: p.string(),
        /** JSON array. */
        aliases: p.text(),
        release: p.string(),
        /** Below the folder. */
        root: p.string(),
        template: p.string().$type<Template>(),
        ssl: p.boolean(),
        sslMode: p.string().$type<SslMode>(),
        /** JSON array of absolute paths. */
        extraPaths: p.text(),
        /** JSON object of names and values, sealed as one text. */
        env: p.text(),
        /** JSON array: the names in `env`, which may be shown without opening it. */
        envNames: p.text(),
        /** JSON object of directives. */
        settings: p.text(),
        /** JSON object, see `config/pool.ts`. */
        pool: p.text(),
        account: p.string(),
        /** Stands in the account's comment, and so proves that this package made it. */
        token: p.string(),
        /** JSON object, see `sites/database.ts`; null without a database. */
        database: p.text().nullable(),
        /** Absolute. */
        folder: p.string(),
        /** Absolute: the folder of the settings when the site was made. */
        runFolder: p.string(),
        /** This package made the folder, or was about to. */
        folderMade: p.boolean(),
        hostId: p.integer().nullable(),
        /** Which of its two masters serves, 0 or 1: a switch changes it. */
        slot: p.integer(),
        /** Grows with each configuration that is put in place. */
        revision: p.integer(),
        message: p.text().nullable(),
        createdAt: p.integer()
    }
});
/** A row of `php_sites`. */
export type SiteRow = Row<InferEntity<typeof SiteEntity>>;

/** Where a switch stands. */
export type SwitchState = 'starting' | 'observing' | 'done' | 'reverted' | 'cancelled';

/** The newest switch of a site. */
export const SwitchEntity = defineEntity({
    name: 'PhpSwitch',
    tableName: 'php_switches',
    properties: {
        siteId: p.integer().primary(),
        state: p.string().$type<SwitchState>(),
        from: p.string(),
        to: p.string(),
        percent: p.integer(),
        observeSeconds: p.integer(),
        maxErrors: p.integer(),
        path: p.string(),
        requests: p.integer(),
        errors: p.integer(),
        evidence: p.text().nullable(),
        startedAt: p.integer(),
        endedAt: p.integer().nullable()
    }
});
/** A row of `php_switches`. */
export type SwitchRow = Row<InferEntity<typeof SwitchEntity>>;

/** The entities of the plugin. */
export const entities = [SiteEntity, SwitchEntity];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-sites-switches',
        up: [
            `create table php_sites (id integer primary key autoincrement, version integer not null, phase text not null, name text not null unique, domain text not null,
            aliases text not null, "release" text not null, root text not null, template text not null, ssl integer not null, ssl_mode text not null,
            extra_paths text not null, env text not null, env_names text not null, settings text not null, pool text not null, account text not null unique,
            token text not null, database text, folder text not null, run_folder text not null, folder_made integer not null, host_id integer, slot integer not null,
            revision integer not null, message text, created_at integer not null)`,
            `create table php_switches (site_id integer primary key, state text not null, "from" text not null, "to" text not null, percent integer not null,
            observe_seconds integer not null, max_errors integer not null, path text not null, requests integer not null, errors integer not null,
            evidence text, started_at integer not null, ended_at integer)`
        ]
    }
];
