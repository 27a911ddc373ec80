/** One call of a tap: what it is lent, and how long it is waited for. */

/** What a tap is lent. Most taps never look at their signal, so it is made when one does. */
export class TapCall {
    #controller: AbortController | null = null;
    #reason: Error | null = null;

    get signal(): AbortSignal {
        if (this.#controller === null) {
            this.#controller = new AbortController();
            if (this.#reason !== null) {
                this.#controller.abort(this.#reason);
            }
        }
        return this.#controller.signal;
    }

    end(reason: Error): void {
        this.#reason = reason;
        this.#controller?.abort(reason);
    }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
    return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** What the tap promised, if it comes in time and somebody still waits. */
export function within(promised: PromiseLike<unknown>, milliseconds: number, lent: TapCall, outer: AbortSignal | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
        const give = (reason: Error): void => {
            settle();
            lent.end(reason);
            reject(reason);
        };
        const leave = (): void => give(outer?.reason instanceof Error ? outer.reason : new Error('Nobody waits for the tap any more'));
        const timer = setTimeout(() => give(new Error(`The tap took longer than ${milliseconds / 1000} s`)), milliseconds);
        const settle = (): void => {
            clearTimeout(timer);
            outer?.removeEventListener('abort', leave);
        };
        outer?.addEventListener('abort', leave, { once: true });
        promised.then((result) => {
            settle();
            resolve(result);
        }, (error: unknown) => {
            settle();
            reject(error as Error);
        });
    });
}
