/** Sends one echo request by the program `ping`, since raw sockets need a right that the panel does not ask for. */
import type { CheckSpec } from '../spec.ts';
import type { Attempt, ProbeContext } from './attempt.ts';
import { ProbeFailure } from './outcome.ts';

/** Sends an echo request to the checked address. Returns its round trip in milliseconds. @throws ProbeFailure; TOOL_MISSING 50302 */
export async function probePing(
    ctx: ProbeContext,
    attempt: Attempt,
    { target, timeoutSeconds }: CheckSpec
): Promise<number> {
    const [address = target] = await attempt.addresses(target);
    const { code, stdout } = await attempt.step('firstByte', () =>
        ctx.exec('ping', ['-n', '-c', '1', '-W', String(timeoutSeconds), '--', address], {
            timeoutSeconds: timeoutSeconds + 1,
            maxOutputBytes: 16_384,
            signal: attempt.signal
        })
    );
    const [, time] = /time[=<]([\d.]+) ms/.exec(stdout) ?? [];
    if (code !== 0 || time === undefined) {
        throw new ProbeFailure('ANSWER_TIMEOUT', 'No answer to the echo request');
    }
    return Number(time);
}
