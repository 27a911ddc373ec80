/** The fault switch: any door fails or hangs when a test says so. */
import { createFailure } from '../errors.ts';

/** Doors of the context, by the names that a plugin's code calls them by. */
export type Door =
    | 'api.call'
    | 'api.routes'
    | 'audit'
    | 'certificates.list'
    | 'certificates.remove'
    | 'certificates.upload'
    | 'db.read'
    | 'db.write'
    | 'dial'
    | 'exec'
    | 'fetch'
    | 'files'
    | 'hooks.collect'
    | 'hosts.create'
    | 'hosts.list'
    | 'hosts.remove'
    | 'hosts.update'
    | 'hosts.upstreams'
    | 'notify'
    | 'plugins'
    | 'schedule'
    | 'secrets.open'
    | 'secrets.seal'
    | 'spawn'
    | 'task'
    | 'tickets.issue';

/** How often; default: until it is cleared. */
export interface FaultOptions {
    readonly times?: number;
}

interface Fault {
    readonly act: (signal: AbortSignal) => Promise<never>;
    left: number;
}

/** What is wrong with which door now. */
export class FaultSwitch {
    readonly #faults = new Map<Door, Fault>();
    #cleared = new AbortController();

    /**
     * From now on the door fails.
     *
     * @param error - default: STORAGE_FULL 50700 of the database, NOT_READY 50300 of all else
     */
    fail(door: Door, error?: Error, { times = Infinity }: FaultOptions = {}): void {
        const thrown =
            error ??
            (door.startsWith('db.')
                ? createFailure({
                      code: 50700,
                      reason: 'STORAGE_FULL',
                      message: 'There is no space left; nothing was changed',
                      data: null
                  })
                : createFailure({
                      code: 50300,
                      reason: 'NOT_READY',
                      message: `The test has put the door ${door} out of order`,
                      data: null
                  }));
        this.#faults.set(door, { act: () => Promise.reject(thrown), left: times });
    }

    /** From now on the door never answers; what hangs then fails when the fault is cleared, or the plugin stops. `reached` resolves when something hangs. */
    hang(door: Door, { times = Infinity }: FaultOptions = {}): { readonly reached: Promise<void> } {
        const { promise: reached, resolve } = Promise.withResolvers<void>();
        this.#faults.set(door, {
            act: (signal) =>
                new Promise((_resolve, reject) => {
                    signal.addEventListener(
                        'abort',
                        () => reject(new Error(`The door ${door} hung until the test cleared it`)),
                        { once: true }
                    );
                    resolve();
                }),
            left: times
        });
        return { reached };
    }

    /** Puts one door in order again, or all of them. */
    clear(door?: Door): void {
        if (door === undefined) {
            this.#faults.clear();
        } else {
            this.#faults.delete(door);
        }
        this.#cleared.abort();
        this.#cleared = new AbortController();
    }

    /** What the door does instead of its work; null when nothing is wrong with it. */
    of(door: Door): Promise<never> | null {
        const fault = this.#faults.get(door);
        if (fault === undefined || fault.left <= 0) {
            return null;
        }
        fault.left -= 1;
        return fault.act(this.#cleared.signal);
    }

    /** A door with this switch in front of it. */
    wrap<A extends readonly unknown[], T>(
        door: Door,
        work: (...input: A) => Promise<T>
    ): (...input: A) => Promise<T> {
        return async (...input) => (await this.of(door)) ?? work(...input);
    }
}
