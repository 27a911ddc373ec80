/** The compiled side of the engine service: projection, table and copies for one engine, and the sites that it had to be spared. */
import type { CertificatePem, HostRow, Plan } from '../change.ts';
import { type CertificateCopies, createCertificateCopies } from '../files/copies.ts';
import type { EngineFolders } from '../files/home.ts';
import { createSiteTable, type SiteTable } from '../files/table/table.ts';
import { EngineRejected, type EngineVersion } from '../port.ts';
import type { CompileContext } from '../render/compile/context.ts';
import { engineFeatures } from '../render/features.ts';
import { createProjection, type ProjectionChange } from '../render/projection/projection.ts';
import type { EngineOptions } from '../service.ts';
import type { EngineSettings } from '../site.ts';
import type { Rows } from './draft-overlay.ts';
import { isolate } from './isolate.ts';
import { createServing, type Serving, type Staged } from './served-state.ts';

/** What the engine serves where it is not what the rows say. */
export interface ServedRows {
    /** Rows as they are served; null: no such host is. */
    readonly hosts: ReadonlyMap<number, HostRow | null>;
    /** Settings as they are served. */
    readonly settings: EngineSettings;
}

export interface EngineContext {
    readonly compileContext: CompileContext;
    readonly served: Serving;
    readonly table: SiteTable;
    /** The engine's version that all this is for. */
    readonly version: string | null;
    /** Sites that are left out because the engine refuses them, and what it says. */
    readonly excluded: Map<number, string>;
    /** Lays what is served. Once, and first. */
    stageServed(rows: Rows, waiting: ServedRows): void;
    /** Lays what waits over it. */
    stagePending(rows: Rows, waiting: ServedRows): Staged;
    /** Puts sites that were left out back in. */
    readmit(rows: Rows): Staged;
    /** Brings what is wanted, without the sites that the engine refuses if that helps. @throws EngineRejected when it does not; EngineUnavailable */
    syncAcceptable(sites: () => Iterable<HostRow>): Promise<boolean>;
}

/** Stands for the engine's folders where it cannot have any (its user is missing): nothing is ever written there. */
const nowhere: EngineFolders = {
    persistent: '/nonexistent',
    runtime: '/nonexistent',
    storage: '/nonexistent/storage',
    table: '/nonexistent/table',
    certificates: '/nonexistent/certificates',
    adminSocket: '/nonexistent/admin.sock',
    logFile: '/nonexistent/engine.log',
    outputFile: '/nonexistent/output.log',
    startFile: '/nonexistent/start.json',
    scratch: '/nonexistent/scratch',
    lastFile: '/nonexistent/last.json',
    lockFile: '/nonexistent/lock',
    pidFile: '/nonexistent/engine.pid',
    owner: { name: '', uid: -1, gid: -1, switched: false },
    panel: { uid: -1, gid: -1 }
};

/** @param home - null: the engine has no place on this machine yet */
export const createEngineContext = (
    options: EngineOptions,
    home: EngineFolders | null,
    version: EngineVersion | null,
    settings: EngineSettings,
    pems: ReadonlyMap<number, CertificatePem>
): EngineContext => {
    const folders = home ?? nowhere;
    const context: CompileContext = {
        settings,
        folders,
        features: engineFeatures(version),
        ...(options.address === undefined ? {} : { address: options.address })
    };
    const table = createSiteTable(folders);
    const serving = createServing({
        driver: options.driver,
        projection: createProjection(context),
        table,
        copies: copiesOf(options, folders),
        pem: async (id) => pems.get(id) ?? (await options.certificates.pem(id))
    });
    const excluded = new Map<number, string>();
    return {
        compileContext: context,
        served: serving,
        table,
        version: version?.text ?? null,
        excluded,
        stageServed(rows, waiting) {
            const hosts = [...rows.hosts.values()].filter((row) => !waiting.hosts.has(row.site.id));
            const others = [...waiting.hosts.values()].filter((row) => row !== null);
            serving.stage({
                sites: [...hosts, ...others].map(({ site }) => ({ id: site.id, site })),
                certificates: [...rows.certificates.values()].map((certificate) => ({
                    id: certificate.id,
                    certificate
                }))
            });
        },
        stagePending(rows, waiting) {
            return serving.stage({
                sites: [...waiting.hosts.keys()].map((id) => ({
                    id,
                    site: rows.hosts.get(id)?.site ?? null
                })),
                ...(rows.settings === waiting.settings ? {} : { settings: rows.settings })
            });
        },
        readmit(rows) {
            const sites = [...excluded.keys()].map((id) => ({ id, site: rows.hosts.get(id)?.site ?? null }));
            return serving.stage({ sites });
        },
        async syncAcceptable(sites) {
            try {
                return await serving.sync();
            } catch (error) {
                const refused =
                    error instanceof EngineRejected
                        ? await isolate(
                              serving,
                              [...sites()].map(({ site }) => site)
                          )
                        : null;
                if (refused === null) {
                    throw error;
                }

                for (const [id, message] of refused) {
                    excluded.set(id, message);
                }

                return serving.sync();
            }
        }
    };
};

/** Writes the engine's copies of certificates before anything is there that would name them. */
export const writeCopies = (options: EngineOptions, folders: EngineFolders, rows: Rows): Promise<void> =>
    copiesOf(options, folders).write(rows.certificates.values(), (id) => options.certificates.pem(id), true);

/** What of a plan the engine is concerned with, once it is laid over the rows: `settings` as they are then. */
export const projected = (plan: Plan, settings: EngineSettings): ProjectionChange => ({
    ...(plan.hosts === undefined
        ? {}
        : { sites: plan.hosts.map(({ id, row }) => ({ id, site: row?.site ?? null })) }),
    ...(plan.settings === undefined && plan.fragments === undefined ? {} : { settings }),
    ...(plan.certificates === undefined
        ? {}
        : { certificates: plan.certificates.map(({ id, certificate }) => ({ id, certificate })) })
});

const copiesOf = (options: EngineOptions, folders: EngineFolders): CertificateCopies =>
    createCertificateCopies(folders, (id, error) => {
        options.log.error('A certificate cannot be read and is not given to the engine', {
            certificate: id,
            error
        });
    });
