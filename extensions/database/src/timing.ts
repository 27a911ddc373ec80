/** Time limits of work that may hang. */

/**
 * Settles as the work does, or rejects when it takes too long or a signal aborts. The work itself goes on: `onLate` ends it.
 *
 * @param late - makes the error of work that takes too long
 */
export async function within<T>(
    seconds: number,
    work: Promise<T>,
    { late, onLate, signal }: { late: () => Error; onLate?: () => void; signal?: AbortSignal }
): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
        onLate?.();
        reject(late());
    }, seconds * 1_000);
    const abort = (): void => {
        onLate?.();
        reject(signal?.reason as Error);
    };
    if (signal?.aborted === true) {
        abort();
    }
    signal?.addEventListener('abort', abort, { once: true });
    // Whichever loses the race may still reject.
    work.catch(() => undefined);
    try {
        return await Promise.race([work, promise]);
    } finally {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
    }
}
