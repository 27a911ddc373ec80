/** Which plugin's contract can be called now. Providers come and go; consumers name a plugin and reach whatever runs. */
import { boundaryErrors, type ContractAnswer } from '@portico/sdk/host';
import type { Held } from './handles.ts';

/** A running generation's contract. */
export interface Provider {
    readonly methods: ReadonlySet<string>;
    call(input: { readonly method: string; readonly input: unknown; readonly plugin: string; readonly held: Omit<Held, 'audit' | 'depth'> | null; readonly signal: AbortSignal | null }): Promise<ContractAnswer>;
}

export class Contracts {
    readonly #providers = new Map<string, Provider>();
    readonly #listeners = new Set<(plugin: string, present: boolean) => void>();

    /** A plugin runs. Returns how to take it away, which does nothing when another generation has taken its place. */
    provide(plugin: string, provider: Provider): () => void {
        this.#providers.set(plugin, provider);
        this.#tell(plugin, true);
        return () => {
            if (this.#providers.get(plugin) === provider) {
                this.#providers.delete(plugin);
                this.#tell(plugin, false);
            }
        };
    }

    has(plugin: string): boolean {
        return this.#providers.has(plugin);
    }

    /** @throws PARTNER_UNAVAILABLE 50307 */
    get(plugin: string, method: string): Provider {
        const provider = this.#providers.get(plugin);
        if (provider === undefined || !provider.methods.has(method)) {
            throw boundaryErrors.PARTNER_UNAVAILABLE({ plugin, method });
        }
        return provider;
    }

    /** Hears of every coming and going. Returns how to stop. */
    watch(listener: (plugin: string, present: boolean) => void): () => void {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
    }

    #tell(plugin: string, present: boolean): void {
        for (const listener of [...this.#listeners]) {
            listener(plugin, present);
        }
    }
}
