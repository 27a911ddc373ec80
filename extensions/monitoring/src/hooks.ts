/** The hooks of the core that the plugin taps. */
import { exportedRules } from './alerts/schema.ts';
import { exportedChecks } from './checks/input.ts';
import { exportedExports } from './exports/input.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import { exportedSilences } from './silences/schema.ts';

type Mode = 'merge' | 'replace';

/** What can be exported: how it is collected, and how it is taken back. */
interface Item {
    readonly leftOut: readonly string[];
    collect(): Promise<unknown>;
    /** Resolves with what is wrong with each object that was left out. */
    restore(data: unknown, mode: Mode): Promise<readonly string[]>;
}

/** Takes part in exports and imports of the panel. The core seals what a plugin gives, so the values of headers may be in it. */
export function registerHooks(ctx: Ctx, services: Services): void {
    const items = itemsOf(services);
    ctx.hooks.tap('export.collect', () =>
        Promise.all(
            Object.entries(items).map(async ([name, { leftOut, collect }]) => ({
                name,
                data: { [name]: await collect() },
                leftOut
            }))
        )
    );
    ctx.hooks.tap('import.restore', async ({ items: given, mode }) => {
        const restored = [];
        for (const [item, { restore }] of Object.entries(items)) {
            const found = given.find(({ name }) => name === item);
            if (found !== undefined) {
                restored.push(resultOf(item, await restore(found.data, mode)));
            }
        }
        return restored;
    });
}

function itemsOf({
    monitor: { rules, silences },
    checks,
    exports
}: Services): Readonly<Record<string, Item>> {
    return {
        rules: {
            leftOut: [
                'the history of measurements',
                'alerts, those that fire and those that are over',
                'who authorized the actions of rules'
            ],
            collect: () => rules.exportAll(),
            restore: (data, mode) => rules.restore(exportedRules(data), mode)
        },
        checks: {
            leftOut: ['the results of checks'],
            collect: async () => checks.exportAll(),
            restore: (data, mode) => checks.restore(exportedChecks(data), mode)
        },
        exports: {
            leftOut: ['samples that wait to be sent'],
            collect: async () => exports.exportAll(),
            restore: (data, mode) => exports.restore(exportedExports(data), mode)
        },
        silences: {
            leftOut: ['silences of single rules, and those that are over'],
            collect: async () => silences.exportAll(),
            restore: (data, mode) => silences.restore(exportedSilences(data), mode)
        }
    };
}

function resultOf(item: string, problems: readonly string[]) {
    return problems.length === 0
        ? { item, ok: true }
        : { item, ok: false, message: `Not restored: ${problems.join('; ')}` };
}
