/** The tools: the routes of the panel that assistants may be offered, as far as settings, switches and the caller allow. */
import type { Tool } from '@modelcontextprotocol/server';
import { toolHints, toolName, toolSchema } from '@portico/agents';
import type { Actor, RouteInfo } from '@portico/sdk';

import type { ApprovalWay } from '../entities.ts';
import type { Visit } from '../protocol/visit.ts';
import type { Ctx } from '../settings.ts';
import type { Switches } from './switches.ts';

/** A route of the panel as a tool of the protocol. */
export interface RouteTool {
    readonly name: string;
    readonly info: RouteInfo;
    /** As the protocol shows it. */
    readonly tool: Tool;
}

/** Kept lists of what actors may call; the oldest is dropped beyond that. */
const mostKept = 200;

/** The tools of the panel. Lists are kept until routes, settings or permissions change. */
export class Catalogue {
    readonly #ctx: Ctx;
    readonly #switches: Switches;
    readonly #tools = new Map<string, RouteTool>();
    readonly #allowed = new Map<string, Promise<ReadonlyMap<string, RouteTool>>>();

    constructor(ctx: Ctx, switches: Switches) {
        this.#ctx = ctx;
        this.#switches = switches;
    }

    /** Forgets what was kept. */
    clear(): void {
        this.#tools.clear();
        this.#allowed.clear();
    }

    /** The tools of one request, by name. */
    async offered(visit: Visit): Promise<readonly RouteTool[]> {
        return [...(await this.#mayCall(visit.actor)).values()].filter((tool) => this.#isIn(visit, tool));
    }

    /** One of them; undefined where the request may not see it. */
    async find(visit: Visit, name: string): Promise<RouteTool | undefined> {
        const tool = (await this.#mayCall(visit.actor)).get(name);
        return tool !== undefined && this.#isIn(visit, tool) ? tool : undefined;
    }

    /** All tools of the panel by name, and those that an actor is offered. */
    async all(
        actor: Actor
    ): Promise<{ readonly tools: readonly RouteTool[]; readonly allowed: ReadonlySet<string> }> {
        const routes = await this.#ctx.api.routes({ tool: true });
        const allowed = await this.offered({ actor, signal: this.#ctx.signal, areas: null, effect: null });
        return {
            tools: this.#sorted(routes.filter(({ plugin }) => plugin !== this.#ctx.name)),
            allowed: new Set(allowed.map(({ name }) => name))
        };
    }

    /** Whether settings and switches offer a route; what is dangerous must be named, never matched by a pattern. */
    isOffered(name: string, { id, effect, dangerous }: RouteInfo): boolean {
        const { mode, tools } = this.#ctx.settings;
        return (
            (mode === 'write' || effect === 'read') &&
            (dangerous ? tools.includes(id) : tools.some((pattern) => covers(pattern, id))) &&
            this.#switches.of(name).enabled
        );
    }

    /** How a call of this tool is approved: what is dangerous in the panel, also where it only reads. */
    approvalOf(name: string, { dangerous, effect }: RouteInfo): ApprovalWay {
        if (dangerous) {
            return 'panel';
        }
        return effect === 'read' ? 'none' : (this.#switches.of(name).approval ?? this.#ctx.settings.approval);
    }

    #isIn({ areas, effect }: Visit, { name, info }: RouteTool): boolean {
        return (
            this.isOffered(name, info) &&
            (areas === null || areas.includes(areaOf(info))) &&
            (effect === null || info.effect === effect)
        );
    }

    /** By name, sorted. */
    #mayCall(actor: Actor): Promise<ReadonlyMap<string, RouteTool>> {
        const key = JSON.stringify([actor.key, actor.role, actor.permissions]);
        let list = this.#allowed.get(key);
        if (list === undefined) {
            list = this.#ctx.api
                .routes({ for: actor, tool: true })
                .then((routes) => new Map(this.#sorted(routes).map((tool) => [tool.name, tool])));
            this.#allowed.set(key, list);
            list.catch(() => this.#allowed.delete(key));
            const [oldest] = this.#allowed.keys();
            if (this.#allowed.size > mostKept && oldest !== undefined) {
                this.#allowed.delete(oldest);
            }
        }
        return list;
    }

    #sorted(routes: readonly RouteInfo[]): readonly RouteTool[] {
        return routes
            .map((info) => this.#toolOf(info))
            .sort((one, other) => (one.name < other.name ? -1 : 1));
    }

    #toolOf(info: RouteInfo): RouteTool {
        let known = this.#tools.get(info.id);
        if (known === undefined) {
            const name = toolName(info.id);
            const { title, ...hints } = toolHints(info);
            const about = [info.summary, info.description].filter((text) => text !== '').join('. ');
            known = {
                name,
                info,
                tool: {
                    name,
                    title,
                    description: `${about} (${info.method} ${info.path})`,
                    // The schema is JSON: the catalogue promises no more than that of its parts.
                    inputSchema: toolSchema(info) as Tool['inputSchema'],
                    annotations: { title, ...hints }
                }
            };
            this.#tools.set(info.id, known);
        }
        return known;
    }
}

/** Whether a route is read at once, as text. What is dangerous is approved before, and a POST that only reads may start a task, which is followed. */
export function isPlainRead({ effect, method, dangerous }: RouteInfo): boolean {
    return effect === 'read' && method === 'GET' && !dangerous;
}

/** The first part of a route's id: an area of the panel, or a plugin. */
export function areaOf({ id }: Pick<RouteInfo, 'id'>): string {
    return id.split('.', 1)[0] ?? id;
}

/** Whether a pattern with `*` for any text covers an id. */
export function covers(pattern: string, id: string): boolean {
    const [first = '', ...parts] = pattern.split('*');
    const last = parts.pop();
    if (last === undefined) {
        return pattern === id;
    }
    if (!id.startsWith(first) || !id.endsWith(last) || id.length < first.length + last.length) {
        return false;
    }
    let at = first.length;
    for (const part of parts) {
        const found = id.indexOf(part, at);
        if (found === -1 || found + part.length > id.length - last.length) {
            return false;
        }
        at = found + part.length;
    }
    return true;
}
