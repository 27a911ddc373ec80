/** The services of one generation of the plugin. */
import { Approvals } from '@portico/agents';
import type { HookRun } from '@portico/sdk';

import { Calls } from './calls.ts';
import { approvals as table } from './entities.ts';
import { fail } from './errors.ts';
import { Prompts } from './prompts/prompts.ts';
import { DirectCalls } from './protocol/direct.ts';
import { Endpoint } from './protocol/endpoint.ts';
import { Resources } from './protocol/resources.ts';
import { createServer, type ServerServices } from './protocol/server.ts';
import { Sessions } from './protocol/sessions.ts';
import type { Ctx } from './settings.ts';
import { Catalogue } from './tools/catalogue.ts';
import { CallLimits } from './tools/limits.ts';
import { OwnTools } from './tools/own-tools.ts';
import { ToolRunner } from './tools/run.ts';
import { Switches } from './tools/switches.ts';

/** Most open approvals of one actor. */
const mostApprovals = 100;
const dayMs = 86_400_000;
/** Changes that come together are announced together. */
const announceMs = 200;

/** What the routes ask. */
export interface Services {
    readonly approvals: Approvals;
    readonly calls: Calls;
    readonly catalogue: Catalogue;
    readonly endpoint: Endpoint;
    readonly limits: CallLimits;
    readonly own: OwnTools;
    readonly prompts: Prompts;
    readonly sessions: Sessions;
    readonly switches: Switches;
    /** Forgets which tools there are, and tells the clients. */
    readonly toolsChanged: () => void;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx): Services {
    const collect = ctx.hooks.define('mcpserver.prompts', {
        kind: 'collect',
        summary: 'Which prompts plugins have for agents'
    });
    const approvals = new Approvals({
        ctx,
        table,
        minutes: () => ctx.settings.approvalMinutes,
        mostOpen: mostApprovals,
        tooMany: () => fail.TOO_MANY_CALLS({ retryAfter: 60 }, { message: 'Too many approvals are open' })
    });
    const switches = new Switches(ctx);
    const catalogue = new Catalogue(ctx, switches);
    const calls = new Calls(ctx);
    const limits = new CallLimits(ctx);
    const own = new OwnTools(ctx, catalogue);
    const prompts = new Prompts(ctx, (): Promise<HookRun<'mcpserver.prompts'>> => collect({}));
    const runner = new ToolRunner({ ctx, catalogue, approvals, limits, calls, own });
    const resources = new Resources(ctx, catalogue, own);
    const parts: ServerServices = { version: ctx.version, catalogue, runner, resources, prompts };
    const sessions = new Sessions(() => createServer(parts));
    const endpoint = new Endpoint(ctx, sessions, new DirectCalls(parts), () => createServer(parts));
    return {
        approvals,
        calls,
        catalogue,
        endpoint,
        limits,
        own,
        prompts,
        sessions,
        switches,
        toolsChanged: announcer(ctx, catalogue, endpoint)
    };
}

function announcer(ctx: Ctx, catalogue: Catalogue, endpoint: Endpoint): () => void {
    let timer: NodeJS.Timeout | null = null;
    ctx.onStop(() => clearTimeout(timer ?? undefined));
    return () => {
        catalogue.clear();
        timer ??= setTimeout(() => {
            timer = null;
            catalogue.clear();
            void endpoint.announce('tools');
        }, announceMs);
    };
}

/** Removes what is older than it has to be kept, and ends what is idle. */
export async function clean(ctx: Ctx, { approvals, calls, sessions }: Services): Promise<void> {
    await sessions.sweep();
    await approvals.expire();
    await approvals.remove({ before: Date.now() - ctx.settings.callsKept * dayMs });
    await calls.clean();
}
