/** The action of a rule. */

/** What a rule does when an alert begins. */
export interface RuleAction {
    readonly route: string;
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly payload: unknown;
    readonly cooldownSeconds: number;
    readonly perDay: number;
}
