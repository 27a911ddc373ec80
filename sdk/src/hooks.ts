/**
 * Hooks by name. The kind of a hook is its failure policy: **notify** cannot undo and its taps are isolated from each other; **guard** may
 * refuse, and a tap that fails refuses; **waterfall** hands a frozen value from tap to tap, and a tap that fails is skipped; **collect**
 * gives one outcome for each plugin, failed ones included. Secrets are masked in every payload.
 */
import type { Host, HostFields } from './context/hosts-service.ts';
import type { Awaitable } from './routes/route.ts';

/** A hook that says what happened. */
export interface Notify<P> {
    readonly kind: 'notify';
    readonly payload: P;
    readonly result: void;
}
/** A hook that may refuse. */
export interface Guard<P> {
    readonly kind: 'guard';
    readonly payload: P;
    readonly result: void | { readonly refuse: string };
}
/** A hook that may change a value. */
export interface Waterfall<P> {
    readonly kind: 'waterfall';
    readonly payload: P;
    readonly result: P | void;
}
/** A hook that asks each plugin for items. */
export interface Collect<P, I> {
    readonly kind: 'collect';
    readonly payload: P;
    readonly result: readonly I[] | void;
}

type PlainObject = Readonly<Record<string, unknown>>;

/** Every hook of the core. A plugin adds what it publishes by declaration merging, under names that start with its own. */
export interface Hooks {
    /** Before a host is validated and saved, outside any lock: a tap may return another `host`, which is the body of the request. `before` is null on creation. */
    'host.beforeSave': Waterfall<{ readonly before: Host | null; readonly host: HostFields }>;
    /** After validation, before anything is changed. `after` is null on removal. */
    'host.guard': Guard<{
        readonly action: 'create' | 'update' | 'delete';
        readonly before: Host | null;
        readonly after: Host | null;
    }>;
    /** After the commit, in order of the commits. `host` is as it is now, and after a removal as it was. */
    'host.afterChange': Notify<{
        readonly action: 'create' | 'update' | 'delete';
        readonly host: Host;
    }>;
    /** Before a correct login becomes a session. The one guard that fails open, or one plugin could lock every user out; it never gets the password. */
    'auth.beforeLogin': Guard<{
        readonly username: string;
        readonly ip: string | null;
        readonly userAgent: string | null;
    }>;
    /** `newNetwork`: the account had not got in from there for 30 days. */
    'auth.afterLogin': Notify<{
        readonly userId: number;
        readonly username: string;
        readonly ip: string | null;
        readonly userAgent: string | null;
        readonly newNetwork: boolean;
    }>;
    /** An entry of the audit log is durable. */
    'audit.recorded': Notify<{
        readonly actor: {
            readonly id: number | null;
            readonly username: string | null;
            readonly tokenId: number | null;
            /** The mandate by which the plugin acted; left out where there was none. */
            readonly mandateId?: number;
            readonly plugin: string | null;
        };
        readonly action: string;
        readonly resource: string;
        readonly resourceId: string | number | null;
        readonly outcome: 'success' | 'failure';
        readonly code: number;
        readonly ip: string | null;
        readonly requestId: string | null;
    }>;
    /**
     * What this plugin has for the engine's configuration: a tap gives all of it, each time. Asked when the plugin starts, when its settings
     * change, and when it asks by `ctx.hooks.collect('engine.collect', …)`; proven by one apply, and kept when the plugin fails or is
     * replaced. Needs the capability `taps`.
     */
    'engine.collect': Collect<Readonly<Record<string, never>>, EngineFragment>;
    /** A configuration or table is now what the engine serves. */
    'engine.applied': Notify<{ readonly revision: number; readonly reloaded: boolean }>;
    /** The engine refused a change, or does not answer. */
    'engine.failed': Notify<{ readonly message: string }>;
    /** A CA issued a certificate to the panel, and it is in place. */
    'certificate.issued': Notify<{
        readonly id: number;
        readonly name: string;
        readonly domains: readonly string[];
        readonly notAfter: string;
        readonly renewed: boolean;
    }>;
    /** A certificate comes to its end: said 14, 7, 3 and 1 days before and when it has come. */
    'certificate.expiring': Notify<{
        readonly id: number;
        readonly name: string;
        readonly domains: readonly string[];
        readonly notAfter: string;
        readonly daysLeft: number;
    }>;
    /** An order or a renewal failed; `problem` is what the CA says. `nextAttemptAt` is null when it is not tried again by itself. */
    'certificate.failed': Notify<{
        readonly id: number;
        readonly name: string;
        readonly domains: readonly string[];
        readonly problem: PlainObject;
        readonly nextAttemptAt: string | null;
    }>;
    /** Settings of the panel were changed; `keys` names them. */
    'settings.changed': Notify<{ readonly keys: readonly string[] }>;
    /** Something that a person should know of: what the channels send. For taking it to places that no channel of the core reaches. */
    'notification.raised': Notify<{
        readonly type: string;
        readonly timestamp: string;
        readonly data: {
            readonly severity: 'info' | 'warning' | 'error';
            readonly title: string;
            readonly text: string | null;
            readonly details: unknown;
        };
    }>;
    /** Routes came or went: catalogues made of them are to be made again. `plugin` is whose. */
    'routes.changed': Notify<{ readonly plugin: string }>;
    /** A plugin's state on its record changed. */
    'plugin.stateChanged': Notify<{
        readonly plugin: string;
        readonly state: string;
        readonly before: string;
    }>;
    /** What a plugin could give to a backup, without giving it. */
    'backup.list': Collect<Readonly<Record<string, never>>, BackupEntry>;
    /**
     * What a backup should hold: all items that `backup.list` names, or those in `only`. `folder` is lent: it is open to
     * `ctx.files(payload.folder)` until the tap ends. What a tap writes there may be taken; bulk data is never a value.
     */
    'backup.collect': Collect<{ readonly folder: string; readonly only?: readonly string[] }, BackupItem>;
    /**
     * A backup comes back: `folder`, which is lent as in `backup.collect`, holds what this plugin once gave, each item at its `path`. That
     * lies in the folder also for an item that was taken from elsewhere.
     */
    'backup.restore': Collect<
        { readonly folder: string; readonly version: string; readonly items: readonly BackupItem[] },
        { readonly item: string; readonly ok: boolean; readonly message?: string }
    >;
    /**
     * A document of the whole panel is made, with a passphrase: what of a plugin's own data belongs into it, beside its settings. Plain JSON,
     * all items of a plugin together at most `maxBytes`; more than that belongs into a backup. It is sealed.
     */
    'export.collect': Collect<{ readonly maxBytes: number }, ExportItem>;
    /**
     * What this plugin once gave comes back, maybe from another machine and another `version` of it. With `mode` `replace` it takes the place of
     * what is there. It may come a second time when the first was cut, so twice must be as once.
     */
    'import.restore': Collect<
        {
            readonly version: string;
            readonly mode: 'merge' | 'replace';
            readonly items: readonly ExportItem[];
        },
        RestoredItem
    >;
    /** What a plugin knows of its own health beyond its checks. */
    'health.collect': Collect<
        Readonly<Record<string, never>>,
        { readonly name: string; readonly state: 'ok' | 'degraded' | 'failed'; readonly evidence?: string }
    >;
    /** The panel answers requests and its engine was looked at; plugins may still be starting. */
    'panel.started': Notify<Readonly<Record<string, never>>>;
    /** The panel is about to stop; `onStop` of each plugin follows. */
    'panel.stopping': Notify<Readonly<Record<string, never>>>;
}

