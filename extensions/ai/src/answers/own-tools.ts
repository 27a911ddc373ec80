/** Functions of the assistant itself, beside those of the panel: what an answer has to bring. */
import type { StepCall } from '../conversations/conversations.ts';
import type { ModelTool } from '../providers/model.ts';
import type { AnswerEvent } from './events.ts';
import { refusedCall, type Toolbox, type ToolCall } from './toolbox.ts';

/** What a call of such a function comes to. */
export interface OwnResult {
    /** What the model reads. */
    readonly data: unknown;
    readonly events: readonly AnswerEvent[];
    /** The answer has what it was for. */
    readonly done: boolean;
}

/** A function that the model may call and that is no route of the panel. */
export interface OwnTool {
    readonly definition: ModelTool;
    /** @returns null when the input has another form than the definition says */
    run(input: unknown, signal: AbortSignal): Promise<OwnResult | null>;
}

/** One function, and what the answer may read of the panel. */
export class OwnTools implements Toolbox {
    readonly #own: OwnTool;
    readonly #panel: Toolbox | null;
    #isDone = false;

    constructor(own: OwnTool, panel: Toolbox | null) {
        this.#own = own;
        this.#panel = panel;
    }

    get isDone(): boolean {
        return this.#isDone;
    }

    functions(): readonly ModelTool[] {
        return [this.#own.definition, ...(this.#panel?.functions() ?? [])];
    }

    async resolved(call: StepCall): Promise<StepCall> {
        return this.#panel === null ? call : this.#panel.resolved(call);
    }

    async *call(call: ToolCall, signal: AbortSignal): AsyncGenerator<AnswerEvent, StepCall> {
        const { definition } = this.#own;
        if (call.name !== definition.name) {
            return this.#panel === null
                ? refusedCall(call, 'There is no such function', 40_400)
                : yield* this.#panel.call(call, signal);
        }
        const result = await this.#own.run(call.input, signal);
        if (result === null) {
            return refusedCall(call, 'The arguments have another form than the function says');
        }
        yield* result.events;
        this.#isDone ||= result.done;
        return { ...refusedCall(call, 'ok'), status: 200, code: 0, data: result.data };
    }
}
