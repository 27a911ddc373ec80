/** Everything that is compiled for one version of the engine: projection, table and certificate copies. */
import type { CertificatePem, HostRow, Plan } from '../change.ts';
import { CertificateCopies } from '../files/copies.ts';
import type { EngineFolders } from '../files/home.ts';
import { SiteTable } from '../files/table/table.ts';
import { EngineRejected, type EngineVersion } from '../port.ts';
import type { CompileContext } from '../render/compile/context.ts';
import { engineFeatures } from '../render/features.ts';
import { Projection, type ProjectionChange } from '../render/projection/projection.ts';
import type { EngineOptions } from '../service.ts';
import type { EngineSettings } from '../site.ts';
import type { Rows } from './draft-overlay.ts';
import { isolate } from './isolate.ts';
import { ServedState, type Staged } from './served-state.ts';

/** What the engine serves where it differs from the rows. */
export interface ServedRows {
    /** Rows as they are served, by host id; null: the engine serves no such host. */
    readonly hosts: ReadonlyMap<number, HostRow | null>;
    readonly settings: EngineSettings;
}

/** Stands for the engine's folders where it cannot have any (its user is missing). Nothing is ever written there. */
const noFolders: EngineFolders = {
    persistent: '/nonexistent',
    runtime: '/nonexistent',
    storage: '/nonexistent/storage',
    restored: '/nonexistent/restored',
    table: '/nonexistent/table',
    certificates: '/nonexistent/certificates',
    adminSocket: '/nonexistent/admin.sock',
    logFile: '/nonexistent/engine.log',
    accessLogFile: '/nonexistent/access.log',
    outputFile: '/nonexistent/output.log',
    startFile: '/nonexistent/start.json',
    originFile: '/nonexistent/origin',
    scratch: '/nonexistent/scratch',
    lastFile: '/nonexistent/last.json',
    lockFile: '/nonexistent/lock',
    pidFile: '/nonexistent/engine.pid',
    owner: { name: '', uid: -1, gid: -1, switched: false },
    panel: { uid: -1, gid: -1 }
};

/** What an engine context is made for. */
export interface EngineContextOptions {
    readonly engine: EngineOptions;
    /** Null: the engine has no folders on this machine yet. */
    readonly folders: EngineFolders | null;
    readonly version: EngineVersion | null;
    readonly settings: EngineSettings;
    /** PEM texts of certificates that are not committed yet, by id. */
    readonly pems: ReadonlyMap<number, CertificatePem>;
}

/** Projection, table and served state for one engine version, and the sites that this engine refuses. */
export class EngineContext {
    readonly compileContext: CompileContext;
    readonly served: ServedState;
    readonly table: SiteTable;
    /** The engine version that all this is for, as text. */
    readonly version: string | null;
    /** Ids of sites that are left out because the engine refuses them, with its message. */
    readonly excluded = new Map<number, string>();

    constructor({ engine, folders: home, version, settings, pems }: EngineContextOptions) {
        const folders = home ?? noFolders;
        this.compileContext = {
            settings,
            folders,
            features: engineFeatures(version),
            ...(engine.address === undefined ? {} : { address: engine.address })
        };
        this.table = new SiteTable(folders);
        this.served = new ServedState({
            driver: engine.driver,
            projection: new Projection(this.compileContext),
            table: this.table,
            copies: copiesOf(engine, folders),
            pem: async (id) => pems.get(id) ?? (await engine.certificates.pem(id))
        });
        this.version = version?.text ?? null;
    }

    /** Stages what the engine serves. Must be called once, before anything else is staged. */
    stageServed(rows: Rows, served: ServedRows): void {
        const hosts = [...rows.hosts.values()].filter((row) => !served.hosts.has(row.site.id));
        const others = [...served.hosts.values()].filter((row) => row !== null);
        this.served.stage({
            sites: [...hosts, ...others].map(({ site }) => ({ id: site.id, site })),
            certificates: [...rows.certificates.values()].map((certificate) => ({
                id: certificate.id,
                certificate
            }))
        });
    }

    /** Stages the changes that wait, on top of what is served. */
    stagePending(rows: Rows, served: ServedRows): Staged {
        return this.served.stage({
            sites: [...served.hosts.keys()].map((id) => ({ id, site: rows.hosts.get(id)?.site ?? null })),
            ...(rows.settings === served.settings ? {} : { settings: rows.settings })
        });
    }

    /** Stages the sites again that were left out. */
    readmit(rows: Rows): Staged {
        const sites = [...this.excluded.keys()].map((id) => ({ id, site: rows.hosts.get(id)?.site ?? null }));
        return this.served.stage({ sites });
    }

    /**
     * Syncs the engine. If it refuses, the sites that it refuses are left out and the rest is synced.
     * @returns whether a configuration was loaded
     * @throws EngineRejected when the sites are not the cause; EngineUnavailable
     */
    async syncAcceptable(rows: () => Iterable<HostRow>): Promise<boolean> {
        try {
            return await this.served.sync();
        } catch (error) {
            const refused =
                error instanceof EngineRejected
                    ? await isolate(
                          this.served,
                          Array.from(rows(), ({ site }) => site)
                      )
                    : null;
            if (refused === null) {
                throw error;
            }

            for (const [id, message] of refused) {
                this.excluded.set(id, message);
            }

            return this.served.sync();
        }
    }
}

/** Writes the engine's copies of all certificates, before a configuration names them. */
export const writeCopies = (options: EngineOptions, folders: EngineFolders, rows: Rows): Promise<void> =>
    copiesOf(options, folders).write(rows.certificates.values(), (id) => options.certificates.pem(id), true);

/** The part of a plan that the projection needs. @param settings - as they are with the plan */
export const projectionChangeOf = (plan: Plan, settings: EngineSettings): ProjectionChange => ({
    ...(plan.hosts === undefined
        ? {}
        : { sites: plan.hosts.map(({ id, row }) => ({ id, site: row?.site ?? null })) }),
    ...(plan.settings === undefined && plan.fragments === undefined ? {} : { settings }),
    ...(plan.certificates === undefined
        ? {}
        : { certificates: plan.certificates.map(({ id, certificate }) => ({ id, certificate })) })
});

const copiesOf = (options: EngineOptions, folders: EngineFolders): CertificateCopies =>
    new CertificateCopies(folders, (id, error) => {
        options.log.error('A certificate cannot be read and is not given to the engine', {
            certificate: id,
            error
        });
    });
