/** Hands values from work that makes them to work that takes them, one at a time. */
export class Queue<T> {
    #value: { readonly value: T } | null = null;
    #isEnded = false;
    #hasLeft = false;
    #failure: Error | undefined;
    #wake: () => void = () => undefined;

    /** Waits until the value before was taken; false when nothing is taken any more. */
    async put(value: T): Promise<boolean> {
        while (this.#value !== null && !this.#hasLeft) {
            await this.#changed();
        }
        if (this.#hasLeft) {
            return false;
        }
        this.#value = { value };
        this.#wake();
        return true;
    }

    /** The next value; null at the end. @throws what `end` was given */
    async take(): Promise<T | null> {
        while (this.#value === null && !this.#isEnded) {
            await this.#changed();
        }
        const found = this.#value;
        this.#value = null;
        this.#wake();
        if (found === null && this.#failure !== undefined) {
            throw this.#failure;
        }
        return found?.value ?? null;
    }

    /** Says that no value comes any more, and why. */
    end(failure?: Error): void {
        this.#isEnded = true;
        this.#failure = failure;
        this.#wake();
    }

    /** Says that no value is taken any more. */
    leave(): void {
        this.#hasLeft = true;
        this.#wake();
    }

    #changed(): Promise<void> {
        const before = this.#wake;
        return new Promise((resolve) => {
            this.#wake = () => {
                before();
                resolve();
            };
        });
    }
}
