/** The routes of the panel as tools: which there are, which are switched on, and which an actor may use. */
import { toolName } from '@portico/agents';
import { type Actor, errors, joi, type RouteInfo, type Value } from '@portico/sdk';
import { findRows } from '@portico/sdk/db';

import { SwitchEntity, type SwitchRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';

/** A tool as it is read. */
export const toolView = joi.object({
    id: joi
        .string()
        .required()
        .label('Tool')
        .meta({ ui: { column: false } }),
    route: joi
        .string()
        .required()
        .label('Route')
        .meta({ ui: { column: 1 } }),
    title: joi
        .string()
        .required()
        .label('What it does')
        .meta({ ui: { column: 2 } }),
    effect: joi
        .choice({ read: 'Reads', write: 'Changes', destructive: 'Removes' })
        .required()
        .label('Effect')
        .meta({ ui: { column: 3 } }),
    permission: joi.string().allow(null).required().label('Permission'),
    dangerous: joi.boolean().required().label('Dangerous'),
    enabled: joi
        .boolean()
        .required()
        .label('Enabled')
        .meta({ ui: { column: 4 } }),
    approval: joi
        .choice({ ask: 'Asks first', auto: 'Runs at once' })
        .required()
        .label('Before it runs')
        .meta({ ui: { column: 5 } }),
    allowed: joi.boolean().required().label('Allowed to you')
});
/** A tool as it is read. */
export type ToolView = Value<typeof toolView>;

/** A tool that an answer may use. */
export interface Tool {
    readonly name: string;
    readonly info: RouteInfo;
    readonly approval: 'ask' | 'auto';
}

/** Names that model services take. */
const functionName = /^[a-zA-Z0-9_-]{1,64}$/;

/** Keeps the switches, and reads the routes anew for each question: what an actor may do is decided when it asks. */
export class Catalogue {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** All tools; `allowed` is of the actor, now. */
    async list(actor: Actor): Promise<ToolView[]> {
        const [all, own, switches] = await Promise.all([
            this.#ctx.api.routes({ tool: true }),
            this.#ctx.api.routes({ for: actor, tool: true }),
            this.#switches()
        ]);
        const mine = new Set(own.map(({ id }) => id));
        return all.filter(isTool).map((info) => viewOf(info, switches.get(info.id), mine.has(info.id)));
    }

    /** The tools that an actor may use and that are switched on. */
    async usable(actor: Actor): Promise<Map<string, Tool>> {
        const [own, switches] = await Promise.all([
            this.#ctx.api.routes({ for: actor, tool: true }),
            this.#switches()
        ]);
        const tools = own
            .filter(isTool)
            .map((info) => ({ info, view: viewOf(info, switches.get(info.id), true) }))
            .filter(({ view }) => view.enabled)
            .map(({ info, view }) => ({ name: view.id, info, approval: view.approval }));
        return new Map(tools.map((tool) => [tool.name, tool]));
    }

    /** @throws NOT_FOUND 40400; VALIDATION_FAILED 40001 for `auto` where it is not allowed */
    async change(
        actor: Actor,
        id: string,
        change: { readonly enabled?: boolean | undefined; readonly approval?: 'ask' | 'auto' | undefined }
    ): Promise<{ readonly before: ToolView; readonly after: ToolView }> {
        const before = (await this.list(actor)).find((tool) => tool.id === id);
        if (before === undefined) {
            throw errors.notFound('There is no such tool');
        }
        const after = {
            ...before,
            enabled: change.enabled ?? before.enabled,
            approval: change.approval ?? before.approval
        };
        if (after.approval === 'auto' && (before.effect === 'destructive' || before.dangerous)) {
            throw errors.invalid([
                { path: 'approval', message: 'What removes something or is dangerous always asks first' }
            ]);
        }
        await this.#ctx.db.write((em) =>
            em.upsert(SwitchEntity, { route: before.route, enabled: after.enabled, approval: after.approval })
        );
        return { before, after };
    }

    async #switches(): Promise<ReadonlyMap<string, SwitchRow>> {
        const rows = await this.#ctx.db.read((em) => findRows(em, SwitchEntity, {}));
        return new Map(rows.map((row) => [row.route, row]));
    }
}

/** Routes whose name a model service takes as that of a function. */
function isTool({ id }: RouteInfo): boolean {
    return functionName.test(toolName(id));
}

/** A dangerous route is off until an admin switches on this one by its name, and asks even then, also where it only reads. */
function viewOf(info: RouteInfo, row: SwitchRow | undefined, allowed: boolean): ToolView {
    const { id, summary, effect, permission, dangerous } = info;
    const runsAtOnce = effect === 'read' || (effect === 'write' && row?.approval === 'auto');
    return {
        id: toolName(id),
        route: id,
        title: summary,
        effect,
        permission,
        dangerous,
        enabled: row?.enabled ?? !dangerous,
        approval: runsAtOnce && !dangerous ? 'auto' : 'ask',
        allowed
    };
}
