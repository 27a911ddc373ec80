/** Plugins that stacks and containers belong to. */
import type { Ctx } from '../settings.ts';

/** The plugin that something belongs to, as a record or a label names it; null when that plugin was removed with its data. */
export async function ownerNow(
    { panel }: Pick<Ctx, 'panel'>,
    owner: string | null | undefined
): Promise<string | null> {
    return owner !== null && owner !== undefined && (await panel.hasPlugin(owner)) ? owner : null;
}
