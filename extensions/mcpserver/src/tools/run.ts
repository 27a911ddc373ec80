/** Runs a tool: limits, the call itself, its approval, and its record. */
import {
    agentErrors,
    type ApprovalRow,
    type Approvals,
    approvalView,
    argumentsOf,
    type ToolArguments
} from '@portico/agents';
import { type Actor, type ApiAnswer, errors, isFailure, type RouteInfo } from '@portico/sdk';

import type { Calls } from '../calls.ts';
import { fail } from '../errors.ts';
import type { Visit } from '../protocol/visit.ts';
import type { Ctx } from '../settings.ts';
import { answerOf, bytesOf, cut, failed, type ToolAnswer } from './answer.ts';
import { type Catalogue, isPlainRead, type RouteTool } from './catalogue.ts';
import type { CallLimits } from './limits.ts';
import { ownToolNames, type OwnTools } from './own-tools.ts';
import { readRoute } from './reads.ts';

/** What a call may ask of the client while it is under way. */
export interface Conversation {
    /** Says how it goes; a fraction is 0 to 1, or null when unknown. */
    progress(text: string, fraction?: number | null): void;
    /** Aborts when the client cancels the call. */
    readonly signal: AbortSignal;
    /** How the client calls itself. */
    readonly client: string | null;
    /** The client can show a question to its user. */
    readonly canAsk: boolean;
    /** How the user answered it; null: not asked yet. */
    readonly answered: 'accept' | 'decline' | null;
}

/** What came of a call: an answer, or a question for the client's user. */
export type ToolOutcome = { readonly answer: ToolAnswer } | { readonly ask: ApprovalRow };

/** What {@link ToolRunner} needs. */
export interface ToolRunnerOptions {
    readonly ctx: Ctx;
    readonly catalogue: Catalogue;
    readonly approvals: Approvals;
    readonly limits: CallLimits;
    readonly calls: Calls;
    readonly own: OwnTools;
}

/** A call as it is put on record. */
interface MadeCall {
    readonly tool: string;
    /** Null for a tool of the plugin itself, and where there is none. */
    readonly route: string | null;
    readonly client: string | null;
    readonly answer: ToolAnswer;
    readonly ms: number;
}

/** Milliseconds between two signs of life while a call waits for its approval. */
const tickMs = 5_000;

/** Characters of the name of a tool that is on record, as there may be none of that name. */
const nameCharacters = 200;

/** Runs tools in the caller's name, with the approvals that they need. */
export class ToolRunner {
    readonly #options: ToolRunnerOptions;

    constructor(options: ToolRunnerOptions) {
        this.#options = options;
    }

