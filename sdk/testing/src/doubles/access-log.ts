/** The engine's access log in a test: records are what the test says. */
import type { AccessLogPort } from '@portico/core/plugin-runtime';
import { type AccessRecord, EventBuffer } from '@portico/sdk';

/** The visits to the hosts of a test's panel. */
export class TestAccessLog {
    /** The setting `engine.accessLog`. While it is off, nothing is recorded. */
    on = true;
    readonly #now: () => Date;
    readonly #records = new EventBuffer<AccessRecord>(Infinity);

    /** @internal */
    constructor(now: () => Date) {
        this.#now = now;
    }

    /** Records a visit, and gives it to the plugin. What is not said is that of a quick `GET /` by a visitor from 192.0.2.1. */
    add(visit: Partial<AccessRecord> = {}): void {
        if (!this.on) {
            return;
        }
        this.#records.publish({
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
        const { last } = this.#records;
        for await (const next of this.#records.after(from === null ? last : 0, signal)) {
            if ('event' in next && (from === null || next.event.at >= from)) {
                yield [next.event];
            }
        }
    }
}
