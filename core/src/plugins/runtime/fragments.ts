/** A plugin's fragments of the engine's configuration. Its taps are asked when it starts, when its settings change and when it asks for that, and never during an apply. */
import { isFailure, messageOf, type Outcome } from '@portico/sdk';
import { type GenerationDocument, type Guest, within } from '@portico/sdk/host';

import type { Logger } from '../../platform/log/log.ts';
import type { HealthReport } from './generation/generation.ts';

/** The engine, as plugins add fragments to it. */
export interface FragmentsPort {
    /** Replaces the plugin's fragments and proves them by one apply. `mayReach` tells which hosts they may lead the engine to. @throws the error of the engine or of the rules for fragments; the earlier fragments then stay */
    put(plugin: string, given: readonly unknown[], mayReach: (host: string) => boolean): Promise<unknown>;
    /** Removes a plugin's fragments, which only an admin's decision does. Resolves with the slots that were removed. */
    drop(plugin: string): Promise<readonly string[]>;
}

/** What the fragment taps of one generation need. */
export interface FragmentTapsOptions {
    readonly plugin: string;
    readonly version: string;
    readonly guest: Pick<Guest, 'tap'>;
    readonly document: GenerationDocument;
    readonly port: FragmentsPort;
    readonly log: Logger;
    readonly signal: AbortSignal;
    /** Whether the plugin's grants cover a host. */
    readonly mayReach: (host: string) => boolean;
}

/** The hook that plugins tap to give fragments. */
export const fragmentHook = 'engine.collect';

const tapMs = 10_000;

/** The fragment taps of one generation. */
export class FragmentTaps {
    readonly #options: FragmentTapsOptions;
    readonly #taps: readonly number[];
    /** Why the newest fragments are not in place; null when they are. */
    #fault: string | null = null;

    constructor(options: FragmentTapsOptions) {
        this.#options = options;
        this.#taps = options.document.taps.flatMap(({ hook, tap }) => (hook === fragmentHook ? [tap] : []));
    }

    /** Asks the taps for fragments and puts them in place. After a failure the earlier fragments stay, and the plugin's health reports it. Null without taps. */
    async collect(): Promise<Outcome<readonly unknown[]> | null> {
        const { plugin, version, guest, port, log, signal, mayReach } = this.#options;
        if (this.#taps.length === 0) {
            return null;
        }
        try {
            const given: unknown[] = [];
            for (const tap of this.#taps) {
                const { result } = await within(tapMs, (late) =>
                    guest.tap({ tap, payload: {}, signal: AbortSignal.any([late, signal]) })
                );
                given.push(
                    ...(result === undefined || result === null ? [] : (result as readonly unknown[]))
                );
            }
            await port.put(plugin, given, mayReach);
            this.#fault = null;
            return { plugin, version, ok: true, result: given };
        } catch (error) {
            const message = explain(error);
            this.#fault = message;
            log.warn("A plugin's fragments for the engine could not be put in place; its earlier ones stay", {
                engine: message
            });
            return {
                plugin,
                version,
                ok: false,
                reason: isFailure(error) ? error.reason : 'TAP_FAILED',
                message
            };
        }
    }

    health(): readonly HealthReport[] {
        return this.#fault === null
            ? []
            : [
                  {
                      name: fragmentHook,
                      state: 'failed',
                      evidence: `The engine serves what the plugin gave before: ${this.#fault}`
                  }
              ];
    }
}

function explain(error: unknown): string {
    const { engine, errors } = (isFailure(error) ? (error.data ?? {}) : {}) as {
        readonly engine?: unknown;
        readonly errors?: readonly { readonly message: string }[];
    };
    const more = [
        ...(typeof engine === 'string' ? [engine] : []),
        ...(errors ?? []).map(({ message }) => message)
    ];
    return [messageOf(error), ...more].join('; ');
}
