import type { script } from '@hapi/lab';

/** Registers one test. */
export type Register = (title: string, action: script.Action) => void;
/** Lab's `it`. */
export type It = (title: string, options: { skip: boolean }, action: script.Action) => void;

/**
 * Registers tests that cannot run everywhere.
 *
 * They run where `reason` is undefined. Elsewhere they are skipped, and their title says why, as the runner demands.
 */
export function itUnless(reason: string | undefined, it: It): Register {
    return reason === undefined
        ? (title, action) => it(title, { skip: false }, action)
        : (title, action) => it(`${title} (skipped: ${reason})`, { skip: true }, action);
}
