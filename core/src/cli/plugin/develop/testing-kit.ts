/**
 * The conformance suite of `@portico/testing`, as far as it is used here. That package builds on this one, so it is no dependency of the core:
 * it is looked for where the core is installed, and its types are said once more.
 */
import { CommandError } from '../../command/command-error.ts';

interface Finding {
    readonly rule: string;
    readonly level: 'error' | 'warning';
    readonly where: string;
    readonly message: string;
    readonly mend: string;
}

/** What the suite found. */
export interface ConformanceReport {
    readonly plugin: string;
    readonly checked: readonly string[];
    readonly findings: readonly Finding[];
    readonly passed: boolean;
}

/** The part of `@portico/testing` that runs the conformance suite against the folder of a plugin. */
export interface Conformance {
    runConformance(folder: string, options: { readonly cycles: number }): Promise<ConformanceReport>;
}

const kit: string = '@portico/testing';

/** @throws CommandError when the kit is not installed beside this package */
export async function loadConformance(): Promise<Conformance> {
    try {
        return (await import(kit)) as Conformance;
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') {
            throw error;
        }
        throw new CommandError(`${kit} is not installed: npm install --save-dev ${kit}`, 1, { cause: error });
    }
}
