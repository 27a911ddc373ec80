/** Prompts: those of the plugin, of the admin, and of other plugins. */
import { errors, type HookRun } from '@portico/sdk';

import type { PluginPrompt, PromptArgument } from '../contract.ts';
import { PromptEntity } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { builtInPrompts } from './built-in.ts';
import type { Prompt } from './prompt.ts';

/** What an admin writes. */
export type NewPrompt = Pick<Prompt, 'name' | 'title' | 'description' | 'arguments' | 'text'>;

/** How prompts are named. */
export const promptName = /^[a-z][a-z0-9_-]{0,63}$/;
/** Characters of a text. */
export const longestText = 32_768;
/** Arguments of a prompt. */
export const mostArguments = 20;

/** Lists and fills the prompts of users and of other plugins. */
export class Prompts {
    readonly #ctx: Ctx;
    readonly #collect: () => Promise<HookRun<'mcpserver.prompts'>>;

    /** @param collect - runs the hook `mcpserver.prompts` */
    constructor(ctx: Ctx, collect: () => Promise<HookRun<'mcpserver.prompts'>>) {
        this.#ctx = ctx;
        this.#collect = collect;
    }

    /** All, by name. */
    async all(): Promise<readonly Prompt[]> {
        const [own, others] = await Promise.all([this.#own(), this.#others()]);
        return [...builtInPrompts, ...own, ...others].sort((one, other) => (one.name < other.name ? -1 : 1));
    }

    /**
     * The text of a prompt with its arguments.
     *
     * @throws NOT_FOUND 40400; VALIDATION_FAILED 40001 for an argument that is missing or unknown
     */
    async get(name: string, given: Readonly<Record<string, string>>): Promise<Prompt> {
        const prompt = (await this.all()).find((each) => each.name === name);
        if (prompt === undefined) {
            throw errors.notFound(`There is no prompt ${name.slice(0, 100)}`);
        }
        const missing = prompt.arguments.filter((each) => each.required && (given[each.name] ?? '') === '');
        const unknown = Object.keys(given).filter(
            (key) => !prompt.arguments.some((each) => each.name === key)
        );
        if (missing.length + unknown.length > 0) {
            throw errors.invalid([
                ...missing.map((each) => ({ path: each.name, message: 'is required' })),
                ...unknown.map((path) => ({ path, message: 'is not an argument of this prompt' }))
            ]);
        }
        const known = new Set(prompt.arguments.map((each) => each.name));
        const text = prompt.text.replaceAll(/\{\{([a-z][a-z0-9_-]*)\}\}/g, (whole, key: string) =>
            known.has(key) ? (given[key] ?? '') : whole
        );
        return { ...prompt, text };
    }

    /** Adds one. @throws CONFLICT 40900 for a taken name */
    async create(prompt: NewPrompt): Promise<Prompt> {
        if ((await this.all()).some(({ name }) => name === prompt.name)) {
            throw errors.conflict('name');
        }
        await this.#ctx.db.write(async (em) => {
            await em.insert(PromptEntity, rowOf(prompt));
        });
        return ofAdmin(prompt);
    }

    /** Changes one of the admin's. @throws NOT_FOUND 40400; READ_ONLY_PROMPT 40900 */
    async update(
        name: string,
        change: Partial<Omit<NewPrompt, 'name'>>
    ): Promise<{ readonly before: Prompt; readonly after: Prompt }> {
        const before = await this.#changeable(name);
        const after = { ...before, ...change };
        await this.#ctx.db.write((em) => em.nativeUpdate(PromptEntity, { name }, rowOf(after)));
        return { before, after };
    }

    /** Removes one of the admin's. @throws NOT_FOUND 40400; READ_ONLY_PROMPT 40900 */
    async remove(name: string): Promise<Prompt> {
        const before = await this.#changeable(name);
        await this.#ctx.db.write((em) => em.nativeDelete(PromptEntity, { name }));
        return before;
    }

    async #changeable(name: string): Promise<Prompt> {
        const found = (await this.all()).find((prompt) => prompt.name === name);
        if (found === undefined) {
            throw errors.notFound('There is no such prompt');
        }
        if (found.readOnly) {
            throw fail.READ_ONLY_PROMPT({ name, source: found.source });
        }
        return found;
    }

    async #own(): Promise<readonly Prompt[]> {
        const rows = await this.#ctx.db.read((em) => em.find(PromptEntity, {}));
        return rows.map((row) =>
            ofAdmin({ ...row, arguments: JSON.parse(row.arguments) as PromptArgument[] })
        );
    }

    async #others(): Promise<readonly Prompt[]> {
        return (await this.#collect()).flatMap((outcome) => {
            if (!outcome.ok) {
                this.#ctx.log.warn('A plugin could not give its prompts', {
                    plugin: outcome.plugin,
                    message: outcome.message
                });
                return [];
            }
            return (outcome.result ?? []).filter(isPrompt).map((prompt) => ofPlugin(outcome.plugin, prompt));
        });
    }
}

function rowOf({ name, title, description, arguments: given, text }: NewPrompt) {
    return { name, title, description, arguments: JSON.stringify(given), text };
}

function ofAdmin({ name, title, description, arguments: given, text }: NewPrompt): Prompt {
    return { name, title, description, arguments: given, text, source: 'admin', readOnly: false };
}

function ofPlugin(
    plugin: string,
    { name, title, description = '', arguments: given = [], text }: PluginPrompt
): Prompt {
    return {
        name: `${plugin}_${name}`,
        title,
        description,
        arguments: given,
        text,
        source: plugin,
        readOnly: true
    };
}

/** Another plugin's code gave it: what has not the form of a prompt is left out. */
function isPrompt(value: unknown): value is PluginPrompt {
    const { name, title, text, arguments: given = [] } = (value ?? {}) as Readonly<Record<string, unknown>>;
    return (
        typeof name === 'string' &&
        promptName.test(name) &&
        typeof title === 'string' &&
        typeof text === 'string' &&
        text.length <= longestText &&
        Array.isArray(given) &&
        given.length <= mostArguments &&
        given.every((each: unknown) => typeof (each as PromptArgument | null)?.name === 'string')
    );
}
