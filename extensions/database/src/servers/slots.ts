/** How many connections to one server are open at once. */
import { errors } from '@portico/sdk';

const most = 20;
const waitMs = 10_000;

/** Lets at most 20 pieces of work at one server run at once; the others wait their turn. */
export class Slots {
    #taken = 0;
    readonly #waiting: (() => void)[] = [];

    /** Runs the work when there is room. @throws IN_USE 40901 when there is none for ten seconds */
    async run<T>(work: () => Promise<T>): Promise<T> {
        await this.#take();
        try {
            return await work();
        } finally {
            this.#taken -= 1;
            this.#waiting.shift()?.();
        }
    }

    async #take(): Promise<void> {
        if (this.#taken >= most) {
            await new Promise<void>((resolve, reject) => {
                const enter = (): void => {
                    clearTimeout(timer);
                    resolve();
                };
                const timer = setTimeout(() => {
                    this.#waiting.splice(this.#waiting.indexOf(enter), 1);
                    reject(errors.inUse(`${most} connections to this server`));
                }, waitMs);
                this.#waiting.push(enter);
            });
        }
        this.#taken += 1;
    }
}
