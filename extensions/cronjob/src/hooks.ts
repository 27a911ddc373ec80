/** The hooks of the core that the plugin taps. */
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import { exportedTasks } from './tasks/input/input.ts';

const item = 'tasks';
const leftOut = ['the history of runs and their output'];

/** Takes part in exports and imports of the panel. The core seals what a plugin gives, so the values of environments may be in it. */
export function registerHooks(ctx: Ctx, { exportSection }: Services): void {
    ctx.hooks.tap('export.collect', async () => [
        { name: item, data: { tasks: await exportSection.exportAll() }, leftOut }
    ]);
    ctx.hooks.tap('import.restore', async ({ items, mode }) => {
        const given = items.find(({ name }) => name === item);
        if (given === undefined) {
            return [];
        }
        const problems = await exportSection.restore(exportedTasks(given.data), mode);
        return [
            problems.length === 0
                ? { item, ok: true }
                : { item, ok: false, message: `Not restored: ${problems.join('; ')}` }
        ];
    });
}
