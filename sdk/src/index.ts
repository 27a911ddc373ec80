/** All that an extension may import of Portico. */
export { createFailure, defineErrors, isFailure, statusOf } from './errors.ts';
export type { Failure, FailureError, FailureFactory, FailureOptions, FailureRow } from './errors.ts';
export { createHookHost } from './boundary/hook-host.ts';
export type { HookHost, HookOptions, Published, TapFailure, TapOwner } from './boundary/hook-host.ts';
export type { Collect, Guard, HookKind, HookName, Hooks, Notify, Outcome, Tap, TapOrder, Waterfall } from './hooks.ts';
export { joi } from './joi.ts';
export type { AnySchema, ArrayMethods, ObjectMethods, ObjectOf, SchemaOf, Shape, Typed, TypedJoi, Value } from './joi.ts';
export { isReply, nextCursorHeader, reply } from './reply.ts';
export type { Page, Reply, ReplyOptions, TaskView } from './reply.ts';
export type {
    Access, Actor, AuditDetail, Awaitable, Bytes, Described, Download, DownloadRoute, Effect, HttpRoute, JsonRoute, Method, Request, Socket, SocketRoute,
    StreamEvent, StreamRoute, UploadRoute
} from './route.ts';
