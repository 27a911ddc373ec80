/** All that an extension may import of Portico. */
export { createFailure, defineErrors, isFailure, messageOf, statusOf } from './errors.ts';
export type { Failure, FailureError, FailureFactory, FailureOptions, FailureRow } from './errors.ts';
export { contract, definePlugin, isDefinition } from './definition.ts';
export type {
    Contract,
    Call,
    ContractOf,
    ContractToken,
    Definition,
    Migration,
    NoSettings,
    Partners,
    PluginDefinition,
    Remote,
    RemoteOptions
} from './definition.ts';
export type {
    Assets,
    Context,
    Db,
    Frozen,
    Health,
    HookService as HookDoor,
    HookRun,
    IssuedTicket,
    Logger,
    Notification,
    PluginAuditEntry,
    Scheduled,
    ScheduledRun,
    TaskOptions,
    TaskRun,
    When
} from './context/context.ts';
export type { FileEntry, FileName, Files } from './context/files.ts';
export type { AccessLogOptions, AccessRecord } from './context/access-log.ts';
export type {
    ApiAnswer,
    ApiCall,
    ApiService as ApiDoor,
    ApiText,
    JsonSchema,
    Plan,
    PlannedChange,
    ReadLimits,
    RouteFilter,
    RouteInfo,
    TaskProgress
} from './context/catalogue.ts';
export type {
    Child,
    ExecOptions,
    ExecResult,
    Exit,
    GroupLimits,
    SpawnOptions,
    Usage
} from './context/process.ts';
export type { MandateOptions, MandatesService } from './context/mandates.ts';
export type { PanelListener, PanelRehearsal, PanelService } from './context/panel-service.ts';
export type {
    AppliedHost,
    Certificate,
    CertificatesService as CertificatesDoor,
    Host,
    HostFields,
    HostsService as HostsDoor,
    UpstreamState,
    ProbeAnswer,
    ProbeOptions,
    EngineAccount
} from './context/hosts-service.ts';
export type {
    ServiceExit,
    ServiceInfo,
    ServiceLine,
    ServiceOptions,
    ServicesService
} from './context/services.ts';
export { canonicalize, hashOf } from './helpers/canonical-json.ts';
export { type BufferedEvent, EventBuffer } from './helpers/event-buffer.ts';
export { MinuteLimit } from './helpers/minute-limit.ts';
export { KeyedMutex, Mutex } from './helpers/mutex.ts';
export { matchPattern } from './helpers/pattern.ts';
export { isWebhookProven, newWebhookSecret } from './helpers/webhook.ts';
export type { WebhookHeaders, WebhookOptions } from './helpers/webhook.ts';
export { errors } from './plugin-errors.ts';
export { requireVersion } from './helpers/version.ts';
export { createHookHost } from './boundary/hooks/hook-host.ts';
export type {
    HookHost,
    HookOptions,
    Published,
    TapFailure,
    TapGate,
    TapOwner
} from './boundary/hooks/hook-host.ts';
export type {
    BackupEntry,
    BackupItem,
    Collect,
    EngineFragment,
    ExportItem,
    Guard,
    HookKind,
    HookName,
    Hooks,
    Notify,
    Outcome,
    RestoredItem,
    Tap,
    TapOrder,
    Waterfall
} from './hooks.ts';
export { joi } from './joi.ts';
export type {
    AnySchema,
    ArrayMethods,
    ObjectMethods,
    ObjectOf,
    SchemaMeta,
    SchemaOf,
    Shape,
    Typed,
    TypedJoi,
    Value
} from './joi.ts';
export { pages } from './routes/pages.ts';
export type { PageOf, PageQuery } from './routes/pages.ts';
export { isReply, nextCursorHeader, reply } from './routes/reply.ts';
export type { Page, Reply, ReplyOptions, TaskView, TaskView as Task } from './routes/reply.ts';
export type {
    Access,
    Actor,
    AuditDetail,
    Awaitable,
    Bytes,
    Declared,
    Described,
    Download,
    DownloadRoute,
    Effect,
    EventOf,
    EventSchemas,
    HttpRoute,
    JsonRoute,
    Method,
    PluginAccess,
    PluginDescribed,
    PluginDownload,
    PluginHttp,
    PluginRoute,
    PluginSocket,
    PluginStream,
    PluginUpload,
    Request,
    Socket,
    SocketRoute,
    StreamEvent,
    StreamRoute,
    Success,
    TicketAccess,
    Ticketed,
    TokenInfo,
    UploadRoute
} from './routes/route.ts';
export { taskSchema } from './routes/task-schema.ts';
export type { PropertyUi, RouteDeadline, RouteLink, RouteRole, RouteUi, Tone, Widget } from './routes/ui.ts';