    /** @returns undefined where this request has no such tool; the call counts and is on record even so */
    async run(
        visit: Visit,
        name: string,
        given: unknown,
        talk: Conversation
    ): Promise<ToolOutcome | undefined> {
        const { catalogue, ctx } = this.#options;
        const tool = ownToolNames.has(name) ? name : await catalogue.find(visit, name);
        const begun = performance.now();
        const signal =
            talk.signal === visit.signal
                ? visit.signal // of the request, which ends with the plugin
                : AbortSignal.any([visit.signal, talk.signal, ctx.signal]);
        const outcome = await this.#outcome({ ...visit, signal }, tool, given, talk);
        if (outcome === undefined || 'answer' in outcome) {
            await this.#record(visit.actor, {
                tool: name.slice(0, nameCharacters),
                route: typeof tool === 'object' ? tool.info.id : null,
                client: talk.client,
                answer: outcome?.answer ?? failed(errors.notFound('There is no such tool')),
                ms: performance.now() - begun
            });
        }
        return outcome;
    }

    async #outcome(
        visit: Visit,
        tool: RouteTool | string | undefined,
        given: unknown,
        talk: Conversation
    ): Promise<ToolOutcome | undefined> {
        const { ctx, limits } = this.#options;
        const outcome = await limits
            .run(visit.actor.key, async () => this.#call(visit, tool, given, talk))
            .catch((error: unknown): ToolOutcome => ({
                answer: visit.signal.aborted && !isFailure(error) ? cancelled : failed(error)
            }));
        return outcome !== undefined && 'answer' in outcome
            ? { answer: cut(outcome.answer, ctx.settings.resultBytes) }
            : outcome;
    }

    async #call(
        visit: Visit,
        tool: RouteTool | string | undefined,
        given: unknown,
        talk: Conversation
    ): Promise<ToolOutcome | undefined> {
        if (typeof tool === 'string') {
            return { answer: await this.#options.own.run(visit, tool, given) };
        }
        return tool === undefined ? undefined : this.#route(visit, tool, given, talk);
    }

    async #route(visit: Visit, tool: RouteTool, input: unknown, talk: Conversation): Promise<ToolOutcome> {
        const { actor, signal } = visit;
        const { info } = tool;
        const given = argumentsOf(input);
        checkParts(info, given);
        const { ctx, catalogue } = this.#options;
        if (isPlainRead(info)) {
            return { answer: await readRoute(ctx, actor, info, given, signal) };
        }
        const way = catalogue.approvalOf(tool.name, info);
        if (way === 'none') {
            const call = { id: info.id, ...given, signal, follow: follower(talk) };
            return { answer: answerOf(await ctx.api.call(actor, call)) };
        }
        const asked = await this.#ask(visit, tool, given, talk.client);
        if ('answer' in asked) {
            return asked;
        }
        return way === 'client' && talk.canAsk
            ? this.#byClient(visit, asked.ask, talk)
            : this.#byPanel(visit, asked.ask, talk);
    }

    /** Plans a call; what would fail anyway is answered at once, and bothers no person. */
    async #ask(
        { actor, signal }: Visit,
        { name, info }: RouteTool,
        given: ToolArguments,
        client: string | null
    ): Promise<ToolOutcome> {
        const { ctx, approvals } = this.#options;
        const plan = await ctx.api.plan(actor, { id: info.id, ...given, signal });
        const { validated } = plan;
        if (validated !== null && validated.code !== 0) {
            const { code, message } = validated;
            const status = Math.floor(code / 100);
            return { answer: { status, code, message, data: { plan }, next: null, etag: plan.etag } };
        }
        return { ask: await approvals.request(actor, { info, given, plan, scope: name, facts: { client } }) };
    }

    async #byClient(visit: Visit, row: ApprovalRow, talk: Conversation): Promise<ToolOutcome> {
        const { approvals } = this.#options;
        if (row.state === 'approved') {
            return this.#execute(visit, row, talk);
        }
        if (talk.answered === null) {
            return { ask: row };
        }
        if (talk.answered === 'decline') {
            const closed = await approvals.reject(visit.actor, row.id, visit.actor.id, null);
            return { answer: refusal(closed) };
        }
        return this.#execute(visit, await approvals.confirm(visit.actor, row.id), talk);
    }

    async #byPanel(visit: Visit, asked: ApprovalRow, talk: Conversation): Promise<ToolOutcome> {
        const row = asked.state === 'pending' ? await this.#wait(visit, asked, talk) : asked;
        if (row.state === 'approved' && !visit.signal.aborted) {
            return this.#execute(visit, row, talk);
        }
        return { answer: row.state === 'pending' || row.state === 'approved' ? waiting(row) : refusal(row) };
    }

    async #wait({ signal }: Visit, { id, plan }: ApprovalRow, talk: Conversation): Promise<ApprovalRow> {
        const { ctx, approvals } = this.#options;
        const { method, path } = JSON.parse(plan) as { method: string; path: string };
        const say = (): void => talk.progress(`Waits for the approval ${id} of ${method} ${path}`);
        say();
        const timer = setInterval(say, tickMs);
        const end = AbortSignal.any([signal, AbortSignal.timeout(ctx.settings.approvalWaitSeconds * 1_000)]);
        try {
            return await approvals.decided(id, end);
        } finally {
            clearInterval(timer);
        }
    }

    async #execute({ actor, signal }: Visit, { id }: ApprovalRow, talk: Conversation): Promise<ToolOutcome> {
        const { approvals } = this.#options;
        const answer = answerOf(await this.#made(actor, id, signal, talk));
        return { answer: { ...answer, approval: approvalView(await approvals.get(id, null)) } };
    }

    #made(actor: Actor, id: number, signal: AbortSignal, talk: Conversation): Promise<ApiAnswer> {
        return this.#options.approvals.execute(actor, id, { signal, follow: follower(talk) });
    }

    async #record(actor: Actor, { tool, route, client, answer, ms }: MadeCall): Promise<void> {
        const { ctx, calls } = this.#options;
        const { code, approval } = answer;
        calls.add(actor, {
            tool,
            route,
            client,
            code,
            ms: Math.round(ms),
            bytes: bytesOf(answer),
            approvalId: approval?.id ?? null
        });
        await ctx
            .audit({
                action: 'call',
                resource: 'tools',
                resourceId: tool,
                actor,
                outcome: code === 0 ? 'success' : 'failure',
                after: { code, client, approval: approval?.id ?? null }
            })
            .catch((error: unknown) => {
                // The actor of a client that left is gone with it; the call is in the plugin's own list.
                if (!isFailure(error)) {
                    throw error;
                }
                ctx.log.warn('A call could not be put on record', { tool, code: error.code });
            });
    }
}

const cancelled: ToolAnswer = {
    status: 503,
    code: 50300,
    message: 'The call was cancelled',
    data: { reason: 'CANCELLED' },
    next: null,
    etag: null
};

function waiting(row: ApprovalRow): ToolAnswer {
    return { ...failed(fail.APPROVAL_REQUIRED()), approval: approvalView(row) };
}

function refusal(row: ApprovalRow): ToolAnswer {
    return { ...failed(agentErrors.APPROVAL_CLOSED()), approval: approvalView(row) };
}

/** Tells the client how a task goes that the call started. */
function follower(talk: Conversation) {
    return ({
        fraction,
        text,
        taskId
    }: {
        fraction: number | null;
        text: string | null;
        taskId: number;
    }): void => talk.progress(text ?? `Task ${taskId} runs`, fraction);
}

/** What the route does not take is refused, never dropped. */
function checkParts({ path, query, payload }: RouteInfo, given: ToolArguments): void {
    const names = new Set([...path.matchAll(/\{(\w+)\*?\}/g)].map(([, name]) => name));
    const faults = Object.keys(given.params ?? {})
        .filter((name) => !names.has(name))
        .map((name) => ({ path: `params.${name}`, message: 'is not allowed' }));
    if (query === null && given.query !== undefined) {
        faults.push({ path: 'query', message: 'is not allowed' });
    }
    if (payload === null && given.payload !== undefined) {
        faults.push({ path: 'payload', message: 'is not allowed' });
    }
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
}
