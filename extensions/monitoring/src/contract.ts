/** What other plugins may ask of this one. Types only. */
import type { Call } from '@portico/sdk';

/** How a rule stands. */
export interface RuleAlert {
    /** Number of the rule. */
    readonly rule: number;
    /** Whether an alert of it fires now. */
    readonly firing: boolean;
    /** When the newest alert that fires began; null where none does. */
    readonly since: Date | null;
}

/** The contract of the plugin `monitoring`. */
export interface MonitoringContract {
    /** How some rules stand now, one entry each; a rule that there is not does not fire. */
    alerts(input: { readonly rules: readonly number[] }, call: Call): Promise<readonly RuleAlert[]>;
}
