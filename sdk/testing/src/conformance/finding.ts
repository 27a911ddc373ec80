/** What the conformance suite finds: where, what, and how to mend it. */

/** What is looked at, in this order. */
export type Rule =
    | 'package'
    | 'manifest'
    | 'import'
    | 'start'
    | 'routes'
    | 'labels'
    | 'places'
    | 'readme'
    | 'database'
    | 'requests'
    | 'cycles'
    | 'threads';

/** One thing that a plugin does not keep to. */
export interface Finding {
    readonly rule: Rule;
    /** A warning does not fail the suite. */
    readonly level: 'error' | 'warning';
    /** A file, a route, a cycle. */
    readonly where: string;
    readonly message: string;
    readonly mend: string;
}

/** A finding that fails the suite. */
export const errorOf = (rule: Rule, where: string, message: string, mend: string): Finding => ({
    rule,
    level: 'error',
    where,
    message,
    mend
});

/** A finding that does not fail the suite. */
export const warningOf = (rule: Rule, where: string, message: string, mend: string): Finding => ({
    ...errorOf(rule, where, message, mend),
    level: 'warning'
});
