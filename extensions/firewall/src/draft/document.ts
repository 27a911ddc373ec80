/** The model as a document that can be kept and taken in again, on this machine or another one. */
import { errors, joi } from '@portico/sdk';

import { readPrefix } from '../address/interval.ts';
import { faultsOfServicePorts, refuseFaults } from './checks.ts';
import { type Model, most, type Service, tooManyElements } from './model.ts';
import { checkObject, type Kind, type Kinds } from './objects/objects.ts';
import { changedPolicy, newNat, newRule, newService, newSet, newZone } from './schema.ts';

/** The name and the version of the form. */
export const documentFormat = 'portico-firewall';
const documentVersion = 1;

const list = joi.array().max(most.rules);
/** A document in requests and answers. */
export const documentSchema = joi.object({
    format: joi.valid(documentFormat).required().label('Format'),
    version: joi.valid(documentVersion).required().label('Version'),
    policy: changedPolicy.default({}).label('Policies'),
    zones: list.items(newZone).default([]).label('Zones'),
    services: list.items(newService).default([]).label('Services'),
    sets: list
        .items(
            newSet.keys({
                elements: joi
                    .array()
                    .items(joi.string().max(100))
                    .max(most.elements)
                    .default([])
                    .label('Elements')
            })
        )
        .default([])
        .label('Sets'),
    rules: list.items(newRule).default([]).label('Rules'),
    nat: list.items(newNat).default([]).label('NAT')
});

/** A document, as its schema lets it through. */
export interface FirewallDocument {
    readonly policy: { readonly [K in keyof Model['policy']]?: Model['policy'][K] | undefined };
    readonly zones: readonly Omit<Kinds['zones'], 'id' | 'version'>[];
    readonly services: readonly Service[];
    readonly sets: readonly (Omit<Kinds['sets'], 'id' | 'version'> & {
        readonly elements: readonly string[];
    })[];
    readonly rules: readonly Omit<Kinds['rules'], 'id' | 'version'>[];
    readonly nat: readonly Omit<Kinds['nat'], 'id' | 'version'>[];
}

/** One step of an import. */
export interface PlannedStep {
    readonly action: 'add' | 'change' | 'remove' | 'keep';
    readonly kind: Kind | 'services' | 'policy';
    readonly name: string;
}

/** What an import would make, and how. */
export interface ImportPlan {
    readonly model: Model;
    readonly plan: readonly PlannedStep[];
}

/** Writes a model as a document; `elements` gives those of sets by hand. */
export function toDocument(model: Model, elements: (set: Kinds['sets']) => readonly string[]): object {
    const plain = <T extends { readonly id: number; readonly version: number }>({
        id: _,
        version: __,
        ...rest
    }: T): object => rest;
    return {
        format: documentFormat,
        version: documentVersion,
        policy: model.policy,
        zones: model.zones.map(plain),
        services: model.services,
        sets: model.sets.map((set) => ({ ...plain(set), elements: elements(set) })),
        rules: model.rules.map(plain),
        nat: model.nat.map(plain)
    };
}

/**
 * Plans an import. `merge` puts what is named like something of the draft in its place, and adds the rest; `replace` makes the draft what the
 * document says.
 *
 * @throws VALIDATION_FAILED 40001, with the path of each fault
 */
export function planImport(
    document: FirewallDocument,
    mode: 'merge' | 'replace',
    model: Model,
    allot: () => number,
    hasCountries: boolean
): ImportPlan {
    const plan: PlannedStep[] = [];
    const services = merge(
        document.services,
        model.services,
        mode,
        plan,
        'services',
        ({ name }) => name,
        ({ name, ports }) => ({ name, ports })
    );
    document.sets.forEach(({ elements }, index) =>
        refuseFaults(
            elements.flatMap((text, at) =>
                readPrefix(text) === null
                    ? [
                          {
                              path: `sets.${index}.elements.${at}`,
                              message: `${JSON.stringify(text)} is no address and no prefix`
                          }
                      ]
                    : []
            )
        )
    );
    document.services.forEach(({ ports }, index) =>
        within(`services.${index}`, () => refuseFaults(faultsOfServicePorts(ports)))
    );
    const numbered = <K extends Kind>(
        kind: K,
        nameOf: (each: Omit<Kinds[K], 'id' | 'version'>) => string
    ): readonly Kinds[K][] => {
        // A list of the document holds objects of its own kind; the compiler does not follow the key.
        const given = document[kind] as unknown as readonly Omit<Kinds[K], 'id' | 'version'>[]; // a list of a kind holds objects of that kind
        const before = model[kind] as unknown as readonly Kinds[K][]; // a list of a kind holds objects of that kind
        return merge(given, before, mode, plan, kind, nameOf, (each, known) => ({
            ...(each as Kinds[K]),
            id: known?.id ?? allot(),
            version: (known?.version ?? 0) + 1
        }));
    };
    const names = { ...model, services };
    const sets = numbered('sets', ({ name }) => name).map((set) => withoutElements(set));
    const zones = numbered('zones', ({ name }) => name);
    const whole: Model = {
        ...names,
        policy: {
            ...model.policy,
            ...Object.fromEntries(Object.entries(document.policy).filter(([, value]) => value !== undefined))
        },
        sets,
        zones,
        rules: numbered('rules', conditions),
        nat: numbered('nat', conditions)
    };
    refuseTooMany(whole, document);
    return { model: checked(whole, hasCountries), plan };
}

