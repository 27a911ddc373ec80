/** The contracts that can be called now. Consumers name a plugin and reach its running generation, or wait for it during a swap. */
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

/** The contracts of all running plugins. */
export class Contracts {
    readonly #gateOf: (plugin: string) => Gate;
    readonly #providers = new Map<string, Provider>();
    /** Plugins that are being swapped: their provider is gone, their gate is parked, and the next provider is expected. */
    readonly #awaited = new Set<string>();
    readonly #listeners = new Set<(plugin: string, present: boolean) => void>();

    constructor(gateOf: (plugin: string) => Gate) {
        this.#gateOf = gateOf;
    }

    /** Registers the provider of a running plugin. Returns a function that removes it, which does nothing once another generation has replaced it. */
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

    /** Whether the plugin runs or is being swapped. */
    has(plugin: string): boolean {
        return this.#providers.has(plugin) || this.#awaited.has(plugin);
    }

    /**
     * Calls a partner, and waits for it during a swap. A series of answers ends with the generation that gives it.
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

    /** Tells the listener whenever a plugin comes or goes. Returns a function that stops that. */
    watch(listener: (plugin: string, present: boolean) => void): () => void {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
    }

    /** During a swap partners are not told that the plugin is gone. They are told when the new generation can be called, since their series of the old one have ended. */
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
