/** How much a page of a plugin may ask for at once: what is more waits, and what is far more is refused. */
const atOnce = 4;
const aSecond = 20;
const mostWaiting = 200;

/** Lets at most 4 pieces of work run at a time, and at most 20 begin in a second. */
export class Throttle {
    readonly #waiting: (() => void)[] = [];
    #running = 0;
    #begun: number[] = [];
    #timer: ReturnType<typeof setTimeout> | null = null;
    readonly #now: () => number;

    constructor(now: () => number = () => performance.now()) {
        this.#now = now;
    }

    /** Runs the work when its turn has come. @throws RangeError when too much waits already */
    async run<T>(work: () => Promise<T>): Promise<T> {
        if (this.#waiting.length >= mostWaiting) {
            throw new RangeError(`More than ${mostWaiting} requests wait`);
        }
        await new Promise<void>((resolve) => {
            this.#waiting.push(resolve);
            this.#next();
        });
        try {
            return await work();
        } finally {
            this.#running -= 1;
            this.#next();
        }
    }

    #next(): void {
        const now = this.#now();
        this.#begun = this.#begun.filter((at) => now - at < 1_000);
        while (this.#running < atOnce && this.#begun.length < aSecond) {
            const start = this.#waiting.shift();
            if (start === undefined) {
                return;
            }
            this.#running += 1;
            this.#begun.push(now);
            start();
        }
        const [oldest] = this.#begun;
        if (this.#waiting.length > 0 && this.#timer === null && oldest !== undefined) {
            this.#timer = setTimeout(
                () => {
                    this.#timer = null;
                    this.#next();
                },
                Math.max(10, oldest + 1_000 - now)
            );
        }
    }
}
