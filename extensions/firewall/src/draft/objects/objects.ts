/** Rules, zones, sets and translations of the draft: made, changed and removed alike. */
import { errors, requireVersion } from '@portico/sdk';

import type { Ctx } from '../../settings.ts';
import { faultsOfNat, faultsOfRule, faultsOfSet, faultsOfZone, refuseFaults } from '../checks.ts';
import type { Draft } from '../draft.ts';
import { type AddressSet, type Model, most, type Nat, type Rule, type Zone } from '../model.ts';
import { normalNat, normalRule, normalSet, normalZone } from '../normal.ts';

/** The lists of the model whose objects have an id. */
export interface Kinds {
    readonly rules: Rule;
    readonly zones: Zone;
    readonly sets: AddressSet;
    readonly nat: Nat;
}
/** The name of such a list. */
export type Kind = keyof Kinds;

/** What is sent of an object; `position` only of rules. */
export type Sent<K extends Kind> = {
    readonly [P in Exclude<keyof Kinds[K], 'id' | 'version'>]?: Kinds[K][P] | undefined;
} & { readonly id?: unknown; readonly version?: unknown; readonly position?: number | undefined };

/** An object before and after a change. */
export interface ObjectChange<T> {
    readonly before: T;
    readonly after: T;
}

const titles: Readonly<Record<Kind, string>> = {
    rules: 'rule',
    zones: 'zone',
    sets: 'set',
    nat: 'translation'
};

/** Changes the objects of the draft. */
export class DraftObjects {
    readonly #ctx: Ctx;
    readonly #draft: Draft;

    constructor(ctx: Ctx, draft: Draft) {
        this.#ctx = ctx;
        this.#draft = draft;
    }

    /** One object. @throws NOT_FOUND 40400 */
    async get<K extends Kind>(kind: K, id: number): Promise<Kinds[K]> {
        return find(await this.#draft.model(), kind, id);
    }

    /** Makes an object. @throws VALIDATION_FAILED 40001, CONFLICT 40900 when the name is taken */
    create<K extends Kind>(kind: K, { position, ...sent }: Sent<K>): Promise<Kinds[K]> {
        return this.#draft.change((model, allot) => {
            if (model[kind].length >= most[kind]) {
                refuseFaults([
                    { path: '', message: `There are ${most[kind]} already, and no more are possible` }
                ]);
            }
            // The schema made sure of every field but these two.
            const made = { ...sent, id: allot(), version: 1 } as unknown as Kinds[K];
            const normal = this.#checked(kind, made, model);
            return { model: place(model, kind, normal, position ?? Infinity), result: normal };
        });
    }

    /** Changes what is sent of an object. @throws NOT_FOUND 40400, VERSION_STALE 41200, VALIDATION_FAILED 40001, IN_USE 40901 */
    update<K extends Kind>(
        kind: K,
        id: number,
        sent: Sent<K>,
        ifMatch: string | null
    ): Promise<ObjectChange<Kinds[K]>> {
        return this.#draft.change((model) => {
            const { position, version, id: _, ...fields } = sent;
            const before = find(model, kind, id);
            requireVersion(before, ifMatch, version as number | undefined);
            const given = Object.fromEntries(
                Object.entries(fields).filter(([, value]) => value !== undefined)
            );
            const merged = { ...before, ...given, version: before.version + 1 };
            refuseOtherMeaning(model, kind, before, merged);
            const after = this.#checked(kind, merged, model);
            const at = position ?? model[kind].findIndex((each) => each.id === id) + 1;
            return { model: place(without(model, kind, id), kind, after, at), result: { before, after } };
        });
    }

    /** Removes an object. @throws NOT_FOUND 40400, VERSION_STALE 41200, IN_USE 40901 */
    remove<K extends Kind>(kind: K, id: number, ifMatch: string | null): Promise<Kinds[K]> {
        return this.#draft.change((model) => {
            const before = find(model, kind, id);
            requireVersion(before, ifMatch);
            refuseUsed(model, kind, before);
            return { model: without(model, kind, id), result: before };
        });
    }

    /** Puts the rules in this order. @throws VALIDATION_FAILED 40001 unless each id of the draft is there once */
    order(ids: readonly number[]): Promise<readonly Rule[]> {
        return this.#draft.change((model) => {
            const byId = new Map(model.rules.map((rule) => [rule.id, rule]));
            const rules = ids.flatMap((id) => byId.get(id) ?? []);
            if (
                new Set(ids).size !== model.rules.length ||
                rules.length !== model.rules.length ||
                ids.length !== rules.length
            ) {
                refuseFaults([{ path: 'ids', message: 'ids holds the id of each rule of the draft, once' }]);
            }
            return { model: { ...model, rules }, result: rules };
        });
    }

    /** An object in its one spelling. @throws VALIDATION_FAILED 40001, CONFLICT 40900 */
    #checked<K extends Kind>(kind: K, object: Kinds[K], model: Model): Kinds[K] {
        const hasCountries = this.#ctx.settings.countrySource !== undefined;
        const normal = checkObject(kind, object, model, hasCountries);
        refuseNameTaken(model, kind, normal);
        return normal;
    }
}

