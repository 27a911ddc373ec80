/** The hooks of the core that the plugin taps. */
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import { exportedTasks } from './tasks/input.ts';

/** What an export holds, and what it leaves out. */
const item = 'tasks';
const leftOut = 'the history of runs and their output is not part of an export';

/** Takes part in exports and imports of the panel. The core seals what a plugin gives, so the values of environments may be in it. */
export function registerHooks(ctx: Ctx, { tasks }: Services): void {
    ctx.hooks.tap('export.collect', async () => [
        { name: item, data: { tasks: await tasks.exportAll(), leftOut: [leftOut] } }
    ]);
    ctx.hooks.tap('import.restore', async ({ items, mode }) => {
        const given = items.find(({ name }) => name === item);
        if (given === undefined) {
            return [];
        }
        const problems = await tasks.restore(exportedTasks(given.data), mode);
        return [
            {
                item,
                ok: problems.length === 0,
                message: problems.length === 0 ? leftOut : `Not restored: ${problems.join('; ')}`
            }
        ];
    });
}
