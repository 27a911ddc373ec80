/** Which plugin's contract can be called now. Providers come and go; consumers name a plugin and reach whatever runs, or wait for it while it is swapped. */
import { isFailure } from '@portico/sdk';
import { boundaryErrors, type ContractAnswer } from '@portico/sdk/host';

import type { Gate, Leave } from '../../../server/gateway/gate.ts';
import type { Held } from '../api/handles.ts';

/** A running generation's contract. */
export interface Provider {
    readonly methods: ReadonlySet<string>;
    call(input: {
        readonly method: string;
        readonly input: unknown;
        readonly plugin: string;
        readonly held: Omit<Held, 'audit' | 'depth' | 'onward'> | null;
        readonly signal: AbortSignal | null;
    }): Promise<ContractAnswer>;
}

export class Contracts {
    readonly #gateOf: (plugin: string) => Gate;
    readonly #providers = new Map<string, Provider>();
    /** Those whose provider has gone and whose gate is parked: another one is on its way. */
    readonly #awaited = new Set<string>();
    readonly #listeners = new Set<(plugin: string, present: boolean) => void>();

    constructor(gateOf: (plugin: string) => Gate) {
        this.#gateOf = gateOf;
    }

    /** A plugin runs. Returns how to take it away, which does nothing when another generation has taken its place. */
    provide(plugin: string, provider: Provider): () => void {
        this.#providers.set(plugin, provider);
        if (!this.#awaited.has(plugin)) {
            this.#tell(plugin, true);
        }
        return () => {
            if (this.#providers.get(plugin) === provider) {
                this.#providers.delete(plugin);
                this.#withdrawn(plugin);
            }
        };
    }

    has(plugin: string): boolean {
        return this.#providers.has(plugin) || this.#awaited.has(plugin);
    }

    /**
     * Calls a partner. One that is being swapped is waited for. A series is not: it ends with the generation that gives it.
     * @throws PARTNER_UNAVAILABLE 50307
     */
    async call(plugin: string, input: Parameters<Provider['call']>[0]): Promise<ContractAnswer> {
        const { method, signal } = input;
        const gate = this.#gateOf(plugin);
        let leave: Leave;
        try {
            leave = gate.pass() ?? (await gate.wait(signal === null ? {} : { signal }));
        } catch (error) {
            throw isFailure(error) ? boundaryErrors.PARTNER_UNAVAILABLE({ plugin, method }) : error;
        }
        try {
            const provider = this.#providers.get(plugin);
            if (provider === undefined || !provider.methods.has(method)) {
                throw boundaryErrors.PARTNER_UNAVAILABLE({ plugin, method });
            }
            return await provider.call(input);
        } finally {
            leave();
        }
    }

    /** Hears of every coming and going. Returns how to stop. */
    watch(listener: (plugin: string, present: boolean) => void): () => void {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
    }

    /** While it is swapped, partners do not see it gone; they hear of the new one when it can be called, since what they asked the old one for has ended. */
    #withdrawn(plugin: string): void {
        const gate = this.#gateOf(plugin);
        if (!gate.isParked) {
            this.#tell(plugin, false);
            return;
        }
        this.#awaited.add(plugin);
        gate.onOpen(() => {
            this.#awaited.delete(plugin);
            this.#tell(plugin, this.#providers.has(plugin));
        });
    }

    #tell(plugin: string, present: boolean): void {
        for (const listener of [...this.#listeners]) {
            listener(plugin, present);
        }
    }
}
