/** Reads what the engine says while it pulls, pushes, loads or builds: one JSON document a line. */
import type { IncomingMessage } from 'node:http';

import type { FailureError } from '@portico/sdk';

import { wholly } from '../engine/engine.ts';
import { fail } from '../errors.ts';
import { readJsonLines } from '../streams/frames.ts';

/** One line of the progress that the engine sends while it pulls or builds. */
export interface ProgressLine {
    readonly id?: string;
    readonly status?: string;
    readonly stream?: string;
    readonly error?: string;
    readonly progressDetail?: { readonly current?: number; readonly total?: number };
    readonly aux?: { readonly ID?: string; readonly Digest?: string; readonly Tag?: string };
}

const registryFailed = (message: string): FailureError => fail.REGISTRY_FAILED({ message });

/** The lines as they come. @throws REGISTRY_FAILED 50250, or what `failureOf` makes of it, when one says that it failed; ENGINE_DOWN 50350 */
export async function* progressOf(
    response: IncomingMessage,
    signal: AbortSignal,
    failureOf: (said: string) => FailureError = registryFailed
): AsyncGenerator<ProgressLine> {
    for await (const said of readJsonLines<ProgressLine>(wholly(response, signal))) {
        if (said.error !== undefined) {
            throw failureOf(said.error.slice(0, 2_000));
        }
        yield said;
    }
}

/** Adds up the bytes of all layers. */
export class LayerProgress {
    readonly #layers = new Map<string, { readonly current: number; readonly total: number }>();

    /** The fraction of what is known, 0 to 1; null while nothing is. */
    add({ id, status = '', progressDetail }: ProgressLine): number | null {
        const { current = 0, total = 0 } = progressDetail ?? {};
        if (id !== undefined && total > 0 && /^(Downloading|Pushing)/.test(status)) {
            this.#layers.set(id, { current, total });
        }
        const known = id === undefined ? undefined : this.#layers.get(id);
        if (id !== undefined && known !== undefined && /complete|Pull complete|Pushed/i.test(status)) {
            this.#layers.set(id, { current: known.total, total: known.total });
        }
        const all = [...this.#layers.values()];
        const sum = all.reduce((bytes, layer) => bytes + layer.total, 0);
        return sum === 0 ? null : Math.min(1, all.reduce((bytes, layer) => bytes + layer.current, 0) / sum);
    }
}
