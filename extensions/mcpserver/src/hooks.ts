/** What the panel tells the plugin: routes, users, tokens or grants are others now, so agents may have other tools. */
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Audited resources whose changes may give or take permissions; an import is one of `panel`. */
const permitting = new Set([
    'users',
    'roles',
    'tokens',
    'grants',
    'sessions',
    'plugins',
    'settings',
    'panel'
]);

/** Taps the hooks after which the list of tools may be another. */
export function registerHooks(ctx: Ctx, { toolsChanged }: Services): void {
    ctx.hooks.tap('routes.changed', () => toolsChanged());
    ctx.hooks.tap('audit.recorded', ({ resource, outcome }) => {
        if (outcome === 'success' && permitting.has(resource)) {
            toolsChanged();
        }
    });
    ctx.onSettings(() => toolsChanged());
}
