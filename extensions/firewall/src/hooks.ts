/** The hooks of the core that the plugin taps. */
import { isFailure } from '@portico/sdk';

import { documentSchema, type FirewallDocument } from './draft/document.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

const item = 'rules';
const leftOut = ['bans', 'elements of sets that end or are fetched', 'the history of applied rules'];

/** Hears of logins, and takes part in exports and imports of the panel with the draft. */
export function registerHooks(ctx: Ctx, { logins, documents }: Services): void {
    ctx.hooks.tap('audit.recorded', (entry) => logins.see(entry));
    ctx.hooks.tap('export.collect', async () => [{ name: item, data: await documents.read(), leftOut }]);
    ctx.hooks.tap('import.restore', async ({ items, mode }) => {
        const given = items.find(({ name }) => name === item);
        if (given === undefined) {
            return [];
        }
        const { error, value } = documentSchema.required().validate(given.data);
        if (error !== undefined) {
            return [{ item, ok: false, message: `The rules cannot be read: ${error.message}` }];
        }
        try {
            await documents.write(value as FirewallDocument, mode, false);
            return [{ item, ok: true }];
        } catch (failure) {
            if (isFailure(failure)) {
                return [{ item, ok: false, message: failure.message }];
            }
            throw failure;
        }
    });
}
