/** The tools of the plugin itself: who the agent acts for, which tools there are for a purpose, and what a call would do. */
import type { Tool } from '@modelcontextprotocol/server';
import { argumentsOf } from '@portico/agents';
import { errors } from '@portico/sdk';

import type { Visit } from '../protocol/visit.ts';
import type { Ctx } from '../settings.ts';
import { done, type ToolAnswer } from './answer.ts';
import type { Catalogue, RouteTool } from './catalogue.ts';

const hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
const text = (description: string) => ({
    type: 'string' as const,
    minLength: 1,
    maxLength: 500,
    description
});

/** As the protocol shows them. */
export const ownTools: readonly Tool[] = [
    {
        name: 'portico__find_tools',
        title: 'Find tools for a purpose',
        description: 'Searches the names and descriptions of all tools that you may use; words in any order',
        inputSchema: {
            type: 'object',
            properties: { query: text('Words, such as: certificate renew') },
            required: ['query'],
            additionalProperties: false
        },
        annotations: { title: 'Find tools for a purpose', ...hints }
    },
    {
        name: 'portico__plan',
        title: 'Say what a call would do',
        description:
            'Checks a call of another tool and says what it would change, and which call takes it back; changes nothing',
        inputSchema: {
            type: 'object',
            properties: {
                tool: text('Name of the tool'),
                arguments: { type: 'object', description: 'As for the tool itself' }
            },
            required: ['tool'],
            additionalProperties: false
        },
        annotations: { title: 'Say what a call would do', ...hints }
    },
    {
        name: 'portico__whoami',
        title: 'Say for whom you act',
        description: 'The user that you act for, the permissions that you have, and the limits of your calls',
        inputSchema: { type: 'object', properties: {}, additionalProperties: false },
        annotations: { title: 'Say for whom you act', ...hints }
    }
];

/** The names of the tools that are no routes. */
export const ownToolNames: ReadonlySet<string> = new Set(ownTools.map(({ name }) => name));

const mostFound = 20;

/** Runs the tools of the plugin itself. */
export class OwnTools {
    readonly #ctx: Ctx;
    readonly #catalogue: Catalogue;

    constructor(ctx: Ctx, catalogue: Catalogue) {
        this.#ctx = ctx;
        this.#catalogue = catalogue;
    }

    /** @throws VALIDATION_FAILED 40001; NOT_FOUND 40400 for a plan of an unknown tool */
    async run(visit: Visit, name: string, given: unknown): Promise<ToolAnswer> {
        const fields = (given ?? {}) as Readonly<Record<string, unknown>>;
        if (name === 'portico__find_tools') {
            return done(await this.#find(visit, stringIn(fields, 'query')));
        }
        if (name === 'portico__plan') {
            return done(await this.#plan(visit, stringIn(fields, 'tool'), fields['arguments']));
        }
        return done(this.whoami(visit));
    }

    /** For whom a request acts. */
    whoami({ actor }: Pick<Visit, 'actor'>): object {
        const { mode, callsPerMinute, parallelCalls, resultBytes } = this.#ctx.settings;
        const { id, username, role, kind, tokenId, permissions } = actor;
        return {
            actor: { id, username, role, kind },
            tokenId,
            permissions,
            limits: { mode, callsPerMinute, parallelCalls, resultBytes }
        };
    }

    async #find(visit: Visit, query: string): Promise<readonly object[]> {
        const words = query.toLowerCase().split(/\W+/).filter(Boolean);
        return (await this.#catalogue.offered(visit))
            .map((tool) => ({ tool, score: scoreOf(tool, words) }))
            .filter(({ score }) => score > 0)
            .sort((one, other) => other.score - one.score)
            .slice(0, mostFound)
            .map(({ tool: { name, info, tool } }) => ({
                name,
                title: info.summary,
                effect: info.effect,
                inputSchema: tool.inputSchema
            }));
    }

    async #plan(visit: Visit, name: string, given: unknown): Promise<unknown> {
        const tool = await this.#catalogue.find(visit, name);
        if (tool === undefined) {
            throw errors.notFound(`There is no tool ${name}`);
        }
        const { actor, signal } = visit;
        return this.#ctx.api.plan(actor, { id: tool.info.id, ...argumentsOf(given), signal });
    }
}

/** Each word counts once: in the name more than in the description. */
function scoreOf({ name, tool }: RouteTool, words: readonly string[]): number {
    const about = `${tool.title ?? ''} ${tool.description ?? ''}`.toLowerCase();
    const low = name.toLowerCase();
    return words.reduce(
        (sum, word) => sum + (low.includes(word) ? 3 : 0) + (about.includes(word) ? 1 : 0),
        0
    );
}

function stringIn(fields: Readonly<Record<string, unknown>>, name: string): string {
    const value = fields[name];
    if (typeof value !== 'string' || value === '' || value.length > 500) {
        throw errors.invalid([{ path: name, message: 'must be a text of 1 to 500 characters' }]);
    }
    return value;
}
