/** What a tool answers: the route's envelope, as structured content and as text, at most so many bytes of it. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { ApprovalView } from '@portico/agents';
import { type ApiAnswer, type ApiText, isFailure } from '@portico/sdk';

/** What was left out. */
export interface Truncated {
    readonly items: number;
    readonly of: number;
}

/** What a tool answers. */
export interface ToolAnswer {
    readonly status: number;
    readonly code: number;
    readonly message: string;
    readonly data: unknown;
    readonly next: string | null;
    readonly etag: string | null;
    /** Set where the call needed an approval; without arguments and plan where they are too long. */
    readonly approval?: Omit<ApprovalView, 'arguments' | 'plan'>;
    readonly truncated?: Truncated;
}

/** Texts of answers: an answer is measured, sent and recorded, and written as JSON once. */
const texts = new WeakMap<ToolAnswer, string>();

/** An answer of the plugin itself. */
export function done(data: unknown): ToolAnswer {
    return { status: 200, code: 0, message: 'ok', data, next: null, etag: null };
}

/** Makes the answer of a tool from that of its route. */
export function answerOf({ status, code, message, data, next, etag }: ApiAnswer): ToolAnswer {
    return { status, code, message, data, next, etag };
}

/** What a route that only reads answered, as its text: nothing of it is parsed unless some of it is to be cut. */
export function answerOfText({ status, code, text, truncated, etag, next }: ApiText): ToolAnswer {
    if (truncated) {
        return { status, code, message: 'ok', data: null, next, etag, truncated: { items: 0, of: 1 } };
    }
    let parsed: Pick<ToolAnswer, 'message' | 'data'> | undefined;
    const whole = (): Pick<ToolAnswer, 'message' | 'data'> =>
        (parsed ??= JSON.parse(text) as Pick<ToolAnswer, 'message' | 'data'>);
    const answer: ToolAnswer = {
        status,
        code,
        get message() {
            return whole().message;
        },
        get data() {
            return whole().data;
        },
        next,
        etag
    };
    // The envelope with what belongs to it beside it.
    const rest = `"next":${JSON.stringify(next)},"etag":${JSON.stringify(etag)}`;
    texts.set(answer, `{"status":${status},${text.slice(1, -1)},${rest}}`);
    return answer;
}

/** A failure as an answer. @throws what is no failure */
export function failed(error: unknown): ToolAnswer {
    if (!isFailure(error)) {
        throw error;
    }
    const { code, reason, message, data } = error;
    return {
        status: Math.floor(code / 100),
        code,
        message,
        data: { reason, ...data },
        next: null,
        etag: null
    };
}

/** The protocol's form of an answer. */
export function resultOf(whole: ToolAnswer): CallToolResult {
    const { truncated, ...answer } = whole;
    return {
        content: [{ type: 'text', text: textOf(whole) }],
        structuredContent: { ...answer },
        isError: answer.code !== 0,
        ...(truncated === undefined ? {} : { _meta: { 'portico/truncated': truncated } })
    };
}

/** Bytes of an answer as JSON. */
export function bytesOf(answer: ToolAnswer): number {
    return Buffer.byteLength(textOf(answer));
}

/** An answer as JSON. */
export function textOf(whole: ToolAnswer): string {
    let text = texts.get(whole);
    if (text === undefined) {
        const { truncated: _note, ...answer } = whole;
        text = JSON.stringify(answer);
        texts.set(whole, text);
    }
    return text;
}

/**
 * Cuts an answer that is too long: first what its approval shows, which the panel shows as well, then at a whole item of its longest list.
 * Without a list nothing of the data is left, and the note says so. A page that is cut has no `next`: a smaller one is asked for with `limit`.
 *
 * @param most - bytes of the answer as JSON
 */
export function cut(answer: ToolAnswer, most: number): ToolAnswer {
    if (bytesOf(answer) <= most) {
        return answer;
    }
    if (answer.approval !== undefined && 'plan' in answer.approval) {
        const { arguments: _arguments, plan: _plan, ...approval } = answer.approval as ApprovalView;
        return cut({ truncated: { items: 0, of: 1 }, ...answer, approval }, most);
    }
    const room = most - bytesOf({ ...answer, data: null });
    const { data } = answer;
    if (Array.isArray(data)) {
        const items = fitting(data, room);
        // Its cursor goes on behind the whole page, and would skip what is cut.
        return { ...answer, data: items, next: null, truncated: { items: items.length, of: data.length } };
    }
    if (typeof data === 'object' && data !== null) {
        const [key, list] = longestList(data);
        const rest = room - Buffer.byteLength(JSON.stringify({ ...data, [key]: [] }));
        if (list.length > 0 && rest > 0) {
            const items = fitting(list, rest);
            return {
                ...answer,
                data: { ...data, [key]: items },
                truncated: { items: items.length, of: list.length }
            };
        }
    }
    return { ...answer, data: null, truncated: { items: 0, of: 1 } };
}

function fitting(list: readonly unknown[], room: number): readonly unknown[] {
    let left = room - 2;
    const end = list.findIndex((item) => {
        left -= Buffer.byteLength(JSON.stringify(item ?? null)) + 1;
        return left < 0;
    });
    return end === -1 ? list : list.slice(0, end);
}

function longestList(data: object): readonly [string, readonly unknown[]] {
    let longest: readonly [string, readonly unknown[]] = ['', []];
    for (const [key, value] of Object.entries(data)) {
        if (Array.isArray(value) && value.length > longest[1].length) {
            longest = [key, value];
        }
    }
    return longest;
}
