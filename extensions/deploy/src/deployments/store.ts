/** Projects and deployments in the plugin's database. */
import { errors, type PageOf, pages } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import {
    DeploymentEntity,
    type DeploymentRow,
    type DeploymentState,
    ProjectEntity,
    type ProjectRow,
    type Trigger,
    VariablesEntity
} from '../entities.ts';
import { uniqueName } from '../errors.ts';
import type { ProjectConfig, ProjectInput } from '../projects/schema.ts';
import type { Ctx } from '../settings.ts';
import { firstSteps } from './steps.ts';

/** A project with what an admin says of it. */
export interface Project extends Omit<ProjectRow, 'config'> {
    readonly config: ProjectConfig;
}

/** What a new deployment begins with. */
export interface NewDeployment {
    readonly projectId: number;
    readonly trigger: Trigger;
    readonly ref: string | null;
    readonly commit: string | null;
    readonly from: number | null;
    readonly clearCache: boolean;
}

/** Fields of a deployment that a change may set. */
export type DeploymentChange = Partial<Omit<DeploymentRow, 'id' | 'projectId' | 'number'>>;
/** Fields of a project that a change may set beside what an admin says of it. */
export type ProjectChange = Partial<
    Pick<ProjectRow, 'live' | 'hostId' | 'stopped' | 'hookKey' | 'hookSecret'>
>;

/** States in which a deployment is under way. */
export const activeStates: readonly DeploymentState[] = ['building', 'releasing', 'canary'];
/** States of deployments whose release does not serve any more, or never did. */
const overStates: readonly DeploymentState[] = ['retired', 'failed', 'cancelled'];

const emptyProject = { live: null, hostId: null, hookKey: null, hookSecret: null, previewOf: null };
const emptyDeployment = {
    ref: null,
    commit: null,
    message: null,
    author: null,
    reason: null,
    from: null,
    artifactSha256: null,
    artifactBytes: null,
    plan: null,
    port: null,
    startedAt: null,
    switchedAt: null,
    finishedAt: null,
    taskId: null,
    provenance: null
};

/** Reads and writes projects and deployments. */
export class Store {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** All projects of admins, by name: those that stand for previews are not among them. */
    async projects(): Promise<readonly Project[]> {
        return (await this.everyProject()).filter(({ previewOf }) => previewOf === null);
    }

