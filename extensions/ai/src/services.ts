/** The services of one generation of the plugin. */
import { Answers } from './answers/answers.ts';
import { Briefings } from './answers/briefings.ts';
import { Conversations } from './conversations/conversations.ts';
import type { Machine } from './machine.ts';
import { Models } from './providers/model.ts';
import { Providers } from './providers/providers.ts';
import type { Ctx } from './settings.ts';
import { UsageMeter } from './usage/usage.ts';

/** What the routes ask. */
export interface Services {
    readonly answers: Answers;
    readonly briefings: Briefings;
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
    const briefings = new Briefings();
    return { answers, briefings, conversations, machine, models, providers, usage };
}
