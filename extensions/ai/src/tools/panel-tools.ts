/** The panel's routes in one answer: a few are shown to the model, it finds the others; reads run, writes and what is dangerous wait for an approval. */
import {
    type Approvals,
    approvalView,
    argumentsOf,
    maskArguments,
    type ToolArguments
} from '@portico/agents';
import { type Actor, type ApiAnswer, isFailure } from '@portico/sdk';

import { cutResult } from '../answers/cut.ts';
import type { AnswerEvent } from '../answers/events.ts';
import { refusedCall, type Toolbox, type ToolCall } from '../answers/toolbox.ts';
import type { Changes } from '../changes/changes.ts';
import type { StepCall } from '../conversations/conversations.ts';
import type { ModelTool } from '../providers/model.ts';
import { Redactor } from '../redaction/redaction.ts';
import type { Ctx } from '../settings.ts';
import type { Tool } from './catalogue.ts';
import { rank } from './choice.ts';
import { functionOf, readsAtOnce } from './schema.ts';

/** Characters of all functions in one request. */
const mostCharacters = 60_000;
/** Functions that one search adds at most. */
const foundAtOnce = 8;
/** Characters of a result before it is searched for secrets; afterwards it is cut to its final size. */
const coarse = 262_144;

const findRoutes: ModelTool = {
    type: 'function',
    name: 'find_routes',
    description: 'Finds further functions of the panel by what they are about, and adds them',
    inputSchema: {
        type: 'object',
        properties: { query: { type: 'string', description: 'A few words' } },
        required: ['query'],
        additionalProperties: false
    }
};

/** What the tools of one answer need. */
export interface PanelToolsOptions {
    readonly ctx: Ctx;
    readonly actor: Actor;
    readonly approvals: Approvals;
    readonly changes: Changes;
    readonly conversationId: number;
    /** By name. */
    readonly usable: ReadonlyMap<string, Tool>;
    /** What the user asks. */
    readonly about: string;
    /** Functions that the conversation used before. */
    readonly used: readonly string[];
    /** Whether writes are there at all. */
    readonly readsOnly?: boolean;
}

/** The tools of one answer. */
export class PanelTools implements Toolbox {
    readonly #options: PanelToolsOptions;
    readonly #usable: ReadonlyMap<string, Tool>;
    /** The most important last, as the order of a map is that of insertion. */
    readonly #shown = new Map<string, ModelTool>();
    readonly isDone = false;

