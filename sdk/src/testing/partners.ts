/** Fakes of the plugins that the one under test works with: contracts that come and go as the test says. */
import { boundaryErrors, failureOf } from '../boundary/failures.ts';
import { plainCopy } from '../boundary/plain.ts';
import type { ContractAnswer } from '../boundary/protocol.ts';
import type { Call } from '../definition.ts';

/** Functions of one plain input and the call. */
export type FakeContract = Readonly<Record<string, (input: never, call: Call) => unknown>>;

export class PartnersFake {
    readonly #contracts = new Map<string, FakeContract>();
    #changed: (name: string, present: boolean) => Promise<void> = async () => undefined;

    constructor(contracts: Readonly<Record<string, FakeContract>>) {
        Object.entries(contracts).forEach(([name, contract]) => this.#contracts.set(name, contract));
    }

    has(name: string): boolean {
        return this.#contracts.has(name);
    }

    /** A partner comes, is swapped for another generation, or goes (`null`); resolves when the plugin has heard of it. */
    async set(name: string, contract: FakeContract | null): Promise<void> {
        if (contract === null) {
            this.#contracts.delete(name);
        } else {
            this.#contracts.set(name, contract);
        }
        await this.#changed(name, contract !== null);
    }

    watch(changed: (name: string, present: boolean) => Promise<void>): void {
        this.#changed = changed;
    }

    async call(plugin: string, method: string, input: unknown, call: Call): Promise<ContractAnswer> {
        const contract = this.#contracts.get(plugin);
        if (contract === undefined || !Object.hasOwn(contract, method)) {
            throw boundaryErrors.PARTNER_UNAVAILABLE({ plugin, method });
        }
        const what = `the answer of ${plugin}.${method}`;
        const answer = contract[method]?.(input as never, call);
        return isSeries(answer) ? { series: copied(answer, what) } : { value: plainCopy(await answer, what) };
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
