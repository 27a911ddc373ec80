/** Bans of fail2ban and CrowdSec: listed, made and lifted through their own programs. */
import { errors, isFailure } from '@portico/sdk';

import { AddressInvalid, formatInterval, type Interval, parsePrefix } from './address/interval.ts';
import { firewallErrors } from './errors.ts';
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

/** Speaks to both programs. */
export class Intrusion {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** The bans of both; a program that is missing or does not answer is not available. */
    async list(): Promise<readonly IntrusionState[]> {
        return Promise.all([
            this.#state('fail2ban', () => this.#jails()),
            this.#state('crowdsec', () => this.#decisions())
        ]);
    }

    /** Bans an address, or lifts its ban. @throws VALIDATION_FAILED 40001, TOOL_MISSING 50302, TOOL_FAILED 50251 */
    async change(
        tool: IntrusionTool,
        change: 'ban' | 'unban',
        address: string,
        list: string | null
    ): Promise<void> {
        const text = formatInterval(readAddress(address));
        if (tool === 'crowdsec') {
            const flag = text.includes('/') ? '--range' : '--ip';
            await this.#run(tool, ['decisions', change === 'ban' ? 'add' : 'delete', flag, text]);
            return;
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

    async #decisions(): Promise<IntrusionState['lists']> {
        const text = await this.#run('crowdsec', ['decisions', 'list', '--output', 'json']);
        let alerts: unknown;
        try {
            alerts = JSON.parse(text.trim() === '' ? 'null' : text);
        } catch (cause) {
            throw firewallErrors.TOOL_FAILED({ tool: 'cscli', message: 'its answer is no JSON' }, { cause });
        }
        const decisions = (Array.isArray(alerts) ? alerts : []).flatMap(
            (alert: {
                readonly decisions?: readonly {
                    readonly value?: unknown;
                    readonly origin?: unknown;
                    readonly type?: unknown;
                }[];
            }) => alert.decisions ?? []
        );
        const byOrigin = Map.groupBy(decisions, ({ origin }) => String(origin ?? 'crowdsec'));
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
            throw firewallErrors.TOOL_FAILED({ tool: program, message });
        }
        return stdout;
    }
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
