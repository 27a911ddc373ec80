/** Compares texts with regular expressions that others wrote. */
import { runInNewContext } from 'node:vm';

/** A comparison may take so many milliseconds of processor time. */
const mostMs = 100;
/** On a busy machine the clock ends a comparison that had little of the processor; it is begun again so often. */
const mostTries = 20;

/**
 * Whether a text has a match, in bounded time: one pattern that never ends would keep the panel.
 * @param flags - as of `RegExp`
 * @returns null when it cannot be compared: the pattern is no regular expression, or takes over 100 ms of processor time
 */
export function matchPattern(pattern: string, text: string, flags = ''): boolean | null {
    for (let tries = 0; tries < mostTries; tries += 1) {
        const before = process.threadCpuUsage();
        try {
            const code = 'new RegExp(pattern, flags).test(text)';
            return runInNewContext(code, { pattern, text, flags }, { timeout: mostMs }) as boolean;
        } catch (error) {
            const { user, system } = process.threadCpuUsage(before);
            const isLate = (error as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
            if (!isLate || (user + system) / 1000 > mostMs / 2) {
                return null;
            }
        }
    }
    return null;
}
