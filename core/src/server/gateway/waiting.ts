/** How clients wait: at a parked gate, and for a plugin that starts. */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

import { failureEnvelope, failureHeaders, failureOf } from '../http/answer/envelope.ts';
import { refusalHeaders } from './front.ts';
import { type Gate, type GateLimits, type Leave, usualLimits } from './gate.ts';

/** Lets a client in once the gate opens, unless it has gone by then. */
export function enterWhenOpen(
    gate: Gate,
    peer: ServerResponse | Duplex,
    enter: (leave: Leave) => void,
    refuseWith: (headers: Record<string, string>, body: string) => void
): void {
    const gone = new AbortController();
    const leave = (): void => gone.abort();
    peer.once('close', leave);
    gate.wait({ signal: gone.signal }).then(
        (given) => {
            peer.removeListener('close', leave);
            if (peer.destroyed) {
                given();
                return;
            }
            enter(given);
        },
        (error: unknown) => {
            if (!gone.signal.aborted) {
                const failure = failureOf(error);
                refuseWith({ ...refusalHeaders(), ...failureHeaders(failure) }, failureEnvelope(failure));
            }
        }
    );
}

/** The start of a plugin, which resolves when it has ended, whichever way; null when the plugin does not start. */
export type StartOf = (plugin: string) => Promise<unknown> | null;

/** Lets clients wait for plugins that start, so that a restart of the panel is no failure for them. Calls within the panel do not wait. */
export class StartWaits {
    readonly #startOf: StartOf;
    readonly #limits: GateLimits;
    #waiting = 0;

    constructor(startOf: StartOf, limits: Partial<GateLimits>) {
        this.#startOf = startOf;
        this.#limits = { ...usualLimits, ...limits };
    }

    /** Goes on when the start of the plugin has ended, or takes too long; at once when it does not start, or too many wait already. */
    whenStarted(plugin: string, peer: ServerResponse | Duplex, goOn: () => void): void {
        const start = this.#startOf(plugin);
        if (start === null || this.#waiting >= this.#limits.most) {
            goOn();
            return;
        }
        this.#waiting += 1;
        let isOver = false;
        const end = (next: () => void): void => {
            if (!isOver) {
                isOver = true;
                this.#waiting -= 1;
                clearTimeout(timer);
                peer.removeListener('close', gone);
                peer.removeListener('error', gone);
                next();
            }
        };
        const proceed = (): void => end(goOn);
        const gone = (): void => end(() => peer.destroy());
        const timer = setTimeout(proceed, this.#limits.patienceMs);
        peer.once('close', gone).once('error', gone);
        start.then(proceed, proceed);
    }
}