    /** All projects, by name, also those that stand for previews. */
    async everyProject(): Promise<readonly Project[]> {
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, ProjectEntity, {}, { orderBy: { name: 'asc' } })
        );
        return rows.map(projectOf);
    }

    /** One project of an admin. What stands for a preview is none: it is changed by its preview alone. @throws NOT_FOUND 40400 */
    async project(id: number): Promise<Project> {
        const found = await this.anyProject(id);
        if (found.previewOf !== null) {
            throw errors.notFound(`There is no project ${id}`);
        }
        return found;
    }

    /** One project, also one that stands for a preview. @throws NOT_FOUND 40400 */
    async anyProject(id: number): Promise<Project> {
        const row = await this.#ctx.db.read((em) => findRow(em, ProjectEntity, id));
        if (row === null) {
            throw errors.notFound(`There is no project ${id}`);
        }
        return projectOf(row);
    }

    /** The project that a hook names; null for an unknown key. */
    async projectOfHook(hookKey: string): Promise<Project | null> {
        const row = await this.#ctx.db.read((em) => findRow(em, ProjectEntity, { hookKey }));
        return row === null ? null : projectOf(row);
    }

    /** Adds a project. @throws CONFLICT 40900 when the name is taken */
    async addProject(
        { name, ...config }: ProjectInput,
        preview: { readonly of: number; readonly fork: boolean } | null = null
    ): Promise<Project> {
        const row = await uniqueName(() =>
            this.#ctx.db.write(async (em) => {
                const entity = em.create(ProjectEntity, {
                    version: 1,
                    name,
                    config: JSON.stringify(config),
                    live: null,
                    hostId: null,
                    stopped: false,
                    lastNumber: 0,
                    hookKey: null,
                    hookSecret: null,
                    previewOf: preview?.of ?? null,
                    fork: preview?.fork ?? false,
                    createdAt: Date.now()
                });
                await em.flush();
                return { ...entity } as ProjectRow;
            })
        );
        return projectOf(row);
    }

    /** Replaces what an admin says of a project. @throws VERSION_STALE 41200, CONFLICT 40900 */
    async configure(id: number, { name, ...config }: ProjectInput, version: number): Promise<Project> {
        const row = await uniqueName(() =>
            this.#ctx.db.write(async (em) => {
                const entity = await em.findOne(ProjectEntity, id);
                if (entity === null) {
                    throw errors.notFound(`There is no project ${id}`);
                }
                if (entity.version !== version) {
                    throw errors.stale(entity.version);
                }
                em.assign(entity, { name, config: JSON.stringify(config), version: version + 1 });
                await em.flush();
                return { ...entity } as ProjectRow;
            })
        );
        return projectOf(row);
    }

    /** Changes a project without counting its version up: users did not change what they said of it. */
    async changeProject(id: number, change: ProjectChange): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeUpdate(ProjectEntity, { id }, change));
    }

    /** Forgets a project with all that belongs to it. */
    async removeProject(id: number): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            await em.nativeDelete(VariablesEntity, { owner: `project:${id}` });
            await em.nativeDelete(DeploymentEntity, { projectId: id });
            await em.nativeDelete(ProjectEntity, { id });
        });
    }

    /**
     * Adds a deployment, and lets it supersede those of its project that wait. Gives the new one and those.
     *
     * @param most - deployments that may wait; null is given when there are as many
     */
    async addDeployment(
        { projectId, ...fields }: NewDeployment,
        most: number
    ): Promise<{ readonly added: DeploymentRow; readonly superseded: readonly number[] } | null> {
        return this.#ctx.db.write(async (em) => {
            const waiting = await em.find(DeploymentEntity, { state: 'queued' });
            const mine = waiting.filter((each) => each.projectId === projectId);
            if (waiting.length - mine.length >= most) {
                return null;
            }
            const now = Date.now();
            for (const each of mine) {
                em.assign(each, { state: 'superseded', finishedAt: now });
            }
            const project = await em.findOneOrFail(ProjectEntity, projectId);
            em.assign(project, { lastNumber: project.lastNumber + 1 });
            const entity = em.create(DeploymentEntity, {
                ...fields,
                projectId,
                number: project.lastNumber,
                state: 'queued',
                kept: false,
                steps: JSON.stringify(firstSteps()),
                queuedAt: now
            });
            await em.flush();
            return { added: whole(entity), superseded: mine.map(({ id }) => id) };
        });
    }

    /** One deployment. @throws NOT_FOUND 40400 */
    async deployment(id: number): Promise<DeploymentRow> {
        const row = await this.#ctx.db.read((em) => findRow(em, DeploymentEntity, id));
        if (row === null) {
            throw errors.notFound(`There is no deployment ${id}`);
        }
        return whole(row);
    }

    /** Deployments in some states, oldest first. */
    async inStates(states: readonly DeploymentState[]): Promise<readonly DeploymentRow[]> {
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, DeploymentEntity, { state: { $in: [...states] } }, { orderBy: { id: 'asc' } })
        );
        return rows.map(whole);
    }

    /** Deployments that are over, and whose release has its port still: what it runs could not be ended. Of one project, or of all. */
    async unended(projectId?: number): Promise<readonly DeploymentRow[]> {
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, DeploymentEntity, {
                ...(projectId === undefined ? {} : { projectId }),
                state: { $in: [...overStates] },
                port: { $ne: null }
            })
        );
        return rows.map(whole);
    }

    /** Deployments of a project whose release is kept, newest first. */
    async kept(projectId: number): Promise<readonly DeploymentRow[]> {
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, DeploymentEntity, { projectId, kept: true }, { orderBy: { id: 'desc' } })
        );
        return rows.map(whole);
    }

    /** Deployments of all projects whose release is kept. */
    async allKept(): Promise<readonly DeploymentRow[]> {
        const rows = await this.#ctx.db.read((em) => findRows(em, DeploymentEntity, { kept: true }));
        return rows.map(whole);
    }

    /** All deployments of a project. */
    async all(projectId: number): Promise<readonly DeploymentRow[]> {
        const rows = await this.#ctx.db.read((em) => findRows(em, DeploymentEntity, { projectId }));
        return rows.map(whole);
    }

    /** A page of the deployments of a project, newest first. */
    async page(
        projectId: number,
        query: {
            readonly limit: number;
            readonly cursor?: string | undefined;
            readonly state?: DeploymentState | undefined;
            readonly trigger?: Trigger | undefined;
        }
    ): Promise<PageOf<DeploymentRow>> {
        const { limit, state, trigger } = query;
        const after = pages.afterNumber(query);
        const where = {
            projectId,
            ...(state === undefined ? {} : { state }),
            ...(trigger === undefined ? {} : { trigger })
        };
        const { rows, total } = await this.#ctx.db.read(async (em) => ({
            rows: await em.find(DeploymentEntity, after === null ? where : { ...where, id: { $lt: after } }, {
                orderBy: { id: 'desc' },
                limit: limit + 1
            }),
            total: await em.count(DeploymentEntity, where)
        }));
        return pages.read(rows.map(whole), limit, ({ id }) => id, total);
    }

    /** Changes a deployment. */
    async change(id: number, change: DeploymentChange): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeUpdate(DeploymentEntity, { id }, change));
    }

    /** Makes a deployment the one that serves; the one before is retired in the same transaction. */
    async makeLive(projectId: number, id: number, hostId: number | null): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            const project = await em.findOneOrFail(ProjectEntity, projectId);
            if (project.live !== undefined && project.live !== null && project.live !== id) {
                await em.nativeUpdate(DeploymentEntity, { id: project.live }, { state: 'retired' });
            }
            await em.nativeUpdate(DeploymentEntity, { id }, { state: 'live', switchedAt: Date.now() });
            em.assign(project, { live: id, hostId, stopped: false });
        });
    }
}

/** A column without a value may be left out of a row; it reads as null. */
function whole(row: object): DeploymentRow {
    return { ...emptyDeployment, ...definedOf(row) } as DeploymentRow;
}

function projectOf({ config, ...row }: ProjectRow): Project {
    return {
        ...emptyProject,
        ...definedOf(row),
        config: JSON.parse(config) as ProjectConfig
    } as Project;
}

function definedOf(row: object): object {
    return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));
}
