/** For hosts of plugins only, never for plugins: the boundary, which the core and the test kit plug their ports into. */
export { createHookHost } from './boundary/hook-host.ts';
export type { HookHost, HookOptions, Published, TapFailure, TapOwner } from './boundary/hook-host.ts';