/**
 * A part of the engine's configuration, in its own language (Caddy's JSON). `handlers`: every request to a host that is served passes them,
 * in this order, before what the host itself says. `apps`: an app beside the engine's own, such as what a handler of the same module needs.
 * Refused are listeners, sockets, files, logging, storage, the administration, and placeholders of anything but the request.
 */
export type EngineFragment =
    | { readonly slot: 'handlers'; readonly handlers: readonly Readonly<Record<string, unknown>>[] }
    | { readonly slot: 'apps'; readonly name: string; readonly config: Readonly<Record<string, unknown>> };

/** A part of what a plugin could give to a backup: one database, one volume. */
export interface BackupEntry {
    /** Stable from run to run, unique in the plugin: 1 to 200 characters without slashes and control characters. */
    readonly name: string;
    /** Shown to people. */
    readonly title: string;
    /** About how much it is. */
    readonly bytes?: number;
}

/** A part that was given. The collector gets `path` absolute. @throws Error at the tap when it leads elsewhere */
export interface BackupItem extends BackupEntry {
    /**
     * Where the item lies: in the lent folder (relative to it, or absolute), or elsewhere in the plugin's own capability `files` (absolute; it
     * is taken from there).
     */
    readonly path: string;
}

/** A part of a plugin's own data in a document of the panel. */
export interface ExportItem {
    /** Told to people; once for each item of a plugin. */
    readonly name: string;
    /** JSON. */
    readonly data: unknown;
    /** What belongs to it and is not in `data`, each as words such as "the history of runs": the document's notes name them. */
    readonly leftOut?: readonly string[];
}

/** What became of one item that came back. */
export interface RestoredItem {
    readonly item: string;
    readonly ok: boolean;
    readonly message?: string;
}

/** The name of a hook. */
export type HookName = keyof Hooks;
/** The kind of a hook. */
export type HookKind = 'notify' | 'guard' | 'waterfall' | 'collect';

/** A tap, synchronous or asynchronous. `signal` aborts when its time is up, or its plugin stops. */
export type Tap<K extends HookName> = (
    payload: Hooks[K]['payload'],
    call: { readonly signal: AbortSignal }
) => Awaitable<Hooks[K]['result']>;

/** Where a tap stands among others; unknown plugin names are no error and change nothing. */
export interface TapOrder {
    readonly before?: readonly string[];
    readonly after?: readonly string[];
    /** Lower comes first; default 0. */
    readonly stage?: number;
}

/** How one plugin's taps of a collecting hook ended. */
export type Outcome<R> =
    | { readonly plugin: string; readonly version: string; readonly ok: true; readonly result: R }
    | {
          readonly plugin: string;
          readonly version: string;
          readonly ok: false;
          /** Of the failure that a tap threw; `INTERNAL` for any other error of a plugin, `TAP_FAILED` for a tap that gave no answer. */
          readonly reason: string;
          readonly message: string;
      };
