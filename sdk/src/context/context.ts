/** The context that `setup` gets: everything that a plugin can do. It belongs to one generation, and rejects all work after the end of it. */
import type { Socket as NetSocket } from 'node:net';

import type { EntityManager } from '@mikro-orm/sqlite';

import type { HookName, Hooks, Outcome, Tap, TapOrder } from '../hooks.ts';
import type { AnySchema } from '../joi.ts';
import type { TaskView } from '../routes/reply.ts';
import type {
    Actor,
    Awaitable,
    EventSchemas,
    PluginDownload,
    PluginHttp,
    PluginRoute,
    PluginSocket,
    PluginStream,
    PluginUpload
} from '../routes/route.ts';
import type { AccessLogOptions, AccessRecord } from './access-log.ts';
import type { ApiService } from './catalogue.ts';
import type { Files } from './files.ts';
import type { CertificatesService, HostsService } from './hosts-service.ts';
import type { MandatesService } from './mandates.ts';
import type { PanelService } from './panel-service.ts';
import type { Child, ExecOptions, ExecResult, SpawnOptions } from './process.ts';
import type { ServicesService } from './services.ts';

/** The type with every property read-only, at any depth. Dates and bytes stay as they are. */
export type Frozen<T> = T extends Date | Uint8Array
    ? T
    : T extends object
      ? { readonly [K in keyof T]: Frozen<T[K]> }
      : T;

type Schema = AnySchema | undefined;

/** A plugin's log. Each line has the plugin's name and version; secrets of its settings are masked. */
export interface Logger {
    debug(message: string, fields?: object): void;
    info(message: string, fields?: object): void;
    warn(message: string, fields?: object): void;
    error(message: string, fields?: object): void;
}

/** The result of a health check. */
export interface Health {
    readonly state: 'ok' | 'degraded' | 'failed';
    /** What the check saw, in one sentence. */
    readonly evidence?: string;
    /** What helps: a text, and possibly a command or a path of the API. */
    readonly remedy?: { readonly text: string; readonly command?: string; readonly route?: string };
}

/** The plugin's own SQLite database. Each call gets an entity manager of its own, which must not be kept. */
export interface Db {
    read<T>(work: (em: EntityManager) => Promise<T>): Promise<T>;
    /** Runs one short transaction; transactions run one at a time. Await only the database in it. Its changes are durable when the promise resolves. */
    write<T>(work: (em: EntityManager) => Promise<T>): Promise<T>;
}

/** When scheduled work runs. */
export type When = (
    | {
          /** Five fields, or six with seconds first; `@daily` and its like. */
          readonly cron: string;
          /** IANA name; default: the machine's. */
          readonly timezone?: string;
      }
    | { readonly everySeconds: number }
) & {
    /** What happens when the last run is not over; default `skip`. */
    readonly overlap?: 'skip' | 'queue';
    /** What happens when the time passed while nothing ran; default `skip`. */
    readonly missed?: 'skip' | 'run-once';
};

/** One run of scheduled work. */
export interface ScheduledRun {
    /** When it was due. */
    readonly at: Date;
    /** It was due while the plugin did not run. */
    readonly missed: boolean;
    readonly signal: AbortSignal;
}

/** Work that is scheduled. Disposing of it stops it, and aborts a run that is under way. */
export interface Scheduled extends AsyncDisposable {
    /** When it runs next; null when never. */
    next(): Promise<Date | null>;
}

/** What a task is. */
export interface TaskOptions {
    /** What kind of work, without the plugin's name: `snapshot`. */
    readonly kind: string;
    /** Shown to users; default: the kind. */
    readonly title?: string;
    /** The permission of the plugin that is needed to read the log and the result, and to cancel. */
    readonly access: string;
    /** Who started it; default: the plugin itself. */
    readonly actor?: Actor;
    /** What it is about, for the audit. */
    readonly resource?: string;
    /** Only one at a time has this key; a second is refused with IN_USE 40901. */
    readonly key?: string;
}

/** What the work of a task gets. */
export interface TaskRun {
    readonly id: number;
    /** Aborts when a user cancels the task, or the generation ends. The work must then end by throwing. */
    readonly signal: AbortSignal;
    /** Good as long as the task runs, at most 24 hours. */
    readonly actor: Actor | null;
    /** 0 to 1, or null when unknown; the text becomes a line of the log. */
    progress(fraction: number | null, text?: string): void;
    log(line: string): void;
}

/** A message to users, sent by the channels that the admin set up. */
export interface Notification {
    /** Without the plugin's name: `disk-full`. */
    readonly event: string;
    readonly severity: 'info' | 'warning' | 'error';
    /** One line, at most 200 characters. */
    readonly title: string;
    /** At most 10,000 characters. */
    readonly text?: string;
    /** Plain data for programs, such as ids: at most 32 KiB as JSON. Values whose key names a secret are masked. */
    readonly data?: Readonly<Record<string, unknown>>;
    /**
     * Ids of notification channels: only these get it, whatever events they name; at most 100. Channels that are disabled or gone are left
     * out. Default: every channel whose events match.
     */
    readonly channels?: readonly number[];
}

