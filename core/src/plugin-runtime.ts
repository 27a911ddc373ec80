/**
 * Internal, for `@portico/testing` alone, and without a promise of compatibility: the parts of the panel that a plugin runs in. The test kit
 * builds a panel of them with doubles at the outer ports, so that a test runs the code that the panel runs. Nothing is defined here.
 */
export { networkPort } from './composition/plugins/plugin-ports.ts';
export { reservedNames } from './composition/plugins/reserved-names.ts';
export { build } from './features/hosts/input/build.ts';
export { Faults } from './features/hosts/input/normalise.ts';
export { checkedBody } from './features/hosts/input/unchecked.ts';
export { mayChange, refuse } from './features/hosts/rules/refusals.ts';
export { taskEntities, taskMigrations } from './features/tasks/entities.ts';
export { Tasks } from './features/tasks/tasks.ts';
export { type fixedRoles, Permissions } from './features/users/roles/permissions.ts';
export type { Call, Caller } from './platform/call.ts';
export { type Database, openDatabase } from './platform/database/database.ts';
export { fail } from './platform/errors.ts';
export { createCoreHooks } from './platform/hooks.ts';
export { createKeyring } from './platform/keys/keyring.ts';
export type { Logger } from './platform/log/log.ts';
export { permissionsOf } from './plugins/manager/records/permissions.ts';
export { type CatalogueEntry, entries as catalogueEntries } from './plugins/runtime/api/catalogue.ts';
export { allAddressesOf } from './plugins/runtime/api/hosts-service.ts';
export { createLocalApi } from './plugins/runtime/api/local-api.ts';
export { pluginCaller } from './plugins/runtime/api/plugin-caller.ts';
export { createInternalCall, systemCaller } from './server/http/request/internal-call.ts';
export { openPluginDatabase } from './plugins/runtime/database.ts';
export { pluginHostEntities, pluginHostMigrations } from './plugins/runtime/entities.ts';
export {
    type Capabilities,
    type Generation,
    GenerationFault,
    type GenerationTiming,
    type GuestRuntime,
    type GuestSides,
    type PluginHost,
    type ReleaseReport
} from './plugins/runtime/generation/generation.ts';
export { LentFolders } from './plugins/runtime/files/lent-folders.ts';
export { createPluginHost } from './plugins/runtime/generation/host.ts';
export { Network } from './plugins/runtime/network.ts';
export type { Contracts } from './plugins/runtime/partners/contracts.ts';
export type {
    AccessLogPort,
    CertificatesPort,
    HostsPort,
    MandatesPort,
    NetworkPort,
    PanelPort,
    PluginGateway
} from './plugins/runtime/ports.ts';
export {
    machinePrograms,
    type ProgramCommand,
    type ProgramsPort,
    type RunningProgram
} from './plugins/runtime/programs/machine.ts';
export { Programs } from './plugins/runtime/programs/programs.ts';
export type { Alarm } from './plugins/runtime/schedules.ts';
export {
    type OutputOptions,
    type ServiceCommand,
    type ServiceLine,
    ServiceNotReloadable,
    type ServicesPort,
    type ServiceStatus,
    ServiceUnknown
} from './services/port.ts';
export { SupervisedServices } from './services/supervised.ts';
export { retireSupervisor } from './services/takeover.ts';
export { createGateway, type Gateway } from './server/gateway/gateway.ts';
export { requireAccess, requireFresh } from './server/http/access.ts';
export { unknownPath } from './server/http/answer/unknown-path.ts';
export { idempotencyEntities, idempotencyMigrations } from './server/http/idempotency/entities.ts';
export { IdempotencyKeys } from './server/http/idempotency/idempotency.ts';
export type { AuditEntry, Authenticator, HttpPorts } from './server/http/ports.ts';
export { fullPath, templateOf } from './server/http/openapi/path.ts';
export { json, type Route } from './server/http/route.ts';
export { createHttpServer, type HttpServer } from './server/http/server.ts';
export { createRegistry, type Manifest, type PluginPackage, readManifest, resolve } from '@portico/registry';
