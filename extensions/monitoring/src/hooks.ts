/** The hooks of the core that the plugin taps. */
import { exportedRules } from './alerts/schema.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

const item = 'rules';
const leftOut = ['the history of measurements', 'alerts, those that fire and those that are over'];

/** Takes part in exports and imports of the panel with its alert rules. */
export function registerHooks(ctx: Ctx, { monitor: { rules } }: Services): void {
    ctx.hooks.tap('export.collect', async () => [
        { name: item, data: { rules: await rules.exportAll() }, leftOut }
    ]);
    ctx.hooks.tap('import.restore', async ({ items, mode }) => {
        const given = items.find(({ name }) => name === item);
        if (given === undefined) {
            return [];
        }
        const problems = await rules.restore(exportedRules(given.data), mode);
        return [
            problems.length === 0
                ? { item, ok: true }
                : { item, ok: false, message: `Not restored: ${problems.join('; ')}` }
        ];
    });
}
