/** Says what a compose file would come to now: what is refused, what is exposed anew, and what changes. It changes nothing. */
import { compile, type Compiled, type CompiledContainer } from '../compose/compile.ts';
import { composeInvalid } from '../compose/problems.ts';
import type { ListedContainer } from '../engine/documents.ts';
import type { Inventory } from '../engine/inventory.ts';
import { digestIn } from '../images/digest.ts';
import { compareExposure, consentFor, type Exposure, type Finding } from '../policy/judge.ts';
import { consentRequired, type Policy } from '../policy/policy.ts';
import type { Ctx } from '../settings.ts';
import { hashOf, labelOf } from '../spec/spec.ts';
import { bindDigests } from './deploying/digests.ts';
import type { Digests, ServiceImage, StackSource } from './source.ts';

/** What happens to a service. */
export interface ServiceChange {
    readonly service: string;
    readonly action: 'create' | 'recreate' | 'remove' | 'keep';
    readonly because: readonly string[];
}

/** A container that a stack should have. */
export interface WantedContainer extends CompiledContainer {
    /** Changes whenever the spec does. */
    readonly hash: string;
}

/** What a compose file comes to. */
export interface StackPlan {
    readonly compiled: Compiled;
    readonly wanted: readonly WantedContainer[];
    readonly findings: readonly Finding[];
    readonly exposure: Exposure;
    readonly consent: string | null;
    readonly images: ReadonlyMap<string, ServiceImage>;
    readonly changes: readonly ServiceChange[];
    /** What the engine has of the stack, by name. */
    readonly current: ReadonlyMap<string, ListedContainer>;
}

/** What the plan of a stack is made from. */
export interface PlanInput extends StackSource {
    readonly name: string;
    readonly owner: string | null;
    /** What the revision before exposes. */
    readonly exposed: readonly Finding[];
    /** Images that a revision is bound to; without one the name says which. */
    readonly pinned?: ReadonlyMap<string, ServiceImage> | undefined;
    /** Images that the caller binds services to. */
    readonly digests?: Digests | undefined;
}

/** Makes plans, which say what a stack would run and expose. */
export class Planner {
    readonly #ctx: Ctx;
    readonly #inventory: Inventory;
    readonly #policy: Policy;

    constructor(ctx: Ctx, inventory: Inventory, policy: Policy) {
        this.#ctx = ctx;
        this.#inventory = inventory;
        this.#policy = policy;
    }

    /** The plan; faults of the file are in `compiled.errors`. */
    async plan({ name, compose, env, owner, exposed, pinned, digests }: PlanInput): Promise<StackPlan> {
        const { stackFolder } = this.#ctx.settings;
        const compiled = compile({ name, compose, env, owner, stackFolder });
        if (compiled.errors.length > 0) {
            const exposure = { added: [], removed: [] };
            return {
                compiled,
                wanted: [],
                findings: [],
                exposure,
                consent: null,
                images: new Map(),
                changes: [],
                current: new Map()
            };
        }
        const wanted = compiled.services.flatMap(({ containers }) =>
            containers.map((container) => ({ ...container, hash: hashOf(container.spec) }))
        );
        const judged = await this.#policy.resolve(wanted, name);
        const declared = this.#volumesOnly(compiled);
        const findings = await this.#policy.judge(
            [...judged, ...declared],
            `stack:${name}`,
            compiled.siblings
        );
        const unique = [...new Map(findings.map((each) => [JSON.stringify(each), each])).values()];
        const exposure = compareExposure(exposed, unique);
        const specs = judged.map(({ spec }) => spec);
        const bound =
            digests === undefined ? pinned : await bindDigests(digests, compiled.services, this.#inventory);
        const [images, listed] = await Promise.all([this.#images(compiled, bound), this.#inventory.list()]);
        const mine = listed.filter(({ Labels: labels }) => labels?.[labelOf.project] === name);
        const current = new Map(mine.map((each) => [nameOf(each), each]));
        this.#refuseTaken(wanted, listed, current);
        return {
            compiled,
            wanted,
            findings: unique,
            exposure,
            consent: consentFor(`stack:${name}`, exposure, specs),
            images,
            changes: changesOf(wanted, images, mine),
            current
        };
    }

    /** Stops a change that must not be. @throws COMPOSE_INVALID 42250, COMPOSE_UNSUPPORTED 42251, POLICY_REFUSED 42253, SPEC_CONSENT_REQUIRED 40951 */
    check(plan: StackPlan, consent: string | null): void {
        plan.compiled.refuse();
        this.#policy.refuse(plan.findings);
        if (plan.consent !== null && plan.consent !== consent) {
            throw consentRequired(viewOf(plan));
        }
    }

    /** Volumes that are declared and not mounted are made, too, so the policy sees them. */
    #volumesOnly({ services, volumes }: Compiled): readonly WantedContainer[] {
        const [first] = services.flatMap(({ containers }) => containers);
        const mounted = new Set(
            services.flatMap(({ containers }) =>
                containers.flatMap(({ spec }) => spec.mounts.map(({ source }) => source))
            )
        );
        const left = volumes.filter(({ name, external }) => !external && !mounted.has(name));
        if (first === undefined || left.length === 0) {
            return [];
        }
        const mounts = left.map(({ name, driver, options }) => ({
            type: 'volume' as const,
            source: name,
            written: name,
            target: '/',
            readOnly: false,
            propagation: '',
            tmpfsBytes: null,
            volume: { driver, options, external: false }
        }));
        const { spec } = first;
        return [{ ...first, hash: '', spec: { ...spec, ports: [], networks: [], mounts } }];
    }

    async #images(
        { services }: Compiled,
        pinned: ReadonlyMap<string, ServiceImage> | undefined
    ): Promise<ReadonlyMap<string, ServiceImage>> {
        const entries = await Promise.all(
            services.map(async ({ name, image }): Promise<[string, ServiceImage]> => {
                const bound = pinned?.get(name);
                if (bound !== undefined && bound.image === image) {
                    return [name, bound];
                }
                const found = await this.#inventory.image(image);
                return [
                    name,
                    {
                        image,
                        imageId: found?.Id ?? null,
                        digest: found === null ? null : digestIn(found, image)
                    }
                ];
            })
        );
        return new Map(entries);
    }

