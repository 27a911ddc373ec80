/**
 * What crosses between a host and one generation of a plugin. Every method takes one object and answers later. The object's values are
 * plain data, except that a value at its top level may be an AbortSignal, a function (which is called over the boundary), an async
 * iterable, or a web stream; so a direct call and a call over a message port can carry the same.
 */
import type { AccessLogOptions, AccessRecord } from '../context/access-log.ts';
import type {
    ApiAnswer,
    ApiCall,
    ApiText,
    Plan,
    ReadLimits,
    RouteFilter,
    RouteInfo,
    TaskProgress
} from '../context/catalogue.ts';
import type { Health, Notification, PluginAuditEntry, TaskOptions, When } from '../context/context.ts';
import type {
    AppliedHost,
    Certificate,
    EngineAccount,
    Host,
    ProbeAnswer,
    ProbeOptions,
    UpstreamState
} from '../context/hosts-service.ts';
import type { PanelListener, PanelRehearsal, RehearsalInput } from '../context/panel-service.ts';
import type { ServiceInfo, ServiceLine, ServiceOptions } from '../context/services.ts';
import type { Outcome, TapOrder } from '../hooks.ts';
import type { TaskView } from '../routes/reply.ts';
import type {
    Actor,
    AuditDetail,
    Bytes,
    Declared,
    Effect,
    PluginAccess,
    StreamEvent,
    Success
} from '../routes/route.ts';

/** An actor as plain data; the host knows it by the handle beside it. */
export interface PlainActor extends Omit<Actor, 'can'> {
    /** True for the panel itself, which may do everything, whatever `permissions` says. */
    readonly all: boolean;
}

/** The actor of a call, and the handle under which the host keeps that actor. */
export interface Asker {
    readonly handle: number;
    readonly actor: PlainActor;
}

/** One request as it reaches the plugin's guest runtime: identity and access are decided, its schemas are not applied yet. */
export interface PlainRequest extends Asker {
    readonly id: string;
    readonly params: unknown;
    readonly query: unknown;
    readonly payload: unknown;
    readonly headers: Readonly<Record<string, string>>;
    readonly ip: string;
    readonly ifMatch: string | null;
    readonly idempotencyKey: string | null;
    readonly lastEventId: string | null;
    /** What the route's ticket was issued with. */
    readonly ticket: unknown;
    /** Media type of an upload. */
    readonly type?: string;
    /** Bytes of an upload. */
    readonly length?: number | null;
}

/** An answer whose data is JSON already: entities hide their columns only from `JSON.stringify`, and that must be called in the runtime that holds them. */
export interface JsonAnswer {
    readonly status: number;
    readonly message: string;
    readonly headers: Readonly<Record<string, string>>;
    /** The envelope's `data` as text. */
    readonly json: string;
}

/** joi's own description of a schema; plain data. */
export type SchemaDescription = Readonly<Record<string, unknown>>;

/** One declared route without its code. */
export interface RouteDocument extends Declared {
    readonly kind: 'json' | 'stream' | 'socket' | 'upload' | 'download' | 'http';
    readonly id: string;
    readonly summary: string;
    readonly access: PluginAccess;
    /** One method, or all methods of an `http` route. */
    readonly methods: readonly string[];
    readonly effect?: Effect;
    readonly tool: boolean;
    readonly timeoutSeconds?: number;
    readonly maxBytes?: number;
    readonly audit?: { readonly action: string; readonly resource: string } | false;
    readonly secret?: boolean;
    readonly accepts?: readonly string[];
    readonly protocols?: readonly string[];
    readonly maxMessageBytes?: number;
    readonly raw?: string;
    readonly oauth?: true;
    readonly answers?: Success | readonly Success[];
    /** Schemas of the events of a stream. */
    readonly events?: Readonly<Record<string, SchemaDescription>>;
    readonly schemas: Readonly<
        Partial<Record<'params' | 'query' | 'payload' | 'returns', SchemaDescription>>
    >;
}

/** All that `setup` registered, as one plain document. */
export interface GenerationDocument {
    readonly routes: readonly RouteDocument[];
    readonly assets: readonly {
        readonly folder: string;
        readonly at?: 'root';
        readonly fallback?: string;
        readonly csp?: Readonly<Record<string, readonly string[]>>;
    }[];
    readonly taps: readonly { readonly tap: number; readonly hook: string; readonly order: TapOrder }[];
    readonly hooks: readonly {
        readonly name: string;
        readonly kind: 'notify' | 'guard' | 'waterfall' | 'collect';
        readonly summary: string;
        readonly timeoutSeconds?: number;
    }[];
    /** Names of the health checks. */
    readonly health: readonly string[];
    /** Methods of the contract; null without one. */
    readonly contract: readonly string[] | null;
}

/** What a definition says before `setup` runs. */
export interface DefinitionDocument {
    readonly settings: SchemaDescription | null;
    /** Paths of the secrets in the settings, dotted; `*` stands for any index or name. */
    readonly secrets: readonly string[];
    readonly requires: readonly string[];
    readonly optional: readonly string[];
    readonly migrations: readonly string[];
}