/** Refuses more of a kind than there may be, and more elements. @throws VALIDATION_FAILED 40001 */
function refuseTooMany(whole: Model, { sets }: FirewallDocument): void {
    const kinds = ['zones', 'services', 'sets', 'rules', 'nat'] as const;
    const elements = sets.reduce((sum, each) => sum + each.elements.length, 0);
    refuseFaults([
        ...kinds
            .filter((kind) => whole[kind].length > most[kind])
            .map((kind) => ({
                path: kind,
                message: `There would be ${whole[kind].length}, and ${most[kind]} are possible`
            })),
        ...(elements > most.elements ? [tooManyElements('sets')] : [])
    ]);
}

/** Puts given things in the place of those of the same name, and adds the others. */
function merge<G, T>(
    given: readonly G[],
    before: readonly T[],
    mode: 'merge' | 'replace',
    plan: PlannedStep[],
    kind: PlannedStep['kind'],
    nameOf: (each: G) => string,
    make: (each: G, known: T | undefined) => T
): readonly T[] {
    const byName = new Map(before.map((each) => [nameOf(each as unknown as G), each])); // both have the fields of a name
    const step = (action: PlannedStep['action'], name: string): void =>
        void plan.push({ action, kind, name: name.slice(0, 200) });
    const made = new Map<T, T>();
    const all = given.map((each) => {
        const known = byName.get(nameOf(each));
        const isFirst = known !== undefined && !made.has(known);
        step(!isFirst ? 'add' : kind === 'rules' || kind === 'nat' ? 'keep' : 'change', nameOf(each));
        const result = make(each, isFirst ? known : undefined);
        if (isFirst) {
            made.set(known, result);
        }
        return { result, isFirst };
    });
    if (mode === 'replace') {
        before
            .filter((each) => !made.has(each))
            .forEach((each) => step('remove', nameOf(each as unknown as G))); // a list of a kind holds objects of that kind
        return all.map(({ result }) => result);
    }
    return [
        ...before.map((each) => made.get(each) ?? each),
        ...all.filter(({ isFirst }) => !isFirst).map(({ result }) => result)
    ];
}

/** A rule or translation has no name: it is the same when all of its fields are. */
function conditions(each: object): string {
    const { id: _, version: __, ...rest } = each as Record<string, unknown>;
    return JSON.stringify(Object.entries(rest).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function withoutElements(set: Kinds['sets']): Kinds['sets'] {
    const { elements: _, ...rest } = set as Kinds['sets'] & { readonly elements?: unknown };
    return rest;
}

/** Checks each object against the whole, and gives the one spelling. */
function checked(model: Model, hasCountries: boolean): Model {
    // A list of a kind holds objects of that kind; the compiler does not follow the key.
    const objectsOf = <K extends Kind>(kind: K): readonly Kinds[K][] =>
        model[kind] as unknown as readonly Kinds[K][];
    const all = <K extends Kind>(kind: K): readonly Kinds[K][] =>
        objectsOf(kind).map((each, index) =>
            within(`${kind}.${index}`, () => checkObject(kind, each, model, hasCountries))
        );
    for (const kind of ['zones', 'sets'] as const) {
        const names = model[kind].map(({ name }) => name);
        const twice = names.findIndex((name, index) => names.indexOf(name) !== index);
        refuseFaults(
            twice < 0 ? [] : [{ path: `${kind}.${twice}.name`, message: `${names[twice]} is there twice` }]
        );
    }
    return { ...model, zones: all('zones'), sets: all('sets'), rules: all('rules'), nat: all('nat') };
}

/** Puts a path before those of the faults. @throws VALIDATION_FAILED 40001 */
function within<T>(path: string, work: () => T): T {
    try {
        return work();
    } catch (error) {
        const { data } = error as {
            readonly data?: {
                readonly errors?: readonly { readonly path: string; readonly message: string }[];
            };
        };
        throw data?.errors === undefined
            ? error
            : errors.invalid(
                  data.errors.map((each) => ({
                      ...each,
                      path: each.path === '' ? path : `${path}.${each.path}`
                  }))
              );
    }
}
