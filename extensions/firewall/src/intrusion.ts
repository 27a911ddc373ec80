/** Bans of fail2ban and CrowdSec: listed, made and lifted through their own programs. */
import { errors, isFailure } from '@portico/sdk';

import {
    AddressInvalid,
    formatInterval,
    type Interval,
    parsePrefix,
    readPrefix
} from './address/interval.ts';
import type { Bans } from './bans/bans.ts';
import { fail } from './errors.ts';
import type { Ctx } from './settings.ts';

/** A program that bans. */
export type IntrusionTool = 'fail2ban' | 'crowdsec';

/** The bans of one program, by its lists. */
export interface IntrusionState {
    readonly tool: IntrusionTool;
    readonly available: boolean;
    readonly lists: readonly { readonly name: string; readonly addresses: readonly string[] }[];
}

const programs: Readonly<Record<IntrusionTool, readonly [program: string, install: string]>> = {
    fail2ban: ['fail2ban-client', 'apt-get install fail2ban'],
    crowdsec: ['cscli', 'apt-get install crowdsec']
};

/** Which address is meant. */
export interface IntrusionChange {
    readonly address: string;
    /** A jail of fail2ban. */
    readonly list: string | null;
    readonly caller: Interval | null;
}

/** A ban as `cscli` tells of it. */
interface Decision {
    readonly id: number;
    readonly origin: string;
    /** `Ip`, `Range`, or what else was decided about, such as a country. */
    readonly scope: string;
    readonly value: string;
}

/** Speaks to both programs. */
export class Intrusion {
    readonly #ctx: Ctx;
    readonly #bans: Pick<Bans, 'check'>;

    constructor(ctx: Ctx, bans: Pick<Bans, 'check'>) {
        this.#ctx = ctx;
        this.#bans = bans;
    }

    /** The bans of both; a program that is missing or does not answer is not available. */
    async list(): Promise<readonly IntrusionState[]> {
        return Promise.all([
            this.#state('fail2ban', () => this.#jails()),
            this.#state('crowdsec', () => this.#origins())
        ]);
    }

    /**
     * Bans an address, or lifts its ban. What is never banned here is not banned there.
     *
     * @throws VALIDATION_FAILED 40001, PROTECTED 40951, TOOL_MISSING 50302, TOOL_FAILED 50251; NOT_FOUND 40400 for a ban that CrowdSec does not have
     */
    async change(
        tool: IntrusionTool,
        change: 'ban' | 'unban',
        { address, list, caller }: IntrusionChange
    ): Promise<void> {
        const text = formatInterval(
            change === 'ban'
                ? this.#bans.check(address, caller === null ? [] : [caller])
                : readAddress(address)
        );
        if (tool === 'crowdsec') {
            return change === 'ban' ? this.#decide(text) : this.#forget(text);
        }
        const jails = await this.#jailNames();
        const jail = list ?? (jails.length === 1 ? jails[0] : undefined);
        if (jail === undefined || !jails.includes(jail)) {
            throw errors.invalid([{ path: 'list', message: `list is one of ${jails.join(', ')}` }]);
        }
        await this.#run(tool, ['set', jail, change === 'ban' ? 'banip' : 'unbanip', text]);
    }

    async #state(tool: IntrusionTool, read: () => Promise<IntrusionState['lists']>): Promise<IntrusionState> {
        try {
            return { tool, available: true, lists: await read() };
        } catch (error) {
            if (isFailure(error)) {
                return { tool, available: false, lists: [] };
            }
            throw error;
        }
    }

    async #jailNames(): Promise<readonly string[]> {
        const [, names = ''] = /Jail list:\s*(.*)/.exec(await this.#run('fail2ban', ['status'])) ?? [];
        return names
            .split(',')
            .map((name) => name.trim())
            .filter((name) => name !== '');
    }

    async #jails(): Promise<IntrusionState['lists']> {
        const lists = [];
        for (const name of await this.#jailNames()) {
            const [, addresses = ''] =
                /Banned IP list:\s*(.*)/.exec(await this.#run('fail2ban', ['status', name])) ?? [];
            lists.push({ name, addresses: addresses.split(/\s+/).filter((each) => each !== '') });
        }
        return lists;
    }

    async #decide(text: string): Promise<void> {
        const flag = text.includes('/') ? '--range' : '--ip';
        await this.#run('crowdsec', ['decisions', 'add', flag, text]);
    }

    /** Lifts each ban by its number: asked to delete an address, cscli also deletes every range that holds it. @throws NOT_FOUND 40400 */
    async #forget(text: string): Promise<void> {
        const found = (await this.#decisions()).filter(({ value }) => writtenAs(value) === text);
        if (found.length === 0) {
            throw errors.notFound(`CrowdSec has no ban of ${text}`);
        }
        for (const { id } of found) {
            await this.#run('crowdsec', ['decisions', 'delete', '--id', String(id)]);
        }
    }

    /** The bans of addresses and prefixes that are in effect. Without `--all`, cscli leaves out those of imported lists. */
    async #decisions(): Promise<readonly Decision[]> {
        const text = await this.#run('crowdsec', [
            'decisions',
            'list',
            '--all',
            '--output',
            'json',
            '--type',
            'ban',
            '--no-simu',
            '--limit',
            '0'
        ]);
        let alerts: unknown;
        try {
            alerts = JSON.parse(text.trim() === '' ? 'null' : text);
        } catch (cause) {
            throw fail.TOOL_FAILED({ tool: 'cscli', message: 'its answer is no JSON' }, { cause });
        }
        return (Array.isArray(alerts) ? alerts : [])
            .flatMap((alert: { readonly decisions?: readonly Decision[] }) => alert.decisions ?? [])
            .filter(({ scope }) => /^(?:ip|range)$/i.test(String(scope)));
    }

    /** The lists of CrowdSec are the origins of its bans. */
    async #origins(): Promise<IntrusionState['lists']> {
        const byOrigin = Map.groupBy(await this.#decisions(), ({ origin }) => String(origin));
        return [...byOrigin].map(([name, all]) => ({
            name,
            addresses: [...new Set(all.map(({ value }) => String(value)))]
        }));
    }

    async #run(tool: IntrusionTool, args: readonly string[]): Promise<string> {
        const [program, install] = programs[tool];
        const { code, stdout, stderr, timedOut } = await this.#ctx
            .exec(program, args, { timeoutSeconds: 20, maxOutputBytes: 32 * 2 ** 20 })
            .catch((error: unknown) => {
                throw isFailure(error) && error.reason === 'TOOL_MISSING'
                    ? errors.toolMissing(program, install)
                    : error;
            });
        if (code !== 0) {
            const message = timedOut ? 'it gave no answer' : (stderr.trim() || stdout.trim()).slice(0, 300);
            throw fail.TOOL_FAILED({ tool: program, message });
        }
        return stdout;
    }
}

/** An address in our own spelling; as it is where it is none. */
function writtenAs(text: string): string {
    const interval = readPrefix(text);
    return interval === null ? text : formatInterval(interval);
}

/** @throws VALIDATION_FAILED 40001 */
function readAddress(text: string): Interval {
    try {
        return parsePrefix(text);
    } catch (error) {
        if (error instanceof AddressInvalid) {
            throw errors.invalid([{ path: 'address', message: error.message }]);
        }
        throw error;
    }
}
