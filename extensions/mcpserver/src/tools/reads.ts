/** Reads a route that only reads: its text is handed through, and what is too long is cut where its next page begins. */
import type { ToolArguments } from '@portico/agents';
import type { Actor, RouteInfo } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import { answerOfText, cut, type ToolAnswer } from './answer.ts';

/** Of a read, before it is cut to what the settings say. */
const mostRead = { maxBytes: 16_777_216, maxSeconds: 300 };

/** @returns at most `resultBytes`; what is cut from a list with pages is on its next page */
export async function readRoute(
    ctx: Ctx,
    actor: Actor,
    info: RouteInfo,
    given: ToolArguments,
    signal: AbortSignal
): Promise<ToolAnswer> {
    const most = ctx.settings.resultBytes;
    const read = async (query: ToolArguments['query']): Promise<ToolAnswer> =>
        answerOfText(await ctx.api.read(actor, { id: info.id, ...given, query, signal }, mostRead));
    const whole = await read(given.query);
    const short = cut(whole, most);
    const { truncated } = short;
    if (truncated === undefined || !Array.isArray(whole.data) || !hasLimit(info)) {
        return short;
    }
    // A smaller page has the cursor that goes on behind its own last item, also where that item alone is too long.
    const page = await read({ ...given.query, limit: Math.max(1, truncated.items) });
    return page.code === 0 ? { ...cut(page, most), next: page.next, truncated } : short;
}

function hasLimit({ query }: RouteInfo): boolean {
    const properties = query?.['properties'];
    return typeof properties === 'object' && properties !== null && 'limit' in properties;
}
