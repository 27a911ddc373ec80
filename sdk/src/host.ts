/** For hosts of plugins only, never for plugins: the boundary, which the core and the test kit plug their ports into. */
export { createHookHost } from './boundary/hooks/hook-host.ts';
export type {
    HookHost,
    HookOptions,
    Published,
    TapFailure,
    TapGate,
    TapOwner
} from './boundary/hooks/hook-host.ts';
export { allowedHeaders, sandboxHeaders } from './boundary/answer-headers.ts';
export { Asked, AskedTap } from './boundary/asked.ts';
export { boundaryErrors, failureOf } from './boundary/failures.ts';
export { coversProgram, Grants, type Capabilities } from './boundary/grants.ts';
export { createGuest, type GuestOptions } from './boundary/guest/guest.ts';
export { Link, type Port } from './boundary/link.ts';
export { deepFreeze, isFields, plainCopy } from './boundary/plain.ts';
export type {
    Asker,
    ContractAnswer,
    DefinitionDocument,
    GenerationDocument,
    Guest,
    HostApi,
    JsonAnswer,
    PlainActor,
    PlainDownload,
    PlainRequest,
    PlainTaskRun,
    Release,
    RouteDocument,
    SchemaDescription
} from './boundary/protocol.ts';
export { partnerProxy } from './boundary/guest/partners.ts';
export { describeSchema } from './boundary/schemas/describe.ts';
export { isPure } from './boundary/schemas/purity.ts';
export { checkedEvents } from './boundary/guest/requests/serialise.ts';
export { Scope, within, type Owned } from './boundary/scope.ts';
export { mapSecrets, secretPaths } from './boundary/schemas/secrets.ts';
export {
    labelOf,
    mergeSettings,
    openSettings,
    sealSettings,
    viewSettings,
    type Sealer
} from './boundary/schemas/settings.ts';
export { faultsOf, validate, type Place } from './boundary/schemas/validation.ts';
export { faultOfPropertyUi, faultOfRouteUi } from './routes/ui.ts';
export type { LocalApi } from './boundary/local-api.ts';
