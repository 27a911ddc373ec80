/** The hooks of the core that the plugin taps. */
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Hears of logins. */
export function registerHooks(ctx: Ctx, { logins }: Services): void {
    ctx.hooks.tap('audit.recorded', (entry) => logins.see(entry));
}
