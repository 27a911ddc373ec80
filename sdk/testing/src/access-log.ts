/** The engine's access log in a test: records are what the test says. */
import type { AccessLogPort } from '@portico/core/plugin-runtime';
import type { AccessRecord } from '@portico/sdk';

/** The visits to the hosts of a test's panel. */
export class TestAccessLog {
    /** The setting `engine.accessLog`. While it is off, nothing is recorded. */
    on = true;
    readonly #now: () => Date;
    readonly #records: AccessRecord[] = [];
    readonly #waiting = new Set<() => void>();

    /** @internal */
    constructor(now: () => Date) {
        this.#now = now;
    }

    /** Records a visit, and gives it to the plugin. What is not said is that of a quick `GET /` by a visitor from 192.0.2.1. */
    add(visit: Partial<AccessRecord> = {}): void {
        if (!this.on) {
            return;
        }
        this.#records.push({
            at: this.#now(),
            hostId: null,
            method: 'GET',
            path: '/',
            status: 200,
            bytes: 0,
            ms: 1,
            ip: '192.0.2.1',
            agent: null,
            dropped: 0,
            ...visit
        });
        this.#waiting.forEach((wake) => wake());
    }

    /** @internal */
    isOn(): boolean {
        return this.on;
    }

    /** @internal */
    async *follow({
        from,
        signal
    }: Parameters<AccessLogPort['follow']>[0]): AsyncGenerator<readonly AccessRecord[]> {
        let next = from === null ? this.#records.length : 0;
        while (!signal.aborted) {
            const batch = this.#records.slice(next).filter(({ at }) => from === null || at >= from);
            next = this.#records.length;
            if (batch.length > 0) {
                yield batch;
            } else {
                await this.#wake(signal);
            }
        }
    }

    #wake(signal: AbortSignal): Promise<void> {
        return new Promise((resolve) => {
            const wake = (): void => {
                this.#waiting.delete(wake);
                signal.removeEventListener('abort', wake);
                resolve();
            };
            this.#waiting.add(wake);
            signal.addEventListener('abort', wake, { once: true });
        });
    }
}
