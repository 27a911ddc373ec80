/** The services of one generation of the plugin. */
import { Approvals } from '@portico/agents';

import { Answers } from './answers/answers.ts';
import { Briefings } from './answers/briefings.ts';
import { Changes } from './changes/changes.ts';
import { Conversations } from './conversations/conversations.ts';
import { approvalTable } from './entities.ts';
import { pluginErrors } from './errors.ts';
import type { Machine } from './machine.ts';
import { Models } from './providers/model.ts';
import { Providers } from './providers/providers.ts';
import type { Ctx } from './settings.ts';
import { Catalogue } from './tools/catalogue.ts';
import { UsageMeter } from './usage/usage.ts';

/** Open approvals of one user. */
const mostOpen = 100;

/** What the routes ask. */
export interface Services {
    readonly answers: Answers;
    readonly approvals: Approvals;
    readonly briefings: Briefings;
    readonly catalogue: Catalogue;
    readonly changes: Changes;
    readonly conversations: Conversations;
    readonly machine: Machine;
    readonly models: Models;
    readonly providers: Providers;
    readonly usage: UsageMeter;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx, machine: Machine): Services {
    const models = new Models(ctx, machine.patienceMs);
    const providers = new Providers(ctx);
    const usage = new UsageMeter(ctx, machine);
    const conversations = new Conversations(ctx, machine);
    const answers = new Answers({ ctx, models, providers, conversations, usage });
    const catalogue = new Catalogue(ctx);
    const changes = new Changes(ctx, machine);
    const approvals = new Approvals({
        ctx,
        table: approvalTable,
        minutes: () => ctx.settings.approvalMinutes,
        mostOpen,
        tooMany: () =>
            pluginErrors.LIMIT_REACHED({ limit: 'openApprovals', retryAfter: 60, retryAfterSeconds: 60 }),
        now: () => machine.now(),
        madeBy: 'user'
    });
    const briefings = new Briefings({ ctx, catalogue, approvals, changes });
    return {
        answers,
        approvals,
        briefings,
        catalogue,
        changes,
        conversations,
        machine,
        models,
        providers,
        usage
    };
}
