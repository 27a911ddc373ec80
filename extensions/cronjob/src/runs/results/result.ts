/** How runs end. */

/** How a run ended. */
export interface RunResult {
    readonly state: 'succeeded' | 'failed' | 'timeout' | 'stopped';
    readonly exitCode: number | null;
    /** Name of the signal that ended it. */
    readonly signal: string | null;
    readonly reason: string | null;
    readonly message: string | null;
    /** What a request or a route answered; null of others. */
    readonly status: number | null;
    /** Of all processes together; null where the machine does not measure it. */
    readonly cpuSeconds: number | null;
    readonly memoryPeakBytes: number | null;
}

/** The result of a run that no program was started for. */
export const emptyResult = {
    exitCode: null,
    signal: null,
    reason: null,
    message: null,
    status: null,
    cpuSeconds: null,
    memoryPeakBytes: null
} as const;
