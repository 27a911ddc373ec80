/** What an answer may call: routes of the panel, and functions of its own. */
import type { StepCall } from '../conversations/conversations.ts';
import type { ModelTool } from '../providers/model.ts';
import type { AnswerEvent } from './events.ts';

/** A call with its arguments read, and every placeholder in them put back. */
export interface ToolCall {
    readonly id: string;
    readonly name: string;
    readonly input: unknown;
    readonly meta: unknown;
}

/** What the answers ask tools for. A toolbox belongs to one answer. */
export interface Toolbox {
    /** What the model is shown with its next request. */
    functions(): readonly ModelTool[];
    /** Does one call: yields what the client shall see, and returns what is kept. It throws only what ends the answer. */
    call(call: ToolCall, signal: AbortSignal): AsyncGenerator<AnswerEvent, StepCall>;
    /** What came of calls that waited when the answer before ended, by the approval. */
    resolved(call: StepCall): Promise<StepCall>;
    /** The answer has what it was for; no further request is sent. */
    readonly isDone: boolean;
}

/** The record of a call that was not made. */
export function refusedCall({ id, name, input, meta }: ToolCall, message: string, code = 40_001): StepCall {
    return {
        id,
        name,
        route: name.replaceAll('__', '.'),
        arguments: input,
        status: Math.floor(code / 100),
        code,
        message,
        data: null,
        truncated: false,
        approvalId: null,
        meta
    };
}
