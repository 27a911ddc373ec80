/** Runs `nft`. It reads commands from files, since a child's standard input cannot be opened again. */
import { randomUUID } from 'node:crypto';

import { errors, isFailure, Mutex } from '@portico/sdk';

import { fail } from '../errors.ts';
import { absent, type CommandDocument, type Present } from '../ruleset/commands.ts';
import { type Hook, ownTable } from '../ruleset/ruleset.ts';
import type { Ctx } from '../settings.ts';

const folder = 'nft';
const timeoutSeconds = 25;
const mostOutputBytes = 256 * 2 ** 20;
const longestMessage = 500;
/** The command that installs `nft`, for messages. */
export const install = 'apt-get install nftables';

/** An object in the output of `nft -j list`. */
export interface Listed {
    readonly chain?: {
        readonly name: string;
        readonly table: string;
        readonly family: string;
    } & Partial<Hook>;
    readonly set?: {
        readonly name: string;
        readonly table: string;
        readonly family: string;
        readonly type: string;
        readonly elem?: readonly unknown[];
    };
    readonly counter?: { readonly name: string; readonly packets: number; readonly bytes: number };
    readonly rule?: {
        readonly table: string;
        readonly family: string;
        readonly chain: string;
        readonly expr: readonly Readonly<Record<string, unknown>>[];
        readonly comment?: string;
    };
    readonly table?: { readonly name: string; readonly family: string };
}

/** The program `nft`, limited to the plugin's own table for all that it changes. */
export class Nft {
    readonly #ctx: Ctx;
    readonly #mutex = new Mutex();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /**
     * Does all commands in one transaction, or none of them.
     *
     * @throws NFT_REJECTED 42250, TOOL_MISSING 50302, NOT_PERMITTED 50350, NFT_TIMEOUT 50450
     */
    async apply(document: CommandDocument): Promise<void> {
        await this.#mutex.run(() => this.#withFile(document, (path) => this.#run(['-j', '-f', path])));
    }

    /** Asks `nft` and the kernel whether they would take the commands. @throws as {@link Nft.apply} */
    async check(document: CommandDocument): Promise<void> {
        await this.#withFile(document, (path) => this.#run(['-j', '-c', '-f', path]));
    }

    /** What the own table holds, without elements; null when it is not there. */
    async present(): Promise<Present | null> {
        const objects = await this.#ownObjects();
        if (!objects.some(({ table }) => table !== undefined)) {
            return null;
        }
        const chains = objects.flatMap(({ chain }) =>
            chain === undefined ? [] : [[chain.name, hookOf(chain)] as const]
        );
        const sets = objects.flatMap(({ set }) =>
            set === undefined ? [] : [[set.name, set.type === 'ipv4_addr' ? 'ipv4' : 'ipv6'] as const]
        );
        return {
            ...absent,
            chains: new Map(chains),
            sets: new Map(sets),
            counters: new Set(objects.flatMap(({ counter }) => counter?.name ?? []))
        };
    }

