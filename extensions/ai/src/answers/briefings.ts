/** What the model is told and may call, for each kind of answer. */
import type { Approvals } from '@portico/agents';
import type { Actor } from '@portico/sdk';

import type { Changes } from '../changes/changes.ts';
import { stepsOf } from '../conversations/conversations.ts';
import type { ConversationRow, MessageRow } from '../entities.ts';
import type { Memories } from '../memories/memories.ts';
import type { Ctx } from '../settings.ts';
import type { Catalogue } from '../tools/catalogue.ts';
import { PanelTools, type PanelToolsOptions } from '../tools/panel-tools.ts';
import type { AnswerRequest } from './answers.ts';

interface BriefingsOptions {
    readonly ctx: Ctx;
    readonly catalogue: Catalogue;
    readonly approvals: Approvals;
    readonly changes: Changes;
    readonly memories: Memories;
}

/** Functions of earlier answers that stay in sight. */
const mostUsed = 16;

/** Prepares answers: what the model is told of the user's memories, and which routes of the panel it may use. */
export class Briefings {
    readonly #options: BriefingsOptions;

    constructor(options: BriefingsOptions) {
        this.#options = options;
    }

    /** An answer in a conversation. */
    chat(actor: Actor, conversation: ConversationRow): AnswerRequest['brief'] {
        return async (about, past, signal) => ({
            system: remembered(await this.#options.memories.recall(actor, about, signal)),
            toolbox: await this.tools(actor, { conversationId: conversation.id, about, past })
        });
    }

    /** The panel's routes for one answer. */
    async tools(
        actor: Actor,
        {
            past,
            ...about
        }: Pick<PanelToolsOptions, 'conversationId' | 'about' | 'readsOnly'> & {
            readonly past: readonly MessageRow[];
        }
    ): Promise<PanelTools> {
        const { ctx, catalogue, approvals, changes } = this.#options;
        return new PanelTools({
            ctx,
            actor,
            approvals,
            changes,
            ...about,
            usable: await catalogue.usable(actor),
            used: usedIn(past)
        });
    }
}

function remembered(memories: readonly string[]): string[] {
    return memories.length === 0
        ? []
        : [`What the user told you to keep in mind:\n${memories.map((text) => `- ${text}`).join('\n')}`];
}

/** Functions that earlier answers called, the latest first. */
function usedIn(past: readonly MessageRow[]): readonly string[] {
    const names = past
        .filter(({ role }) => role === 'assistant')
        .flatMap((message) => stepsOf(message).flatMap(({ calls }) => calls.map(({ name }) => name)));
    return [...new Set(names.reverse())].slice(0, mostUsed);
}