/** An audit entry, beside those that routes write themselves. */
export interface PluginAuditEntry {
    readonly action: string;
    readonly resource: string;
    readonly resourceId?: string | number;
    readonly actor?: Actor;
    readonly outcome?: 'success' | 'failure';
    readonly before?: unknown;
    readonly after?: unknown;
}

/** A one-time ticket, and when it ends. */
export interface IssuedTicket {
    readonly ticket: string;
    readonly expiresAt: Date;
}

/** Static files of the package. */
export interface Assets {
    /** Relative to the package. */
    readonly folder: string;
    /** Served at the root of the site; needs the capability `pages`. Default: below `/api/plugins/<name>/assets/`. */
    readonly at?: 'root';
    /** Served where no file is: `index.html` of an application with routes of its own. */
    readonly fallback?: string;
    /** Sources for each directive of the Content-Security-Policy; honoured at the root only. */
    readonly csp?: Readonly<Record<string, readonly string[]>>;
}

/** The service `ctx.hooks`, which taps hooks and publishes the plugin's own. */
export interface HookService {
    /**
     * Adds a tap to a hook. A hook that is not published yet is no error: the tap waits for it. Guards, waterfalls, collecting hooks and
     * `settings.changed` and `audit.recorded` need the capability `taps`.
     */
    tap<K extends HookName>(name: K, tap: Tap<K>, order?: TapOrder): void;
    /** Publishes a hook of this plugin, whose name starts with the plugin's own (`deploy.released`), and returns how to run it. */
    define<K extends HookName>(
        name: K,
        hook: { readonly kind: Hooks[K]['kind']; readonly summary: string; readonly timeoutSeconds?: number }
    ): (payload: Hooks[K]['payload']) => Promise<HookRun<K>>;
    /** Runs a collecting hook of the core, one outcome for each plugin as it comes; needs the capability `collect`. Work, not registration. */
    collect<K extends HookName>(
        name: K,
        payload: (plugin: string) => Hooks[K]['payload'],
        options?: { readonly only?: readonly string[]; readonly signal?: AbortSignal }
    ): AsyncIterable<Outcome<Hooks[K]['result']>>;
}

/** The result of running a hook: nothing, the last value of a waterfall, or one outcome for each plugin. */
export type HookRun<K extends HookName> = Hooks[K]['kind'] extends 'waterfall'
    ? Hooks[K]['payload']
    : Hooks[K]['kind'] extends 'collect'
      ? readonly Outcome<Hooks[K]['result']>[]
      : void;

/**
 * What `setup` gets. *Registration* (routes, taps, `health`, `on…`) is synchronous and happens in `setup` only. *Work* is asynchronous,
 * from `onStart` to `onStop`; after the end it rejects with `GENERATION_ENDED` 50304.
 */
export interface Context<S = Readonly<Record<never, never>>, P = Readonly<Record<never, never>>> {
    /** As in the manifest. */
    readonly name: string;
    /** Of the package. */
    readonly version: string;
    /** Lines carry the plugin's name and version; secrets of its settings are masked. */
    readonly log: Logger;
    /** Aborts when this generation ends. */
    readonly signal: AbortSignal;
    /** A private folder, 0700; it stays when the plugin is disabled. */
    readonly dataDir: string;
    /** The newest accepted settings, deeply frozen. Read them when they are needed; do not keep them. */
    readonly settings: Frozen<S>;
    /** Contracts of partners; an optional one that does not run is `undefined`. */
    readonly plugins: P;

    /** Declares a JSON route. */
    route<
        VP extends Schema = undefined,
        VQ extends Schema = undefined,
        VB extends Schema = undefined,
        VR extends Schema = undefined
    >(
        route: PluginRoute<VP, VQ, VB, VR>
    ): void;
    /** Declares server-sent events. */
    stream<
        VP extends Schema = undefined,
        VQ extends Schema = undefined,
        VB extends Schema = undefined,
        E extends EventSchemas = EventSchemas
    >(
        route: PluginStream<VP, VQ, VB, E>
    ): void;
    /** Declares a WebSocket. */
    socket<VP extends Schema = undefined, VQ extends Schema = undefined>(route: PluginSocket<VP, VQ>): void;
    /** Declares a route whose body is taken as a stream. */
    upload<VP extends Schema = undefined, VQ extends Schema = undefined, VR extends Schema = undefined>(
        route: PluginUpload<VP, VQ, VR>
    ): void;
    /** Declares a route that answers bytes, with ranges and conditions. */
    download<VP extends Schema = undefined, VQ extends Schema = undefined>(
        route: PluginDownload<VP, VQ>
    ): void;
    /** Declares a route of a foreign protocol, without the envelope. */
    http<VP extends Schema = undefined, VQ extends Schema = undefined>(route: PluginHttp<VP, VQ>): void;
    /** Serves static files of the package, public and immutable by hash. */
    assets(files: Assets): void;
    /** Taps hooks, publishes hooks of the plugin's own, and runs collecting ones. */
    readonly hooks: HookService;
    /** Adds a health check, which the list of plugins shows. It takes at most 5 seconds. */
    health(name: string, check: (signal: AbortSignal) => Awaitable<Health>): void;
    /** Runs at the start of the plugin, before it answers its first request. */
    onStart(work: (signal: AbortSignal) => Awaitable<void>): void;
    /** Runs at the end of the plugin, in reverse order of registration, 8 seconds in all. Resources of the plugin are released afterwards in any case. */
    onStop(work: (signal: AbortSignal) => Awaitable<void>): void;
    /** Runs when an admin changed the settings and they were accepted. */
    onSettings(work: (now: Frozen<S>, before: Frozen<S>) => Awaitable<void>): void;
    /** Runs when an optional partner starts, is replaced, or stops (`undefined`). */
    onPartner<K extends keyof P>(name: K, work: (partner: P[K]) => Awaitable<void>): void;