    /** @throws COMPOSE_INVALID 42250 where a container of another stack, or of none, has a name that is needed */
    #refuseTaken(
        wanted: readonly WantedContainer[],
        listed: readonly ListedContainer[],
        current: ReadonlyMap<string, ListedContainer>
    ): void {
        const all = new Set(listed.map(nameOf));
        const errors = wanted
            .filter(({ spec }) => all.has(spec.name) && !current.has(spec.name))
            .map(({ service, spec }) => ({
                path: `services.${service}`,
                line: null,
                message: `Another container is named ${spec.name}`
            }));
        if (errors.length > 0) {
            throw composeInvalid(errors);
        }
    }
}

/** The name of a container in a list. */
export const nameOf = ({ Names: names }: ListedContainer): string => (names[0] ?? '').replace(/^\//, '');

/** Why a container cannot stay; empty when it can. */
export function reasonsOf(
    { hash, service }: WantedContainer,
    images: ReadonlyMap<string, ServiceImage>,
    current: ListedContainer
): readonly string[] {
    const imageId = images.get(service)?.imageId;
    return [
        ...(current.Labels?.[labelOf.hash] === hash ? [] : ['spec']),
        ...(imageId === null || imageId === current.ImageID ? [] : ['image'])
    ];
}

function changesOf(
    wanted: readonly WantedContainer[],
    images: ReadonlyMap<string, ServiceImage>,
    mine: readonly ListedContainer[]
): readonly ServiceChange[] {
    const byName = new Map(mine.map((each) => [nameOf(each), each]));
    const services = [...new Set(wanted.map(({ service }) => service))];
    const changes = services.map((service): ServiceChange => {
        const because = new Set<string>();
        let action: ServiceChange['action'] = 'keep';
        for (const each of wanted.filter((container) => container.service === service)) {
            const current = byName.get(each.spec.name);
            const reasons = current === undefined ? ['absent'] : reasonsOf(each, images, current);
            reasons.forEach((reason) => because.add(reason));
            action =
                action !== 'keep' || reasons.length === 0
                    ? action
                    : current === undefined
                      ? 'create'
                      : 'recreate';
        }
        return { service, action, because: [...because] };
    });
    const gone = new Set(
        mine
            .map(({ Labels: labels }) => labels?.[labelOf.service] ?? '')
            .filter((name) => !services.includes(name))
    );
    return [
        ...changes,
        ...[...gone].map((service): ServiceChange => ({
            service,
            action: 'remove',
            because: ['not in the file']
        }))
    ];
}

/** A plan as answers show it. */
export function viewOf({ compiled, findings, exposure, consent, images, changes, wanted }: StackPlan) {
    return {
        valid: compiled.errors.length === 0,
        errors: compiled.errors.map((each) => ({ ...each })),
        warnings: [...compiled.warnings],
        services: compiled.services.map(({ name }) => name),
        images: [...images].map(([service, { image, digest }]) => ({ service, image, digest })),
        ports: wanted.flatMap(({ service, spec }) => spec.ports.map((port) => ({ service, ...port }))),
        mounts: wanted.flatMap(({ service, spec }) =>
            spec.mounts.map(({ type, source, target, readOnly }) => ({
                service,
                type,
                source,
                target,
                readOnly
            }))
        ),
        findings: findings.map((each) => ({ ...each })),
        changes: changes.map((each) => ({ ...each, because: [...each.because] })),
        exposure: {
            added: exposure.added.map((each) => ({ ...each })),
            removed: exposure.removed.map((each) => ({ ...each }))
        },
        consent
    };
}
