/** What a plugin puts into the engine's configuration: asked of its taps when it starts, when its settings change and when it asks, and never inside an apply. */
import { isFailure, type Outcome } from '@portico/sdk';
import { type GenerationDocument, type Guest, within } from '@portico/sdk/host';

import type { Logger } from '../../platform/log.ts';
import type { HealthReport } from './generation.ts';

/** The engine, as far as plugins put something into it. */
export interface FragmentsPort {
    /** Puts these in the place of what the plugin gave before, proven by one apply. @throws what the engine or the rules for fragments say; then those of before stay */
    put(plugin: string, given: readonly unknown[]): Promise<unknown>;
    /** Takes a plugin's away: only an admin's decision does. Resolves with the slots that went. */
    drop(plugin: string): Promise<readonly string[]>;
}

export interface FragmentTapsOptions {
    readonly plugin: string;
    readonly version: string;
    readonly guest: Pick<Guest, 'tap'>;
    readonly document: GenerationDocument;
    readonly port: FragmentsPort;
    readonly log: Logger;
    readonly signal: AbortSignal;
}

/** The hook under which plugins give them. */
export const fragmentHook = 'engine.collect';

const tapMs = 10_000;

export class FragmentTaps {
    readonly #options: FragmentTapsOptions;
    readonly #taps: readonly number[];
    /** Why the newest ones did not get there. */
    #fault: string | null = null;

    constructor(options: FragmentTapsOptions) {
        this.#options = options;
        this.#taps = options.document.taps.flatMap(({ hook, tap }) => (hook === fragmentHook ? [tap] : []));
    }

    /** Asks the plugin and puts what it gives in place. Whatever fails leaves what was there before, and stands in the health of the plugin. */
    async collect(): Promise<Outcome<readonly unknown[]> | null> {
        const { plugin, version, guest, port, log, signal } = this.#options;
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
            await port.put(plugin, given);
            this.#fault = null;
            return { plugin, version, ok: true, result: given };
        } catch (error) {
            const message = messageOf(error);
            this.#fault = message;
            log.warn(
                'What a plugin gives for the engine could not be put in place; what it gave before stays',
                { engine: message }
            );
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

function messageOf(error: unknown): string {
    const { engine, errors } = (isFailure(error) ? (error.data ?? {}) : {}) as {
        readonly engine?: unknown;
        readonly errors?: readonly { readonly message: string }[];
    };
    const more = [
        ...(typeof engine === 'string' ? [engine] : []),
        ...(errors ?? []).map(({ message }) => message)
    ];
    return [error instanceof Error ? error.message : String(error), ...more].join('; ');
}