    /** The plugin's own SQLite file: `read` and `write`, each with an entity manager of its own. */
    readonly db: Db;
    /** The catalogue of what is mounted, and calls of it as the asking user; needs the capability `api`. */
    readonly api: ApiService;
    /** One person's revocable right to have routes called later; needs the capability `api`. */
    readonly mandates: MandatesService;
    /** Hosts of the proxy; needs the capability `hosts`. What the plugin makes stays and serves when the plugin goes. */
    readonly hosts: HostsService;
    /** Certificates; needs the capability `certificates`. */
    readonly certificates: CertificatesService;
    /**
     * The engine's access log, record by record; needs the capability `logs: ["access"]`. It goes on until the loop is left, the signal
     * aborts or the plugin stops. While the setting `engine.accessLog` is off, nothing comes. A plugin that reads slowly slows nothing else
     * down: the log waits on the disk for a while, then records are left out and counted in `dropped`.
     *
     * @throws CAPABILITY_MISSING 50305; IN_USE 40901 for more than 16 streams at once
     */
    accessLog(options?: AccessLogOptions): AsyncIterable<AccessRecord>;
    /** The panel itself; all but its address needs the capability `panel`. */
    readonly panel: PanelService;
    /** Files below an absolute folder, or a single file; needs the capability `files`. */
    files(root: string): Files;
    /** Seals texts with a key of this plugin and package. */
    readonly secrets: { seal(plain: string): Promise<string>; open(sealed: string): Promise<string> };
    /** Issues a one-time ticket, valid for `ttlSeconds` (1 to 300, default 30), for a route with {@link TicketAccess}. */
    readonly tickets: {
        issue(
            actor: Actor,
            ticket: { readonly permission: string; readonly data?: unknown; readonly ttlSeconds?: number }
        ): Promise<IssuedTicket>;
    };
    /** `fetch`, bound by the capability `network`; checked at connect time and on every redirect. */
    readonly fetch: typeof globalThis.fetch;
    /** A socket that connects only to what is granted. Without a target, the caller's own `connect` is checked. Synchronous, as drivers want it. */
    dial(target?: { readonly host: string; readonly port: number } | { readonly path: string }): NetSocket;
    /**
     * The addresses of a name, or an address itself, that the capability `network` lets this plugin reach: for programs that connect by
     * themselves. Resolve right before each use, and give the program the address.
     *
     * @throws CAPABILITY_MISSING 50305 when nothing of it may be reached; NOT_FOUND 40400 when the name has no address
     */
    resolve(host: string): Promise<readonly string[]>;
    /** Runs a program to its end; needs the capability `exec`. A failing exit code is a result, not a failure. @throws TOOL_MISSING 50302 when it is absent */
    exec(file: string, args: readonly string[], options?: ExecOptions): Promise<ExecResult>;
    /** Starts a program; needs the capability `exec`. @throws TOOL_MISSING 50302 when it is absent */
    spawn(file: string, args: readonly string[], options?: SpawnOptions): Promise<Child>;
    /** Programs that outlive the plugin and the panel; needs the capability `services`, and `exec` for the program. */
    readonly services: ServicesService;
    /** Starts long work that users can see and cancel. Resolves when the task is durable, before the work ends. */
    task<T>(options: TaskOptions, work: (run: TaskRun) => Promise<T>): Promise<TaskView>;
    /** Runs work at certain times. A second schedule with the same name replaces the first. */
    schedule(name: string, when: When, work: (run: ScheduledRun) => Awaitable<void>): Promise<Scheduled>;
    /** Sends a message to users, by the channels that the admin set up. */
    notify(message: Notification): Promise<void>;
    /** Adds an entry to the audit log, beside those that routes write themselves. */
    audit(entry: PluginAuditEntry): Promise<void>;
    /** Disposes of a resource when the generation ends. */
    use<T extends Disposable | AsyncDisposable>(owned: T): T;
}