    /** Whether the own table has all of these chains. */
    async hasChains(names: readonly string[]): Promise<boolean> {
        const objects = (await this.#list(['list', 'chains', ownTable.family])) ?? [];
        return names.every((name) =>
            objects.some(
                ({ chain }) =>
                    chain?.family === ownTable.family && chain.table === ownTable.table && chain.name === name
            )
        );
    }

    /** The own table as text, without counters and elements: what a drift is seen by. Null when it is not there. */
    async fingerprint(): Promise<string | null> {
        const text = await this.#run(['-s', '-t', 'list', 'ruleset', ownTable.family]);
        const head = `table ${ownTable.family} ${ownTable.table} {\n`;
        const at = text.startsWith(head) ? 0 : text.indexOf(`\n${head}`) + 1;
        return text.startsWith(head, at) ? text.slice(at, text.indexOf('\n}\n', at) + 3) : null;
    }

    /** The own table as a person reads it; null when it is not there. */
    async text(): Promise<string | null> {
        return this.#text(['list', 'table', ownTable.family, ownTable.table]);
    }

    /** The own table as JSON; null when it is not there. */
    async document(): Promise<readonly Listed[] | null> {
        return this.#list(['list', 'table', ownTable.family, ownTable.table]);
    }

    /** Packets and bytes of each counter of the own table. */
    async counters(): Promise<ReadonlyMap<string, { readonly packets: number; readonly bytes: number }>> {
        const objects = await this.#ownObjects();
        return new Map(
            objects.flatMap(({ counter }) => (counter === undefined ? [] : [[counter.name, counter]]))
        );
    }

    /** The elements of a set of the own table; empty when there is none. */
    async elements(set: string): Promise<readonly unknown[]> {
        const objects = await this.#list(['list', 'set', ownTable.family, ownTable.table, set]);
        return (objects ?? []).flatMap((each) => each.set?.elem ?? []);
    }

    /** Everything that is in the kernel, of all programs, without elements of sets. */
    async ruleset(): Promise<readonly Listed[]> {
        return (await this.#list(['-t', 'list', 'ruleset'])) ?? [];
    }

    /** What the own table holds, without elements. Of the commands that list a table, only `list ruleset` reads no elements with `-t`: others take a second for a hundred thousand. */
    async #ownObjects(): Promise<readonly Listed[]> {
        const objects = (await this.#list(['-t', 'list', 'ruleset', ownTable.family])) ?? [];
        return objects.filter((each) => {
            const { family, table, name } = Object.values(each)[0] as {
                readonly family?: string;
                readonly table?: string;
                readonly name?: string;
            };
            return family === ownTable.family && (each.table === undefined ? table : name) === ownTable.table;
        });
    }

    async #text(args: readonly string[]): Promise<string | null> {
        try {
            return await this.#run(args);
        } catch (error) {
            if (isNoSuchObject(error)) {
                return null;
            }
            throw error;
        }
    }

    async #list(args: readonly string[]): Promise<readonly Listed[] | null> {
        const text = await this.#text(['-j', ...args]);
        if (text === null) {
            return null;
        }
        try {
            const { nftables } = JSON.parse(text) as { readonly nftables?: unknown };
            if (Array.isArray(nftables)) {
                return nftables as readonly Listed[];
            }
        } catch {
            // Said below, for a text that is no JSON and for one of another shape.
        }
        throw fail.NFT_UNUSABLE({ why: 'its answer is not the JSON of libnftables' });
    }

    async #run(args: readonly string[]): Promise<string> {
        const result = await this.#ctx
            .exec('nft', args, { timeoutSeconds, maxOutputBytes: mostOutputBytes })
            .catch((error: unknown) => {
                throw isFailure(error) && error.reason === 'TOOL_MISSING'
                    ? errors.toolMissing('nft', install)
                    : error;
            });
        if (result.timedOut) {
            throw fail.NFT_TIMEOUT({ seconds: timeoutSeconds });
        }
        if (result.code === 0) {
            return result.stdout;
        }
        throw failureOf(result.stderr);
    }

    async #withFile<T>(document: CommandDocument, work: (path: string) => Promise<T>): Promise<T> {
        const files = this.#ctx.files(this.#ctx.dataDir);
        const name = `${folder}-${randomUUID()}.json`;
        const handle = await files.open(name, 'wx', 0o600);
        try {
            try {
                await handle.writeFile(JSON.stringify(document));
            } finally {
                await handle.close();
            }
            return await work(`${this.#ctx.dataDir}/${name}`);
        } finally {
            await files.remove(name);
        }
    }

    /** Removes files that a killed panel left. */
    async sweep(): Promise<void> {
        const files = this.#ctx.files(this.#ctx.dataDir);
        for (const { name } of await files.list('')) {
            if (new RegExp(`^${folder}-[0-9a-f-]{36}\\.json$`).test(name)) {
                await files.remove(name);
            }
        }
    }
}

function hookOf({ type, hook, prio, policy }: Partial<Hook>): Hook | null {
    return type === undefined || hook === undefined
        ? null
        : { type, hook, prio: prio ?? 0, policy: policy ?? 'accept' };
}

function isNoSuchObject(error: unknown): boolean {
    return (
        isFailure(error) &&
        error.reason === 'NFT_REJECTED' &&
        String(error.data?.['message']).includes('No such file or directory')
    );
}

function failureOf(stderr: string): Error {
    if (stderr.includes('Operation not permitted')) {
        return fail.NOT_PERMITTED();
    }
    // Paths of files of the panel mean nothing to its users, and commands of libnftables little.
    const lines = stderr.split('\n').filter((line) => line.trim() !== '' && !/^\{|^\s*[\^~]+\s*$/.test(line));
    const message = lines
        .map((line) =>
            line.replace(/^\S*\.json:\d+:\d+(-\d+)?: /, '').replace(/^internal:\d+:\d+(-\d+)?: /, '')
        )
        .join('; ')
        .slice(0, longestMessage);
    return fail.NFT_REJECTED({ message: message === '' ? 'it gave no reason' : message });
}
