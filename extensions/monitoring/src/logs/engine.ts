/** The log of the proxy engine, which the panel shows to those who may read it. */
import { setTimeout as wait } from 'node:timers/promises';

import { type Actor, errors } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import type { FollowedLine, FollowOptions } from './follow.ts';
import { type LogLine, parseLine } from './line.ts';
import { isWanted, type LogQuery } from './query.ts';

/** The id of the panel's route that reads the engine's log. */
export const engineLogRoute = 'proxyengine.logs';
/** So many lines are below the limit in bytes, also where each has the headers of a request. */
const mostLines = 5_000;
const limits = { maxBytes: 16_777_216, maxSeconds: 20 };
/** How often the log is read while it is followed, and how much of it. */
const pauseMs = 1_000;
const followedLines = 1_000;

/** Finds the newest lines, the newest first. @throws FORBIDDEN 40300, NOT_FOUND 40400 */
export async function readEngineLog(
    ctx: Ctx,
    actor: Actor,
    query: LogQuery,
    { limit, now, signal }: { limit: number; now: number; signal: AbortSignal }
): Promise<LogLine[]> {
    const lines = await readLines(ctx, actor, mostLines, signal);
    return lines
        .toReversed()
        .map((text) => parseLine(text, false, now))
        .filter((line) => isWanted(line, query))
        .slice(0, limit);
}

/** Follows the log. The engine's lines have no ids, so a client begins anew. @throws as {@link readEngineLog} */
export async function* followEngineLog(
    ctx: Ctx,
    actor: Actor,
    { query, now, signal }: FollowOptions
): AsyncGenerator<FollowedLine> {
    let before = await readLines(ctx, actor, followedLines, signal);
    while (!signal.aborted) {
        await wait(pauseMs, undefined, { signal }).catch(() => undefined);
        const lines = signal.aborted ? before : await readLines(ctx, actor, followedLines, signal);
        for (const text of newLines(before, lines)) {
            const line = parseLine(text, false, now());
            if (isWanted(line, query)) {
                yield { id: 'engine', line };
            }
        }
        before = lines;
    }
}

/** What stands behind the last line that was there before; everything, where that line is gone. */
function newLines(before: readonly string[], lines: readonly string[]): readonly string[] {
    const last = before.at(-1);
    return last === undefined ? lines : lines.slice(lines.lastIndexOf(last) + 1);
}

async function readLines(ctx: Ctx, actor: Actor, lines: number, signal: AbortSignal): Promise<string[]> {
    const { status, code, text } = await ctx.api.read(
        actor,
        { id: engineLogRoute, query: { lines }, signal },
        limits
    );
    if (code === 40_300) {
        throw errors.forbidden('engine:logs');
    }
    if (code === 40_400) {
        throw errors.notFound('The panel has no log of its engine');
    }
    if (code !== 0) {
        throw new Error(`The panel answers ${status}, ${code} when its engine's log is read`);
    }
    // What follows the last line end is nothing, or a line that was cut.
    return text
        .split('\n')
        .slice(0, -1)
        .flatMap((line) => (line.startsWith('data: ') ? [lineOf(line.slice(6))] : []));
}

/** An event's data is JSON: the line as a text. */
function lineOf(data: string): string {
    return String(JSON.parse(data));
}