interface Asked {
    readonly route: string;
    readonly request: PlainRequest;
    readonly signal: AbortSignal;
}

/** A file that a download route found, with its functions at the top level. */
export interface PlainDownload {
    readonly size: number | null;
    readonly type: string;
    readonly name?: string;
    readonly version?: string;
    readonly modifiedAt?: Date;
    readonly inline?: boolean;
    open(range: {
        readonly start: number;
        readonly end: number | null;
    }): Promise<{ readonly body: AsyncIterable<Uint8Array> }>;
    close(): Promise<void>;
}

/** What the host may ask of a generation. Every method throws failures only. */
export interface Guest {
    define(input: object): Promise<DefinitionDocument>;
    /** Values with their defaults. @throws VALIDATION_FAILED 40001 */
    readSettings(input: {
        readonly values: Readonly<Record<string, unknown>>;
    }): Promise<{ readonly values: Readonly<Record<string, unknown>> }>;
    setup(input: {
        readonly settings: Readonly<Record<string, unknown>>;
        readonly partners: readonly string[];
    }): Promise<GenerationDocument>;
    start(input: { readonly signal: AbortSignal }): Promise<void>;
    /** Runs the functions that `onStop` was given, last first. A failure of one does not stop the others. */
    stop(input: { readonly signal: AbortSignal }): Promise<{ readonly failures: readonly string[] }>;
    /** Ends the context and releases what the guest runtime itself holds. */
    end(input: object): Promise<Release>;
    settings(input: { readonly values: Readonly<Record<string, unknown>> }): Promise<void>;
    partner(input: { readonly name: string; readonly present: boolean }): Promise<void>;
    health(input: { readonly name: string; readonly signal: AbortSignal }): Promise<Health>;
    tap(input: {
        readonly tap: number;
        readonly payload: unknown;
        readonly signal: AbortSignal;
    }): Promise<{ readonly result: unknown }>;
    /** Checks a request against its schemas, and does nothing else. */
    check(input: { readonly route: string; readonly request: PlainRequest }): Promise<void>;
    json(input: Asked): Promise<JsonAnswer>;
    upload(input: Asked & { readonly body: Bytes }): Promise<JsonAnswer>;
    stream(input: Asked): Promise<{ readonly events: AsyncIterable<StreamEvent> }>;
    download(input: Asked): Promise<PlainDownload>;
    http(
        input: Asked & { readonly method: string; readonly url: string; readonly body: Bytes | null }
    ): Promise<{
        readonly status: number;
        readonly headers: readonly (readonly [string, string])[];
        readonly body: Bytes | null;
    }>;
    socket(
        input: Asked & {
            readonly messages: AsyncIterable<string | Uint8Array>;
            send(input: { readonly data: string | Uint8Array }): Promise<void>;
            close(input: { readonly code?: number; readonly reason?: string }): Promise<void>;
        }
    ): Promise<void>;
    /** Calls a method of the contract. */
    contract(input: {
        readonly method: string;
        readonly input: unknown;
        readonly plugin: string;
        readonly asker: Asker | null;
        readonly signal: AbortSignal;
    }): Promise<ContractAnswer>;
}

/** The answer of a contract's method: one value, or a series. */
export interface ContractAnswer {
    readonly value?: unknown;
    readonly series?: AsyncIterable<unknown>;
}

/** What was released, by kind, and what could not be. */
export interface Release {
    readonly released: readonly { readonly kind: string; readonly name: string }[];
    /** What is still there after its time. */
    readonly leaked: readonly { readonly kind: string; readonly name: string; readonly error: string }[];
}

/** A call of the API, without what cannot be copied. */
export type PlainApiCall = Omit<ApiCall, 'signal' | 'follow'>;

