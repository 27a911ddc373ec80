/** Waits that end: in a test, what never comes is to fail and to say what it was. */

/** How long a test waits for anything unless it says otherwise, milliseconds of real time. */
export const usualPatienceMs = 5_000;

/** A test waited for something that did not come. */
export class TestTimeout extends Error {
    /** What it waited for. */
    readonly awaited: string;

    /** @internal */
    constructor(awaited: string, milliseconds: number) {
        super(`Waited ${milliseconds / 1000} s in vain for ${awaited}`);
        this.name = 'TestTimeout';
        this.awaited = awaited;
    }
}

/** Waits for `work` at most so long. @throws TestTimeout that names `awaited` */
export async function inTime<T>(awaited: string, milliseconds: number, work: Promise<T>): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new TestTimeout(awaited, milliseconds)), milliseconds);
    try {
        return await Promise.race([work, late]);
    } finally {
        clearTimeout(timer);
    }
}
