/** One answer: requests to the model and the calls that it asks for, until it has nothing more to ask. */
import { type Actor, type FailureError, isFailure } from '@portico/sdk';

import type { Outcome, Step, StepCall } from '../conversations/conversations.ts';
import type { EndReason, MessageRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Endpoint, ModelCall, Models } from '../providers/model.ts';
import { hasRemoved, type Redactor } from '../redaction/redaction.ts';
import type { Ctx } from '../settings.ts';
import { estimateTokens, type Spent, type UsageMeter } from '../usage/usage.ts';
import type { AnswerEvent } from './events.ts';
import { type Past, promptOf, sizeOf, stepMessages } from './prompt.ts';
import { refusedCall, type Toolbox } from './toolbox.ts';

/** What an answer needs. */
export interface AnswerParts {
    readonly ctx: Ctx;
    readonly models: Models;
    readonly usage: UsageMeter;
    readonly actor: Actor;
    readonly endpoint: Endpoint;
    readonly toolbox: Toolbox;
    readonly redactor: Redactor;
    /** Said before the conversation. */
    readonly system: readonly string[];
    readonly past: readonly Past[];
    readonly message: Pick<MessageRow, 'id' | 'conversationId'>;
    /** Aborts when the user stops the answer, the client leaves, or the plugin ends. */
    readonly signal: AbortSignal;
    /** Keeps how the answer ended. */
    readonly end: (outcome: Outcome) => Promise<void>;
}

/** Why the plugin ends an answer by itself. */
export const ending = 'The assistant is being stopped';

/** Produces one answer of a model, from the first step to the last. An object of this class runs once. */
export class Answer {
    readonly #parts: AnswerParts;
    readonly #steps: Step[] = [];
    readonly #spent = { input: 0, output: 0, cost: null as number | null };
    /** The text of the step under way, as far as it came. */
    #text = '';
    #began = false;
    #ended = false;

    constructor(parts: AnswerParts) {
        this.#parts = parts;
    }

    /** Keeps an answer as stopped whose events were never read. One that runs keeps itself. */
    async abandon(): Promise<void> {
        if (!this.#began) {
            await this.#keep('stopped');
        }
    }

    /**
     * The events of the answer. Whatever happens, how it ended is kept; the last event is `end`.
     *
     * @throws what made the answer fail, after `end`: the panel tells the client
     */
    async *run(): AsyncGenerator<AnswerEvent> {
        this.#began = true;
        const { message, signal } = this.#parts;
        let reason: EndReason = 'stopped';
        let failure: FailureError | null = null;
        try {
            yield {
                event: 'start',
                data: { messageId: message.id, conversationId: message.conversationId }
            };
            reason = yield* this.#work();
        } catch (error) {
            failure = signal.aborted
                ? signal.reason === ending
                    ? fail.MODEL_FAILED({ why: 'the assistant is being stopped' })
                    : null
                : this.#known(error);
            if (failure !== null) {
                reason = failure.reason === 'LIMIT_REACHED' ? 'limit' : 'error';
            }
        } finally {
            // A client that leaves ends the generator at a yield: nothing after this runs then.
            await this.#keep(reason);
        }
        yield { event: 'usage', data: this.#spent };
        yield { event: 'end', data: { messageId: message.id, reason } };
        if (failure !== null) {
            throw failure;
        }
    }

    async *#work(): AsyncGenerator<AnswerEvent, EndReason> {
        const { ctx, toolbox, signal } = this.#parts;
        for (let count = 0; count < ctx.settings.steps; count += 1) {
            signal.throwIfAborted();
            const { calls, reason } = yield* this.#ask();
            const made: StepCall[] = [];
            for (const call of calls) {
                signal.throwIfAborted();
                made.push(yield* this.#call(call));
            }
            this.#steps.push({ text: this.#text, calls: made });
            this.#text = '';
            if (made.some(({ status, approvalId }) => status === null && approvalId !== null)) {
                return 'approval';
            }
            if (calls.length === 0 || toolbox.isDone) {
                return reason === 'length' ? 'length' : 'stop';
            }
        }
        return 'limit';
    }

    async *#ask(): AsyncGenerator<
        AnswerEvent,
        { readonly calls: readonly ModelCall[]; readonly reason: 'stop' | 'length' | 'calls' }
    > {
        const { endpoint, models, usage, redactor, toolbox, actor, signal, system, past } = this.#parts;
        const prompt = [...promptOf(system, past, redactor), ...stepMessages(this.#steps, redactor)];
        const tools = toolbox.functions();
        const estimate = estimateTokens(sizeOf(prompt) + JSON.stringify(tools).length);
        const reserved = await usage.reserve(actor, endpoint, estimate);
        const text = redactor.restorer();
        const calls: ModelCall[] = [];
        let said = 0;
        let used: Pick<Spent, 'input' | 'output'> | null = null;
        let reason: 'stop' | 'length' | 'calls' = 'stop';
        try {
            for await (const event of models.ask(endpoint, { prompt, tools, signal })) {
                if (event.type === 'text') {
                    said += event.delta.length;
                    yield* this.#say(text.push(event.delta));
                } else if (event.type === 'call') {
                    calls.push(event.call);
                } else {
                    reason = event.reason;
                    used = {
                        input: event.input ?? estimate,
                        output: event.output ?? estimateTokens(said)
                    };
                }
            }
            yield* this.#say(text.end());
        } finally {
            await this.#count(reserved, used ?? { input: estimate, output: estimateTokens(said) });
        }
        return { calls, reason };
    }

    *#say(delta: string): Generator<AnswerEvent> {
        if (delta !== '') {
            this.#text += delta;
            yield { event: 'text', data: { delta } };
        }
    }

    async *#call({ id, name, input, meta }: ModelCall): AsyncGenerator<AnswerEvent, StepCall> {
        const { redactor, toolbox, signal } = this.#parts;
        const given = argumentsIn(input);
        if (given === undefined) {
            return refusedCall({ id, name, input: {}, meta }, 'The arguments are no JSON object');
        }
        const call = { id, name, input: redactor.restoreValue(given), meta };
        return hasRemoved(given)
            ? refusedCall(
                  call,
                  'The arguments hold [removed:…], which you do not get to see. Make the call without that field'
              )
            : yield* toolbox.call(call, signal);
    }

    async #count(reserved: number, used: Pick<Spent, 'input' | 'output'>): Promise<void> {
        const { usage, endpoint } = this.#parts;
        const { input, output, cost } = await usage.correct(reserved, endpoint, used);
        this.#spent.input += input;
        this.#spent.output += output;
        if (cost !== null) {
            this.#spent.cost = (this.#spent.cost ?? 0) + cost;
        }
    }

    async #keep(reason: EndReason): Promise<void> {
        if (this.#ended) {
            return;
        }
        this.#ended = true;
        const steps = this.#text === '' ? this.#steps : [...this.#steps, { text: this.#text, calls: [] }];
        const { end, redactor } = this.#parts;
        await end({ steps, reason, spent: { ...this.#spent }, placeholders: redactor.placeholders });
    }

    /** What the client is told. What is no failure is a fault of ours: the log has it. */
    #known(error: unknown): FailureError {
        if (isFailure(error)) {
            return error;
        }
        this.#parts.ctx.log.error('An answer failed', { error: String(error) });
        return fail.MODEL_FAILED({ why: 'the assistant failed; its log says more' }, { cause: error });
    }
}

function argumentsIn(input: string): object | undefined {
    try {
        const value: unknown = JSON.parse(input.trim() === '' ? '{}' : input);
        return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
    } catch {
        return undefined;
    }
}
