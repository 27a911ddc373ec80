/** What the conformance suite finds: where, what, and how to mend it. */

/** What is looked at, in this order. */
export type Rule = 'package' | 'manifest' | 'import' | 'start' | 'routes' | 'readme' | 'cycles' | 'threads';

export interface Finding {
    readonly rule: Rule;
    /** A warning does not fail the suite. */
    readonly level: 'error' | 'warning';
    /** A file, a route, a cycle. */
    readonly where: string;
    readonly message: string;
    readonly mend: string;
}

/** One finding of a rule. */
export const wrong = (rule: Rule, where: string, message: string, mend: string): Finding => ({
    rule,
    level: 'error',
    where,
    message,
    mend
});
/** One that is not yet a failure. */
export const doubtful = (rule: Rule, where: string, message: string, mend: string): Finding => ({
    rule,
    level: 'warning',
    where,
    message,
    mend
});
