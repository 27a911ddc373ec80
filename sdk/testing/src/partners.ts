/** Fakes of the plugins that the one under test works with. They come and go in the panel's own list of contracts. */
import { setImmediate as turn } from 'node:timers/promises';

import type { Caller, Contracts, Gateway } from '@portico/core/plugin-runtime';
import type { Actor, Call } from '@portico/sdk';
import { type ContractAnswer, failureOf, plainCopy } from '@portico/sdk/host';

/** Functions of one plain input and the call. */
export type FakeContract = Readonly<Record<string, (input: never, call: Call) => unknown>>;

/** The plugins that this one works with. */
export class TestPartners {
    readonly #contracts: Contracts;
    readonly #gateway: Pick<Gateway, 'park'>;
    readonly #withdrawals = new Map<string, () => void>();

    constructor(
        contracts: Contracts,
        gateway: Pick<Gateway, 'park'>,
        fakes: Readonly<Record<string, FakeContract>>
    ) {
        this.#contracts = contracts;
        this.#gateway = gateway;
        Object.entries(fakes).forEach(([name, contract]) => this.#provide(name, contract));
    }

    /** A partner comes, is swapped for another generation, or goes (`null`). Resolves when the plugin was told. */
    async set(name: string, contract: FakeContract | null): Promise<void> {
        const withdraw = this.#withdrawals.get(name);
        const parking = withdraw === undefined || contract === null ? null : this.#gateway.park(name);
        this.#withdrawals.delete(name);
        withdraw?.();
        if (contract !== null) {
            this.#provide(name, contract);
        }
        parking?.open();
        // The plugin hears of it across its boundary, in order with all else that it is asked.
        await turn();
    }

    #provide(name: string, contract: FakeContract): void {
        const withdraw = this.#contracts.provide(name, {
            methods: new Set(Object.keys(contract)),
            call: async ({ method, input, plugin, held, signal }): Promise<ContractAnswer> => {
                const what = `the answer of ${name}.${method}`;
                const actor = held === null ? null : actorOf(held.caller, name);
                const call: Call = { plugin, actor, signal: signal ?? new AbortController().signal };
                // The contract's own types say what it takes.
                const answer = contract[method]?.(input as never, call);
                return isSeries(answer)
                    ? { series: copied(answer, what) }
                    : { value: plainCopy(await answer, what) };
            }
        });
        this.#withdrawals.set(name, withdraw);
    }
}

async function* copied(series: AsyncIterable<unknown>, what: string): AsyncGenerator<unknown> {
    try {
        for await (const item of series) {
            yield plainCopy(item, what);
        }
    } catch (error) {
        throw failureOf(error);
    }
}

function isSeries(value: unknown): value is AsyncIterable<unknown> {
    return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** Who asks, as a contract of this plugin is shown it. */
function actorOf(
    { kind, id, username, role, tokenId, permissions, key, can }: Caller,
    plugin: string
): Actor {
    return Object.freeze({
        ...{ kind, id, username, role, tokenId, permissions, key },
        can: (permission: string) => can(permission.includes(':') ? permission : `${plugin}:${permission}`)
    });
}
