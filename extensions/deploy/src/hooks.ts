/** The hooks of the core that the plugin taps: projects in exports, and their shared folders in backups. */
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import { registerBackupHooks } from './transfer/backups.ts';
import { registerExportHooks } from './transfer/export-section.ts';

/** Takes part in exports, imports and backups of the panel. */
export function registerHooks(ctx: Ctx, services: Services): void {
    registerExportHooks(ctx, services);
    registerBackupHooks(ctx, services);
}
