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
import { pluginErrors } from '../errors.ts';
import type { Visit } from '../protocol/visit.ts';
import type { Ctx } from '../settings.ts';
import { answerOf, answerOfText, bytesOf, cut, failed, type ToolAnswer } from './answer.ts';
import type { Catalogue, RouteTool } from './catalogue.ts';
import type { CallLimits } from './limits.ts';
import { ownToolNames, type OwnTools } from './own-tools.ts';

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

/** Milliseconds between two signs of life while a call waits for its approval. */
const tickMs = 5_000;

/** Of a read, before it is cut to what the settings say. */
const mostRead = { maxBytes: 16_777_216, maxSeconds: 300 };

/** Runs tools. */
export class ToolRunner {
    readonly #options: ToolRunnerOptions;

    constructor(options: ToolRunnerOptions) {
        this.#options = options;
    }

    /** @returns undefined where this request has no such tool */
    async run(
        visit: Visit,
        name: string,
        given: unknown,
        talk: Conversation
    ): Promise<ToolOutcome | undefined> {
        const { catalogue, ctx } = this.#options;
        const tool = ownToolNames.has(name) ? null : await catalogue.find(visit, name);
        if (tool === undefined) {
            return undefined;
        }
        const begun = performance.now();
        const signal =
            talk.signal === visit.signal
                ? visit.signal // of the request, which ends with the plugin
                : AbortSignal.any([visit.signal, talk.signal, ctx.signal]);
        const outcome = await this.#outcome({ ...visit, signal }, tool ?? name, given, talk);
        if ('answer' in outcome) {
            await this.#record(
                visit.actor,
                name,
                tool,
                outcome.answer,
                talk.client,
                performance.now() - begun
            );
        }
        return outcome;
    }

    async #outcome(
        visit: Visit,
        tool: RouteTool | string,
        given: unknown,
        talk: Conversation
    ): Promise<ToolOutcome> {
        const { limits, own } = this.#options;
        try {
            return await limits.run(visit.actor.key, async () =>
                typeof tool === 'string'
                    ? { answer: this.#fit(await own.run(visit, tool, given)) }
                    : this.#route(visit, tool, given, talk)
            );
        } catch (error) {
            if (visit.signal.aborted && !isFailure(error)) {
                return { answer: cancelled };
            }
            return { answer: failed(error) };
        }
    }

    async #route(visit: Visit, tool: RouteTool, input: unknown, talk: Conversation): Promise<ToolOutcome> {
        const { actor, signal } = visit;
        const { info } = tool;
        const given = argumentsOf(input);
        checkParts(info, given);
        if (info.effect === 'read') {
            return { answer: await this.#read(actor, info, given, signal) };
        }
        const way = this.#options.catalogue.approvalOf(tool.name, info);
        if (way === 'none') {
            const call = { id: info.id, ...given, signal, follow: follower(talk) };
            return { answer: this.#fit(answerOf(await this.#options.ctx.api.call(actor, call))) };
        }
        const asked = await this.#ask(visit, tool, given, talk.client);
        if ('answer' in asked) {
            return asked;
        }
        return way === 'client' && talk.canAsk
            ? this.#byClient(visit, asked.ask, talk)
            : this.#byPanel(visit, asked.ask, talk);
    }

    async #read(
        actor: Actor,
        info: RouteInfo,
        given: ToolArguments,
        signal: AbortSignal
    ): Promise<ToolAnswer> {
        const read = async (query: ToolArguments['query']): Promise<ToolAnswer> => {
            const call = { id: info.id, ...given, query, signal };
            return answerOfText(await this.#options.ctx.api.read(actor, call, mostRead));
        };
        const whole = await read(given.query);
        const short = this.#fit(whole);
        const items = short.truncated?.items ?? 0;
        if (items === 0 || !Array.isArray(whole.data) || !hasLimit(info)) {
            return short;
        }
        // A smaller page has the cursor that goes on behind its own last item.
        const page = await read({ ...given.query, limit: items });
        return page.code === 0 && short.truncated !== undefined
            ? { ...this.#fit(page), truncated: short.truncated }
            : short;
    }

    /** Plans a write; what would fail anyway is answered at once, and bothers no person. */
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
        return { answer: { ...this.#fit(answer), approval: approvalView(await approvals.get(id, null)) } };
    }

    #made(actor: Actor, id: number, signal: AbortSignal, talk: Conversation): Promise<ApiAnswer> {
        return this.#options.approvals.execute(actor, id, { signal, follow: follower(talk) });
    }

    #fit(answer: ToolAnswer): ToolAnswer {
        return cut(answer, this.#options.ctx.settings.resultBytes);
    }

    async #record(
        actor: Actor,
        tool: string,
        route: RouteTool | null,
        answer: ToolAnswer,
        client: string | null,
        ms: number
    ): Promise<void> {
        const { ctx, calls } = this.#options;
        const { code, approval } = answer;
        calls.add(actor, {
            tool,
            route: route?.info.id ?? null,
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
    return { ...failed(pluginErrors.APPROVAL_REQUIRED()), approval: approvalView(row) };
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

function hasLimit({ query }: RouteInfo): boolean {
    const properties = query?.['properties'];
    return typeof properties === 'object' && properties !== null && 'limit' in properties;
}