/** What a generation may ask of its host. Every method throws failures only. `handle: null` means: the plugin itself. */
export interface HostApi {
    log(input: {
        readonly level: 'debug' | 'info' | 'warn' | 'error';
        readonly message: string;
        readonly fields: object;
    }): Promise<void>;
    /** Adds to the audit entry of a request under way. */
    detail(input: { readonly handle: number; readonly detail: AuditDetail }): Promise<void>;
    routes(input: {
        readonly handle: number | null;
        readonly filter: Omit<RouteFilter, 'for'>;
    }): Promise<readonly RouteInfo[]>;
    call(input: {
        readonly handle: number;
        readonly call: PlainApiCall;
        readonly signal: AbortSignal | null;
        readonly follow?: (input: TaskProgress) => Promise<void>;
    }): Promise<ApiAnswer>;
    read(input: {
        readonly handle: number;
        readonly call: PlainApiCall;
        readonly limits: ReadLimits;
        readonly signal: AbortSignal | null;
    }): Promise<ApiText>;
    plan(input: {
        readonly handle: number;
        readonly call: PlainApiCall;
        readonly signal: AbortSignal | null;
    }): Promise<Plan>;
    giveMandate(input: {
        readonly handle: number;
        readonly title: string;
        readonly routes: readonly string[];
        readonly expiresAt: Date | null;
    }): Promise<{ readonly id: number }>;
    /** Lends the giver's handle while `run` works; what that makes of it stays on its side. */
    useMandate(input: { readonly id: number; run(input: Asker): Promise<void> }): Promise<void>;
    endMandate(input: { readonly id: number }): Promise<void>;
    listHosts(input: { readonly owner?: string; readonly domain?: string }): Promise<readonly Host[]>;
    createHost(input: {
        readonly host: Readonly<Record<string, unknown>>;
        readonly handle: number | null;
    }): Promise<AppliedHost>;
    updateHost(input: {
        readonly id: number;
        readonly change: Readonly<Record<string, unknown>>;
        readonly version: number | null;
        readonly handle: number | null;
    }): Promise<AppliedHost>;
    removeHost(input: {
        readonly id: number;
        readonly version: number | null;
        readonly handle: number | null;
    }): Promise<void>;
    upstreams(input: { readonly id: number }): Promise<readonly UpstreamState[]>;
    probeHost(input: {
        readonly address: string;
        readonly options: Omit<ProbeOptions, 'signal'>;
        readonly signal: AbortSignal | null;
    }): Promise<ProbeAnswer>;
    hostAccount(input: object): Promise<EngineAccount | null>;
    listCertificates(input: {
        readonly owner?: string;
        readonly domain?: string;
    }): Promise<readonly Certificate[]>;
    uploadCertificate(input: {
        readonly name: string;
        readonly certificate: string;
        readonly key: string;
    }): Promise<Certificate>;
    removeCertificate(input: { readonly id: number }): Promise<void>;
    panelUrl(input: object): Promise<string | null>;
    panelHasPlugin(input: { readonly name: string }): Promise<boolean>;
    panelListeners(input: object): Promise<readonly PanelListener[]>;
    panelFolders(input: object): Promise<readonly string[]>;
    rehearse(input: RehearsalInput): Promise<PanelRehearsal>;
    seal(input: { readonly text: string }): Promise<string>;
    open(input: { readonly text: string }): Promise<string>;
    ticket(input: {
        readonly handle: number;
        readonly permission: string;
        readonly data: unknown;
        readonly ttlSeconds: number;
    }): Promise<{ readonly ticket: string; readonly expiresAt: Date }>;
    task(input: {
        readonly options: Omit<TaskOptions, 'actor'>;
        readonly handle: number | null;
        run(input: PlainTaskRun): Promise<{ readonly result: unknown }>;
    }): Promise<TaskView>;
    schedule(input: {
        readonly name: string;
        readonly when: When;
        run(input: {
            readonly at: Date;
            readonly missed: boolean;
            readonly signal: AbortSignal;
        }): Promise<void>;
    }): Promise<void>;
    unschedule(input: { readonly name: string }): Promise<void>;
    nextRun(input: { readonly name: string }): Promise<Date | null>;
    putService(input: { readonly name: string; readonly options: ServiceOptions }): Promise<ServiceInfo>;
    listServices(input: object): Promise<readonly ServiceInfo[]>;
    /** @throws NOT_FOUND 40400 */
    changeService(input: {
        readonly name: string;
        readonly change: 'start' | 'stop' | 'restart' | 'reload';
    }): Promise<ServiceInfo>;
    removeService(input: { readonly name: string }): Promise<void>;
    serviceOutput(input: {
        readonly name: string;
        readonly tail: number;
        readonly follow: boolean;
        readonly signal: AbortSignal | null;
    }): Promise<{ readonly lines: AsyncIterable<ServiceLine> }>;
    /** In batches, since a message for each record would cost more than the record. */
    accessLog(
        input: Required<AccessLogOptions>
    ): Promise<{ readonly batches: AsyncIterable<readonly AccessRecord[]> }>;
    notify(input: Notification): Promise<void>;
    audit(input: Omit<PluginAuditEntry, 'actor'> & { readonly handle: number | null }): Promise<void>;
    runHook(input: {
        readonly name: string;
        readonly payload: unknown;
    }): Promise<{ readonly result: unknown }>;
    collect(input: {
        readonly name: string;
        readonly only: readonly string[] | null;
        readonly signal: AbortSignal | null;
        payload(input: { readonly plugin: string }): Promise<{ readonly payload: unknown }>;
    }): Promise<{ readonly outcomes: AsyncIterable<Outcome<unknown>> }>;
    partner(input: {
        readonly plugin: string;
        readonly method: string;
        readonly input: unknown;
        readonly handle: number | null;
        readonly signal: AbortSignal | null;
    }): Promise<ContractAnswer>;
}

/** What a task's work is handed over the boundary. */
export interface PlainTaskRun {
    readonly id: number;
    readonly signal: AbortSignal;
    readonly asker: Asker | null;
    progress(input: { readonly fraction: number | null; readonly text?: string }): Promise<void>;
    log(input: { readonly line: string }): Promise<void>;
}
