/** Requests at a steady rate, whatever the answers take, each with a number of its own. */
import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

/** Sends requests to a host of the engine until it is told to stop. */
export class Load {
    /** What went wrong, with the number of the request. */
    readonly failures: string[] = [];
    /** Answers by their text. */
    readonly seen = new Map<string, number>();
    readonly #agent = new Agent({ keepAlive: true, maxSockets: 32 });
    readonly #open = new Set<Promise<void>>();
    readonly #ended: Promise<void>;
    readonly #method: 'GET' | 'POST';
    #running = true;
    #sent = 0;
    #seconds = 0;

    /** @param method - a POST is never sent a second time by a proxy or a client */
    constructor(port: number, domain: string, perSecond: number, method: 'GET' | 'POST' = 'POST') {
        this.#method = method;
        this.#ended = this.#run(port, domain, perSecond);
    }

    /** How many were sent. */
    get sent(): number {
        return this.#sent;
    }

    /** How many were sent each second, over all of the time. */
    get rate(): number {
        return this.#sent / this.#seconds;
    }

    /** Sends no more, and waits for the answers that are missing. */
    async stop(): Promise<void> {
        this.#running = false;
        await this.#ended;
        await Promise.all(this.#open);
        this.#agent.destroy();
    }

    async #run(port: number, domain: string, perSecond: number): Promise<void> {
        const begun = performance.now();
        while (this.#running) {
            this.#seconds = (performance.now() - begun) / 1_000;
            while (this.#sent < this.#seconds * perSecond) {
                this.#sent += 1;
                const one = this.#ask(port, domain, this.#sent);
                this.#open.add(one);
                void one.finally(() => this.#open.delete(one));
            }
            await wait(5);
        }
    }

    #ask(port: number, domain: string, number: number): Promise<void> {
        return new Promise((resolve) => {
            const fail = (error: unknown): void => {
                this.failures.push(`${number}: ${String(error)}`);
                resolve();
            };
            const headers = { host: domain, 'x-number': String(number) };
            const method = this.#method;
            const sent = request({ host: '127.0.0.1', port, method, agent: this.#agent, headers });
            sent.once('response', (answer) => {
                let text = '';
                answer.on('data', (chunk: Buffer) => (text += chunk.toString()));
                answer.once('error', fail);
                answer.once('end', () => {
                    this.seen.set(text, (this.seen.get(text) ?? 0) + 1);
                    if (answer.statusCode !== 200) {
                        this.failures.push(`${number}: ${answer.statusCode} ${text}`);
                    }
                    resolve();
                });
            });
            sent.once('error', fail);
            sent.end();
        });
    }
}
