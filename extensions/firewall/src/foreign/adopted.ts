/** Rules of another program as ours. */
import type { Action, Model, Nat, Policy, Rule, Zone } from '../draft/model.ts';

/** A rule without what the draft gives it. */
export type AdoptedRule = Omit<Rule, 'id' | 'version'>;

/** What of another program has a counterpart here, and what has none. */
export interface Adopted {
    readonly policy: Partial<Policy>;
    readonly zones: readonly Omit<Zone, 'id' | 'version'>[];
    readonly rules: readonly AdoptedRule[];
    readonly nat: readonly Omit<Nat, 'id' | 'version'>[];
    /** Lines that have no counterpart, as the program writes them. */
    readonly unmatched: readonly string[];
}

/** What was adopted where there were no foreign rules. */
export const nothingAdopted: Adopted = { policy: {}, zones: [], rules: [], nat: [], unmatched: [] };

/** A rule with these conditions and no others. */
export function adoptedRule(
    rule: Pick<AdoptedRule, 'direction' | 'action'> & Partial<AdoptedRule>
): AdoptedRule {
    return {
        family: 'any',
        protocol: 'any',
        ports: [],
        services: [],
        sources: [],
        destinations: [],
        zone: null,
        interface: null,
        rate: null,
        log: false,
        comment: '',
        expiresAt: null,
        enabled: true,
        ...rule
    };
}

/** The word of another program for what becomes of a packet; null for words that have no counterpart. */
export function actionOf(word: string): Action | null {
    const actions: Readonly<Record<string, Action>> = {
        allow: 'accept',
        accept: 'accept',
        deny: 'drop',
        drop: 'drop',
        reject: 'reject'
    };
    return actions[word.toLowerCase().replaceAll('%', '')] ?? null;
}

/** What another program does, as a model that can be evaluated. */
export function adoptedModel({ policy, zones, rules, nat }: Adopted): Model {
    return {
        policy: { input: 'accept', output: 'accept', forward: 'accept', container: 'accept', ...policy },
        zones: zones.map((zone, index) => ({ ...zone, id: index + 1, version: 1 })),
        services: [],
        sets: [],
        rules: rules.map((rule, index) => ({ ...rule, id: index + 1, version: 1 })),
        nat: nat.map((each, index) => ({ ...each, id: index + 1, version: 1 }))
    };
}