/** Checks one object against a model, and gives its one spelling. @throws VALIDATION_FAILED 40001 */
export function checkObject<K extends Kind>(
    kind: K,
    object: Kinds[K],
    model: Model,
    hasCountries: boolean
): Kinds[K] {
    const checks: { readonly [P in Kind]: (each: Kinds[P]) => Kinds[P] } = {
        rules: (rule) => {
            refuseFaults(faultsOfRule(rule, model));
            return normalRule(rule);
        },
        zones: (zone) => {
            refuseFaults(faultsOfZone(zone, model));
            return normalZone(zone);
        },
        sets: (set) => {
            refuseFaults(faultsOfSet(set, hasCountries));
            return normalSet(set);
        },
        nat: (nat) => {
            refuseFaults(faultsOfNat(nat, model));
            return normalNat(nat);
        }
    };
    return checks[kind](object);
}

function find<K extends Kind>(model: Model, kind: K, id: number): Kinds[K] {
    // A list of the model holds objects of its own kind; the compiler does not follow the key.
    const found = (model[kind] as unknown as readonly Kinds[K][]).find((each) => each.id === id);
    if (found === undefined) {
        throw errors.notFound(`There is no ${titles[kind]} of that id`);
    }
    return found;
}

function place<K extends Kind>(model: Model, kind: K, object: Kinds[K], position: number): Model {
    const list: unknown[] = [...model[kind]];
    list.splice(Math.min(position - 1, list.length), 0, object);
    return { ...model, [kind]: list };
}

function without(model: Model, kind: Kind, id: number): Model {
    return { ...model, [kind]: model[kind].filter((each) => each.id !== id) };
}

function nameOf(object: Kinds[Kind]): string | null {
    return 'name' in object ? object.name : null;
}

function refuseNameTaken(model: Model, kind: Kind, object: Kinds[Kind]): void {
    const name = nameOf(object);
    if (name !== null && model[kind].some((each) => each.id !== object.id && nameOf(each) === name)) {
        throw errors.conflict('name');
    }
}

/** What names a zone or a set, as a text for people. */
export function usersOf(model: Model, kind: 'zones' | 'sets', name: string): readonly string[] {
    const at = `@${name}`;
    return kind === 'zones'
        ? model.rules.filter((rule) => rule.zone === name).map(({ id }) => `rule ${id}`)
        : [
              ...model.rules
                  .filter(({ sources, destinations }) => sources.includes(at) || destinations.includes(at))
                  .map(({ id }) => `rule ${id}`),
              ...model.zones.filter(({ sources }) => sources.includes(at)).map((zone) => `zone ${zone.name}`),
              ...model.nat.filter(({ sources }) => sources.includes(at)).map(({ id }) => `translation ${id}`)
          ];
}

/** @throws IN_USE 40901 for a zone or set that is in use */
function refuseUsed(model: Model, kind: Kind, object: Kinds[Kind]): void {
    const name = nameOf(object);
    const users = name === null || (kind !== 'zones' && kind !== 'sets') ? [] : usersOf(model, kind, name);
    if (users.length > 0) {
        throw errors.inUse(users);
    }
}

/** A name that rules use stays, and so does the family of a set: its elements would mean something else. */
function refuseOtherMeaning(model: Model, kind: Kind, before: Kinds[Kind], after: Kinds[Kind]): void {
    if (nameOf(before) !== nameOf(after)) {
        refuseUsed(model, kind, before);
    }
    if ('everyHours' in before && 'everyHours' in after && before.family !== after.family) {
        refuseFaults([{ path: 'family', message: 'The family of a set stays; make another set' }]);
    }
}
