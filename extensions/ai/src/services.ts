/** The services of one generation of the plugin. */
import { Approvals } from '@portico/agents';

import { Answers } from './answers/answers.ts';
import { Briefings } from './answers/briefings.ts';
import { Changes } from './changes/changes.ts';
import { Conversations } from './conversations/conversations.ts';
import { Documents } from './documents/documents.ts';
import { approvalTable } from './entities.ts';
import { fail } from './errors.ts';
import { Inspections } from './inspection/inspections.ts';
import type { Machine } from './machine.ts';
import { Memories } from './memories/memories.ts';
import { Policies } from './policies/policies.ts';
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
    readonly documents: Documents;
    readonly inspections: Inspections;
    readonly machine: Machine;
    readonly memories: Memories;
    readonly models: Models;
    readonly policies: Policies;
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
        tooMany: () => fail.LIMIT_REACHED({ limit: 'openApprovals', retryAfter: 60, retryAfterSeconds: 60 }),
        now: () => machine.now(),
        madeBy: 'user'
    });
    const memories = new Memories({ ctx, machine, models, providers, usage });
    const briefings = new Briefings({ ctx, catalogue, approvals, changes, memories });
    return {
        answers,
        approvals,
        briefings,
        catalogue,
        changes,
        conversations,
        documents: new Documents(ctx),
        inspections: new Inspections({ ctx, machine, models, providers, usage }),
        machine,
        memories,
        models,
        policies: new Policies({ ctx, machine, approvals, changes }),
        providers,
        usage
    };
}
