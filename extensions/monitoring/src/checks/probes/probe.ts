/** Tries a check once. */
import { isFailure, messageOf } from '@portico/sdk';

import type { CheckSpec } from '../spec.ts';
import { Attempt, type ProbeContext } from './attempt.ts';
import { probeDns } from './dns.ts';
import { probeHttp } from './http.ts';
import { type Outcome, ProbeFailure } from './outcome.ts';
import { probePing } from './ping.ts';
import { probeTcp, probeTls } from './sockets.ts';

/**
 * Tries a check once; how it fails is an outcome.
 *
 * @throws TOOL_MISSING 50302 where the program is absent that the kind needs; the signal's reason
 */
export async function probe(ctx: ProbeContext, spec: CheckSpec, signal: AbortSignal): Promise<Outcome> {
    const attempt = new Attempt(
        ctx,
        AbortSignal.any([signal, AbortSignal.timeout(spec.timeoutSeconds * 1000)])
    );
    try {
        return attempt.outcome(await run(ctx, attempt, spec), null);
    } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ProbeFailure) {
            return attempt.outcome(error.isMild ? attempt.elapsedMs : null, error);
        }
        if (isFailure(error) && error.reason === 'TOOL_MISSING') {
            throw error;
        }
        return attempt.outcome(null, new ProbeFailure('CHECK_FAILED', messageOf(error)));
    } finally {
        attempt.end();
    }
}

function run(ctx: ProbeContext, attempt: Attempt, spec: CheckSpec): Promise<number> {
    switch (spec.kind) {
        case 'http':
            return probeHttp(attempt, spec);
        case 'tcp':
            return probeTcp(attempt, spec);
        case 'tls':
            return probeTls(attempt, spec);
        case 'dns':
            return probeDns(attempt, spec);
        case 'ping':
            return probePing(ctx, attempt, spec);
    }
}
