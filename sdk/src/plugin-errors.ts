/** Failures of the core that any plugin may need. A plugin declares its own with `defineErrors`. */
import { createFailure, type FailureError } from './errors.ts';

const make = (
    code: number,
    reason: string,
    message: string,
    data: Readonly<Record<string, unknown>> | null = null
): FailureError => createFailure({ code, reason, message, data });

/** Makes failures that clients know from the core. Throw them. */
export const errors = {
    /** 40400: nothing of that name, or nothing that the caller may know of. */
    notFound: (message = 'There is nothing of that name here'): FailureError =>
        make(40400, 'NOT_FOUND', message),
    /** 40300: the caller lacks a permission. */
    forbidden: (permission: string): FailureError =>
        make(40300, 'FORBIDDEN', `The permission ${permission} is required`, { permission }),
    /** 40900: a field that must be unique is taken; `message` says it to people where that is not all. */
    conflict: (field: string, message = `The ${field} is taken`): FailureError =>
        make(40900, 'CONFLICT', message, { field }),
    /** 40901: something depends on it, is at work on it, or keeps it from what is asked. `by` is what does; `message` says it to people where that is not all. */
    inUse: (by: unknown, message = 'Something depends on it'): FailureError =>
        make(40901, 'IN_USE', message, { by }),
    /** 41200: the object is newer than what the caller saw. */
    stale: (version: string | number): FailureError =>
        make(41200, 'VERSION_STALE', `The object has changed: its version is ${version}`, { version }),
    /** 40001: what a schema cannot say; `path` is dotted, as `rules.0.port`. */
    invalid: (faults: readonly { readonly path: string; readonly message: string }[]): FailureError =>
        make(40001, 'VALIDATION_FAILED', 'The request does not have the documented shape', {
            errors: faults
        }),
    /** 50302: a program is absent; `install` is the command that brings it. */
    toolMissing: (tool: string, install: string): FailureError =>
        make(50302, 'TOOL_MISSING', `${tool} is not installed`, { tool, install }),
    /** 50700: no space left, and nothing was changed. */
    storageFull: (): FailureError =>
        make(50700, 'STORAGE_FULL', 'There is no space left; nothing was changed')
};
