/** Failures of the boundary itself. Plugins see them, and so do clients when a plugin does not catch them. */
import { createFailure, defineErrors, type FailureError, isFailure } from '../errors.ts';

/** The boundary's error table. */
export const boundaryErrors = defineErrors({
    /** An actor that is no longer, or never was, one of a request, a socket or a task under way. */
    ACTOR_INVALID: {
        code: 40304,
        message: 'The actor is not that of a request, a socket or a task under way'
    },
    /** Work after the end of a generation: the context is dead. */
    GENERATION_ENDED: { code: 50304, message: 'This generation of the plugin {plugin} has ended' },
    /** A capability that the manifest does not ask for, or that the admin did not grant. */
    CAPABILITY_MISSING: { code: 50305, message: 'The plugin {plugin} lacks the capability {capability}' },
    /** Work that acts on the world, before `onStart`. */
    NOT_STARTED: { code: 50306, message: 'The plugin {plugin} has not started: {member} belongs in onStart' },
    /** A reload of a service that does not run, or has no `reloadSignal`. */
    SERVICE_NOT_RELOADABLE: { code: 40905, message: 'The service {service} cannot be reloaded' },
    /** Neither systemd nor the panel's supervisor answers. Services that run go on. */
    SERVICES_UNAVAILABLE: { code: 50308, message: 'The supervisor of services does not answer' },
    /** An address that gave no answer to `ctx.hosts.probe`. */
    PROBE_FAILED: { code: 50309, message: '{address} gives no answer: {why}' },
    /** A partner that does not run, or has no such method. */
    PARTNER_UNAVAILABLE: {
        code: 50307,
        message: 'The plugin {plugin} does not run, or has no method {method}'
    }
});

const deepestCause = 5;

/** What others see of an error that a plugin threw: a failure from an error table as plain data; a missing capability that caused it; anything else as an internal error. */
export function failureOf(error: unknown): FailureError {
    const thrown = isFailure(error) ? error : (capabilityBehind(error) ?? error);
    if (
        isFailure(thrown) &&
        Number.isInteger(thrown.code) &&
        thrown.code >= 40000 &&
        thrown.code <= 59999 &&
        typeof thrown.reason === 'string'
    ) {
        return createFailure(
            {
                code: thrown.code,
                reason: thrown.reason,
                message: String(thrown.message),
                data: plainData(thrown.data)
            },
            thrown
        );
    }
    return createFailure(
        {
            code: 50000,
            reason: 'INTERNAL',
            message: 'Something went wrong; the log has it under the request id',
            data: null
        },
        thrown
    );
}

/** What a plugin may not do is often hidden: libraries throw errors of their own, whose cause it is. */
function capabilityBehind(thrown: unknown): FailureError | null {
    let error = thrown;
    for (let depth = 0; depth < deepestCause && error instanceof Error; depth += 1) {
        if (isFailure(error) && error.reason === 'CAPABILITY_MISSING') {
            return error;
        }
        error = error.cause;
    }
    return null;
}

function plainData(data: unknown): Readonly<Record<string, unknown>> | null {
    if (typeof data !== 'object' || data === null) {
        return null;
    }
    try {
        return JSON.parse(JSON.stringify(data)) as Record<string, unknown>;
    } catch {
        return null;
    }
}
