/** The answers that are under way: one at a time in a conversation. */
import { type Actor, errors } from '@portico/sdk';

import { type Conversations, stepsOf } from '../conversations/conversations.ts';
import type { Question } from '../conversations/schema.ts';
import type { ConversationRow, MessageRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Models } from '../providers/model.ts';
import type { Providers } from '../providers/providers.ts';
import { Redactor } from '../redaction/redaction.ts';
import type { Ctx } from '../settings.ts';
import type { UsageMeter } from '../usage/usage.ts';
import { Answer, ending } from './answer.ts';
import type { AnswerEvent } from './events.ts';
import type { Past } from './prompt.ts';
import type { Toolbox } from './toolbox.ts';

/** Messages of the past that an answer is given at most. */
const mostPast = 200;

/** What makes one kind of answer differ from another. */
export interface Briefing {
    /** Said to the model before the conversation. */
    readonly system: readonly string[];
    readonly toolbox: Toolbox;
}

/** What an answer is asked for. */
export interface AnswerRequest {
    readonly actor: Actor;
    readonly conversation: ConversationRow;
    /** Aborts when the client leaves. */
    readonly signal: AbortSignal;
    /** What the user says; null: go on with what is there. */
    readonly question: Question | null;
    /** Whether the newest answer is dropped first. */
    readonly anew?: boolean;
    /** Made once it is clear that there will be an answer. */
    readonly brief: (about: string, past: readonly MessageRow[], signal: AbortSignal) => Promise<Briefing>;
}

interface AnswersOptions {
    readonly ctx: Ctx;
    readonly models: Models;
    readonly providers: Providers;
    readonly conversations: Conversations;
    readonly usage: UsageMeter;
}

/** Begins answers, and stops them. */
export class Answers {
    readonly #options: AnswersOptions;
    /** By conversation. */
    readonly #running = new Map<number, AbortController>();
    #isEnding = false;

    constructor(options: AnswersOptions) {
        this.#options = options;
    }

    /**
     * Begins an answer.
     *
     * @throws BUSY 40953, NO_PROVIDER 50350, NOT_FOUND 40400 when there is nothing to answer
     */
    async begin(request: AnswerRequest): Promise<AsyncGenerator<AnswerEvent>> {
        const { id } = request.conversation;
        if (this.#running.has(id)) {
            throw fail.BUSY();
        }
        const controller = new AbortController();
        this.#running.set(id, controller);
        const leave = (): void => {
            if (this.#running.get(id) === controller) {
                this.#running.delete(id);
            }
        };
        try {
            const answer = await this.#prepare(request, controller.signal);
            const events = answer.run();
            // A generator that is never read runs none of its code, not even what releases.
            request.signal.addEventListener('abort', () => void answer.abandon().finally(leave), {
                once: true
            });
            return releasing(events, leave);
        } catch (error) {
            leave();
            throw error;
        }
    }

    /** Ends the answer of a conversation. Tells whether there was one. */
    stop(conversationId: number): boolean {
        const controller = this.#running.get(conversationId);
        controller?.abort('The user stopped the answer');
        return controller !== undefined;
    }

    /** Whether an answer of a conversation is under way. */
    isRunning(conversationId: number): boolean {
        return this.#running.has(conversationId);
    }

    /** Ends all answers, because the plugin ends: their streams end with an error. */
    endAll(): void {
        this.#isEnding = true;
        this.#running.forEach((controller) => controller.abort(ending));
    }

    async #prepare(request: AnswerRequest, stopped: AbortSignal): Promise<Answer> {
        const { ctx, models, providers, conversations, usage } = this.#options;
        const { actor, conversation, question } = request;
        if (this.#isEnding) {
            throw fail.NO_PROVIDER();
        }
        const endpoint = await providers.choose(conversation.providerId);
        await usage.check(actor);
        if (request.anew === true) {
            await conversations.dropAnswer(conversation);
        }
        if (question !== null) {
            await conversations.ask(conversation, question);
        }
        const newest = await conversations.messages(conversation.id, { before: null, limit: mostPast });
        const past = newest.reverse();
        const about = past.findLast(({ role }) => role === 'user')?.text;
        if (about === undefined) {
            throw errors.notFound('There is no question to answer');
        }
        const { system, toolbox } = await request.brief(about, past, request.signal);
        const resolved = await withResults(past, toolbox);
        const message = await conversations.begin(conversation);
        return new Answer({
            ctx,
            models,
            usage,
            actor,
            endpoint,
            toolbox,
            system,
            past: question === null && endsWithText(resolved) ? [...resolved, goOn] : resolved,
            message,
            redactor: new Redactor(
                ctx.settings,
                JSON.parse(conversation.placeholders) as Record<string, string>
            ),
            signal: AbortSignal.any([request.signal, stopped]),
            end: (outcome) => conversations.end(message, outcome)
        });
    }
}

/** What is said in the place of a question when an answer shall go on. */
const goOn: Past = { role: 'user', text: 'Go on where you stopped.', parts: '[]' };

function endsWithText(past: readonly Past[]): boolean {
    const last = past.at(-1);
    return last?.role === 'assistant' && (stepsOf(last).at(-1)?.calls.length ?? 0) === 0;
}

/** Gives the calls of earlier answers the results that came since. */
async function withResults(past: readonly MessageRow[], toolbox: Toolbox): Promise<MessageRow[]> {
    return Promise.all(
        past.map(async (message) => {
            if (message.role !== 'assistant') {
                return message;
            }
            const steps = stepsOf(message);
            const known = await Promise.all(
                steps.map(async ({ text, calls }) => ({
                    text,
                    calls: await Promise.all(
                        calls.map(async (call) => (call.approvalId === null ? call : toolbox.resolved(call)))
                    )
                }))
            );
            return { ...message, parts: JSON.stringify(known) };
        })
    );
}

async function* releasing(
    events: AsyncGenerator<AnswerEvent>,
    release: () => void
): AsyncGenerator<AnswerEvent> {
    try {
        yield* events;
    } finally {
        release();
    }
}
