/** Variables of projects and of groups: sealed at rest, and shown without secrets. */
import { errors } from '@portico/sdk';

import type { Project } from '../deployments/store.ts';
import { GroupEntity, VariablesEntity } from '../entities.ts';
import type { Ctx } from '../settings.ts';

/** One environment variable, and where it is set. */
export interface Variable {
    readonly name: string;
    readonly value: string;
    readonly secret: boolean;
    readonly build: boolean;
    readonly run: boolean;
    readonly preview: boolean;
}

/** A variable as it is said: without a value, a secret one keeps its own. */
export interface VariableInput extends Partial<Omit<Variable, 'name' | 'value'>> {
    readonly name: string;
    readonly value?: string | null | undefined;
}

/** A variable as it is shown. */
export type VariableView = Omit<Variable, 'value'> & { readonly value: string | null; readonly set: true };

/** Whose variables they are. */
export type Owner = `project:${number}` | `group:${number}`;

/** Names that change how programs are found and loaded, or that the plugin sets itself. */
const refusedNames = /^(?:PATH|HOME|NODE_OPTIONS|LD_.*|PORTICO_.*|DEPLOY_.*|PORT)$/;

/** Reads and writes variables. */
export class Variables {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** The variables of an owner, with their values. */
    async read(owner: Owner): Promise<readonly Variable[]> {
        const row = await this.#ctx.db.read((em) => em.findOne(VariablesEntity, { owner }));
        return row === null ? [] : (JSON.parse(await this.#ctx.secrets.open(row.sealed)) as Variable[]);
    }

    /** Replaces the variables of an owner whole. @throws VALIDATION_FAILED 40001 */
    async replace(owner: Owner, given: readonly VariableInput[]): Promise<readonly Variable[]> {
        const vars = merged(given, await this.read(owner));
        await this.#store(owner, vars);
        return vars;
    }

    /** What is kept when the variables of an owner are replaced; null: the owner is new. It changes nothing. @throws VALIDATION_FAILED 40001 */
    async sealed(owner: Owner | null, given: readonly VariableInput[]): Promise<string> {
        return this.#seal(merged(given, owner === null ? [] : await this.read(owner)));
    }

    /** Copies all variables of one project to another, secrets too. */
    async clone(from: Owner, to: Owner): Promise<readonly Variable[]> {
        const vars = await this.read(from);
        await this.#store(to, vars);
        return vars;
    }

    /** What a project's programs get: those of its groups in their order, and over them its own. */
    async effective(projectId: number, groups: readonly number[]): Promise<readonly Variable[]> {
        const all = new Map<string, Variable>();
        const owners: Owner[] = [...groups.map((id): Owner => `group:${id}`), `project:${projectId}`];
        for (const owner of owners) {
            for (const each of await this.read(owner)) {
                all.set(each.name, each);
            }
        }
        return [...all.values()];
    }

    /** What programs of a project get. A preview gets what is meant for previews, and of a fork no secret. */
    async ofProject({ id, previewOf, fork, config }: Project): Promise<readonly Variable[]> {
        const all = await this.effective(previewOf ?? id, config.envGroups);
        return previewOf === null ? all : all.filter(({ preview, secret }) => preview && !(fork && secret));
    }

    /** Refuses groups that there are not. @throws VALIDATION_FAILED 40001 */
    async checkGroups(groups: readonly number[]): Promise<void> {
        const known = await this.#ctx.db.read((em) => em.find(GroupEntity, { id: { $in: [...groups] } }));
        const missing = groups.findIndex((id) => !known.some((each) => each.id === id));
        if (missing !== -1) {
            throw errors.invalid([{ path: `envGroups.${missing}`, message: 'There is no such group' }]);
        }
    }

    async #store(owner: Owner, vars: readonly Variable[]): Promise<void> {
        const sealed = await this.#seal(vars);
        await this.#ctx.db.write(async (em) => {
            await em.upsert(VariablesEntity, { owner, sealed });
        });
    }

    #seal(vars: readonly Variable[]): Promise<string> {
        return this.#ctx.secrets.seal(JSON.stringify(vars));
    }
}

/** Variables after a change; a secret without a value keeps the one of before. @throws VALIDATION_FAILED 40001 */
function merged(given: readonly VariableInput[], kept: readonly Variable[]): readonly Variable[] {
    const before = new Map(kept.map((each) => [each.name, each]));
    const faults: { path: string; message: string }[] = [];
    const vars = given.map(({ value, ...said }, at): Variable => {
        // A change has no defaults of its own.
        const rest = { secret: false, build: true, run: true, preview: true, ...said };
        if (refusedNames.test(rest.name)) {
            faults.push({ path: `vars.${at}.name`, message: `${rest.name} is not a project's to set` });
        }
        const known = rest.secret ? before.get(rest.name)?.value : undefined;
        if ((value === undefined || value === null) && known === undefined) {
            faults.push({ path: `vars.${at}.value`, message: 'There is no value that could be kept' });
        }
        return { ...rest, value: value ?? known ?? '' };
    });
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
    return vars;
}

/** Variables without the values of secrets. */
export function variableViews(vars: readonly Variable[]): VariableView[] {
    return vars.map(({ value, ...rest }) => ({ ...rest, value: rest.secret ? null : value, set: true }));
}

/** The environment that variables make. */
export function environmentOf(
    vars: readonly Variable[],
    use: 'build' | 'run'
): Readonly<Record<string, string>> {
    return Object.fromEntries(vars.filter((each) => each[use]).map(({ name, value }) => [name, value]));
}