    constructor(options: PanelToolsOptions) {
        this.#options = options;
        this.#usable =
            options.readsOnly === true
                ? new Map([...options.usable].filter(([, { info }]) => readsAtOnce(info)))
                : options.usable;
        const ranked = rank(
            [...this.#usable.values()].map(({ info }) => info),
            options.about
        );
        const byRoute = new Map([...this.#usable.values()].map((tool) => [tool.info.id, tool.name]));
        const names = [...options.used, ...ranked.map(({ id }) => byRoute.get(id) ?? ''), ...general];
        const fitting = [...new Set(names)].filter((name) => this.#usable.has(name));
        this.#show(fitting.slice(0, this.#most).reverse());
    }

    functions(): readonly ModelTool[] {
        return [findRoutes, ...this.#shown.values()];
    }

    async resolved(call: StepCall): Promise<StepCall> {
        return resolvedCall(this.#options, call);
    }

    async *call(call: ToolCall, signal: AbortSignal): AsyncGenerator<AnswerEvent, StepCall> {
        if (call.name === findRoutes.name) {
            return this.#find(call);
        }
        const tool = this.#shown.has(call.name) ? this.#usable.get(call.name) : undefined;
        if (tool === undefined) {
            return refusedCall(
                call,
                'There is no such function: find_routes finds those that there are',
                40_400
            );
        }
        let given: ToolArguments;
        try {
            given = argumentsOf(call.input);
        } catch (error) {
            return refusedCall(call, messageOf(error));
        }
        const shown = maskArguments(tool.info, given);
        yield { event: 'call', data: { id: call.id, route: tool.info.id, arguments: shown } };
        const made = readsAtOnce(tool.info)
            ? await this.#read(tool, given, signal)
            : await this.#plan(tool, given, call, signal);
        if ('approval' in made) {
            yield { event: 'approval', data: made.approval };
            return record(call, tool, shown, { approvalId: made.approval.id });
        }
        const { status, code, message, data, truncated } = this.#result(made);
        yield { event: 'result', data: { id: call.id, status, code, data, truncated } };
        return record(call, tool, shown, { status, code, message, data, truncated });
    }

    get #most(): number {
        return this.#options.ctx.settings.toolsPerRequest;
    }

    /** Shows functions; the least important ones make room. */
    #show(names: readonly string[]): void {
        for (const name of names) {
            const tool = this.#usable.get(name);
            if (tool !== undefined) {
                this.#shown.delete(name);
                this.#shown.set(name, functionOf(tool.info, name));
            }
        }
        let size = JSON.stringify([...this.#shown.values()]).length;
        for (const [name, shown] of this.#shown) {
            if (this.#shown.size <= this.#most && size <= mostCharacters) {
                return;
            }
            this.#shown.delete(name);
            size -= JSON.stringify(shown).length + 1;
        }
    }

    #find(call: ToolCall): StepCall {
        const { query } = call.input as { readonly query?: unknown };
        const found = rank(
            [...this.#usable.values()].map(({ info }) => info),
            String(query ?? '')
        ).slice(0, Math.min(foundAtOnce, this.#most));
        const tools = [...this.#usable.values()].filter(({ info }) => found.includes(info));
        this.#show(tools.map(({ name }) => name));
        const data = tools.map(({ name, info: { summary, effect } }) => ({ name, summary, effect }));
        return { ...refusedCall(call, 'ok'), status: 200, code: 0, data };
    }

    /** Long work that a read starts is followed to its result, and ends with the answer. */
    async #read({ info }: Tool, given: ToolArguments, signal: AbortSignal): Promise<Result> {
        const { ctx, actor } = this.#options;
        const call = { id: info.id, ...given, signal, follow: ignore };
        try {
            return await ctx.api.call(actor, call);
        } catch (error) {
            return failed(error, signal);
        }
    }

    /** Plans a call, and makes it where an admin let it run at once. */
    async #plan(
        { info, approval }: Tool,
        given: ToolArguments,
        call: ToolCall,
        signal: AbortSignal
    ): Promise<Result | { readonly approval: { readonly id: number } }> {
        const { ctx, actor, approvals, changes, conversationId } = this.#options;
        try {
            const plan = await ctx.api.plan(actor, { id: info.id, ...given, signal });
            if (plan.validated !== null && plan.validated.code !== 0) {
                const { code, message } = plan.validated;
                return { status: Math.floor(code / 100), code, message, data: null };
            }
            if (approval === 'auto') {
                return await changes.make(actor, { info, given, plan, conversationId, approvalId: null });
            }
            const facts = { conversationId, callId: call.id };
            const row = await approvals.request(actor, {
                info,
                given,
                plan,
                scope: scopeOf(conversationId),
                facts
            });
            return { approval: { ...approvalView(row), ...{ conversationId } } };
        } catch (error) {
            return failed(error, signal);
        }
    }

    /** A result without secrets, of at most 64 KiB. The text is cut once before, so that a large one does not take long to search. */
    #result(made: Result): Result & { readonly truncated: boolean } {
        const { status, code, message, data } = made;
        const rough = cutResult(data, coarse);
        const clean = new Redactor({
            redaction: 'standard',
            redactPatterns: this.#options.ctx.settings.redactPatterns
        }).value(rough.data);
        const cut = cutResult(clean);
        return {
            status,
            code,
            message,
            data: cut.data,
            truncated: rough.truncated || cut.truncated
        };
    }
}

/** How long work goes is no event of an answer. */
const ignore = (): void => undefined;

type Result = Pick<ApiAnswer, 'status' | 'code' | 'message' | 'data'>;

/** What is looked at first when a question says nothing of what it is about. */
const general = [
    'hosts__list',
    'proxyengine__status',
    'plugins__list',
    'monitoring__unhealthy',
    'certificates__list',
    'proxyengine__upstreams',
    'proxyengine__logs'
];

/** The scope of approvals that belong to a conversation. */
export const scopeOf = (conversationId: number): string => `conversation:${conversationId}`;

/** What came of a call that waited for an approval. */
export async function resolvedCall(
    { approvals, changes, actor }: Pick<PanelToolsOptions, 'approvals' | 'changes' | 'actor'>,
    call: StepCall
): Promise<StepCall> {
    if (call.approvalId === null || call.status !== null) {
        return call;
    }
    const row = await approvals.get(call.approvalId, actor.id ?? Number.NaN).catch(() => null);
    const answer = await changes.answerOf(call.approvalId);
    if (answer !== null) {
        return { ...call, ...answer };
    }
    const state = row?.state ?? 'expired';
    if (state === 'pending' || state === 'approved') {
        return call;
    }
    const code = row?.code ?? 40_950;
    const why = state === 'rejected' ? 'The user rejected it' : `It was not made: the approval is ${state}`;
    return { ...call, status: Math.floor(code / 100), code, message: why };
}

function record(call: ToolCall, { info }: Tool, shown: ToolArguments, made: Partial<StepCall>): StepCall {
    return {
        id: call.id,
        name: call.name,
        route: info.id,
        arguments: shown,
        status: null,
        code: null,
        message: null,
        data: null,
        truncated: false,
        approvalId: null,
        meta: call.meta,
        ...made
    };
}

/** A failure as a result, which the model reads. What ends the answer itself is thrown on. */
function failed(error: unknown, signal: AbortSignal): Result {
    signal.throwIfAborted();
    if (!isFailure(error)) {
        throw error;
    }
    const { code, message, data } = error;
    return { status: Math.floor(code / 100), code, message, data };
}

function messageOf(error: unknown): string {
    const faults = isFailure(error) ? (error.data?.['errors'] as { message: string; path: string }[]) : [];
    return `The arguments are wrong: ${faults.map(({ path, message }) => `${path} ${message}`).join('; ')}`;
}
