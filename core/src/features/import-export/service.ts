/**
 * Exports the whole panel as one document, and imports one. An import is planned in the engine's queue like any other change and written in one
 * transaction: all of it or nothing, also across a crash.
 */
import { isFailure } from '@portico/sdk';

import type { Draft, Engine, Outcome } from '../../engine/change.ts';
import type { Ground, ImportMode, Incoming, SecretSink, Section, Step } from '../../engine/section.ts';
import { authorOf, type Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail, invalid } from '../../platform/errors.ts';
import type { TaskView } from '../../server/http/answer/task-view.ts';
import { type Foreign, foreignSource } from './caddy/foreign.ts';
import { type ExportDocument, format, formatVersion, readDocument } from './document/document.ts';
import { seal } from './document/vault.ts';
import { chooseSections, Faults, openSecrets, parseSecret, requirePermission } from './input.ts';
import {
    auditEntryOf,
    bounded,
    cutAfterCommit,
    type ImportResult,
    isForEngine,
    mergePlans,
    type SectionResult,
    sectionResult,
    summary
} from './plan.ts';
import type { Given } from './plugins/contributions.ts';
import type { Restorer } from './plugins/restorer.ts';
import { dataPath } from './plugins/section.ts';
import type { Recorder, TaskRun, Tasks } from './ports.ts';

/** What {@link ImportExport} works with. */
export interface ImportExportOptions {
    /** In the order in which they are planned and written. */
    readonly sections: readonly Section[];
    readonly engine: Engine;
    readonly db: Database;
    readonly tasks: Tasks;
    readonly recorder: Recorder;
    readonly clock: Clock;
    /** Of the panel. */
    readonly version: string;
    readonly foreign: Foreign;
    readonly restorer: Pick<Restorer, 'hold' | 'started' | 'close'>;
    /** What plugins give of their own data; with `isSealed` false only what there would be is told. */
    contributions(options: { readonly isSealed: boolean; readonly signal: AbortSignal }): Promise<Given>;
}

/** What an export contains. */
export interface ExportRequest {
    /** Default: all that the caller may read. */
    readonly sections?: readonly string[] | undefined;
    readonly passphrase?: string | undefined;
    /** Rather none than one without a plugin's own data. */
    readonly complete?: boolean | undefined;
}

/** A document and how it is imported. */
export interface ImportRequest {
    readonly document: Readonly<Record<string, unknown>>;
    readonly passphrase?: string | undefined;
    readonly mode: ImportMode;
    readonly dryRun: boolean;
    /** Installs plugins that are missing; default false. */
    readonly installPlugins?: boolean | undefined;
}

/** A document that was read, on its way into the panel. */
interface Prepared {
    readonly mode: ImportMode;
    readonly secrets: boolean;
    readonly incoming: ReadonlyMap<string, Incoming>;
    readonly notes: readonly string[];
    /** What a translation says of single hosts. */
    readonly hostNotes: SectionResult['notes'];
}

const resource = 'panel';

/** The service behind `/api/import-export`. */
export class ImportExport {
    readonly #options: ImportExportOptions;
    readonly #engine: Engine;
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #known: Map<string, Section>;

    constructor(options: ImportExportOptions) {
        this.#options = options;
        this.#engine = options.engine;
        this.#db = options.db;
        this.#clock = options.clock;
        this.#known = new Map(options.sections.map((section) => [section.name, section]));
    }

    /** @throws VALIDATION_FAILED, FORBIDDEN; STEP_UP_REQUIRED with a passphrase; PLUGIN_FAILED when it is to be complete and is not */
    async export(
        request: ExportRequest,
        call: Call
    ): Promise<ExportDocument & { readonly generator: string }> {
        const { sections: names, passphrase } = request;
        const sections = chooseSections(this.#options.sections, names, call);
        if (passphrase !== undefined && !call.actor.fresh) {
            throw fail.STEP_UP_REQUIRED();
        }
        for (const { permissions } of sections) {
            requirePermission(call, permissions.read);
            if (passphrase !== undefined) {
                requirePermission(call, permissions.secrets);
            }
        }
        for (const section of sections) {
            await section.ready?.();
        }
        const { given, leftOut, neverGiven } = await this.#contributed(sections, request, call.signal);
        const secrets = new Map<string, Map<string, string>>();
        const collected = sections.map(({ name, collect }) => {
            if (passphrase === undefined) {
                return [name, collect(null)] as const;
            }
            const own = new Map<string, string>();
            secrets.set(name, own);
            return [name, collect(sinkOf(own))] as const;
        });
        given.forEach((contribution, plugin) =>
            secrets.get('plugins')?.set(dataPath(plugin), JSON.stringify(contribution))
        );
        const notes = [...leftOut, ...neverGiven].map(({ name, why }) => `${name}: ${why}`);
        const plain = {
            format,
            formatVersion,
            createdAt: new Date(this.#clock.now()).toISOString(),
            generator: `portico ${this.#options.version}`,
            sections: Object.fromEntries(collected),
            ...(notes.length === 0 ? {} : { notes })
        } as const;
        // What leaves is on record before it does.
        await this.#db.write((tx) =>
            call.complete(tx, {
                action: 'export',
                resource,
                after: { sections: sections.map(({ name }) => name), secrets: passphrase !== undefined },
                reply: null
            })
        );
        return passphrase === undefined
            ? plain
            : { ...plain, secrets: await seal(secrets, passphrase, plain) };
    }

    /** What an import would do. @throws what the import would throw */
    async plan(request: ImportRequest, call: Call): Promise<ImportResult> {
        const prepared = await this.#prepare(request, call);
        let steps = this.#planAll(prepared, this.#engine.draft(), call);
        const reload =
            isForEngine(steps) &&
            (
                await this.#engine.tryChange({
                    plan: (draft) => {
                        steps = this.#planAll(prepared, draft, call);
                        return mergePlans(steps);
                    }
                })
            ).reloaded;
        return this.#resultOf(prepared, steps, { dryRun: true, reload, applied: null });
    }

    /** @throws BAD_REQUEST, VALIDATION_FAILED, FORBIDDEN, STEP_UP_REQUIRED, IN_USE, before anything is begun */
    async import(request: ImportRequest, call: Call): Promise<TaskView> {
        const prepared = await this.#prepare(request, call);
        const expected = this.#resultOf(prepared, this.#planAll(prepared, this.#engine.draft(), call), {
            dryRun: false,
            reload: false,
            applied: null
        });
        return this.#options.tasks.start({
            kind: 'import',
            title: `Import (${request.mode})`,
            access: 'import:run',
            call,
            key: 'import',
            audit: { action: 'import', resource, after: summary(expected) },
            work: async (run) => {
                run.log('The document was read and found right');
                const release = this.#options.restorer.hold();
                try {
                    return bounded(await this.#apply(prepared, call, run));
                } catch (error) {
                    await this.#options.recorder.recordAlone(
                        auditEntryOf(call, {
                            status: null,
                            code: isFailure(error) ? error.code : 50000,
                            after: summary(expected)
                        })
                    );
                    throw error;
                } finally {
                    release();
                }
            }
        });
    }

    /** A plugin runs: data that waits for it comes back. */
    started(plugin: string): void {
        this.#options.restorer.started(plugin);
    }

    /** Leaves what is under way to the next start. */
    close(): Promise<void> {
        return this.#options.restorer.close();
    }

    async #prepare(request: ImportRequest, call: Call): Promise<Prepared> {
        if (!request.dryRun && !call.actor.fresh) {
            throw fail.STEP_UP_REQUIRED();
        }
        const foreign = await foreignSource(request.document, this.#options.foreign, call.signal);
        const document = foreign?.document ?? readDocument(request.document, new Set(this.#known.keys()));
        const sections = this.#options.sections.filter(({ name }) => name in document.sections);
        for (const { permissions } of sections) {
            requirePermission(call, permissions.read);
            if (!request.dryRun) {
                requirePermission(call, permissions.write);
            }
        }
        const opened = foreign?.secrets ?? (await openSecrets(document, request.passphrase));
        const faults = new Faults();
        const incoming = new Map<string, Incoming>();
        for (const section of sections) {
            const own = opened?.get(section.name) ?? new Map<string, string>();
            incoming.set(
                section.name,
                await section.read(document.sections[section.name], {
                    call,
                    mode: request.mode,
                    dryRun: request.dryRun,
                    installPlugins: request.installPlugins === true,
                    faults,
                    path: `document.sections.${section.name}`,
                    secrets:
                        opened === null
                            ? null
                            : { get: (path) => own.get(path), json: (path) => parseSecret(own.get(path)) }
                })
            );
        }
        faults.throw();
        return {
            mode: request.mode,
            secrets: opened !== null,
            incoming,
            notes: foreign?.notes ?? (document.notes ?? []).map((note) => `Of the document: ${note}`),
            hostNotes: foreign?.hostNotes ?? []
        };
    }

    /** Every section against the rows as they are. */
    #planAll({ incoming, mode }: Prepared, draft: Draft, call: Call): ReadonlyMap<string, Step> {
        const ground: Ground = {
            draft,
            mode,
            call,
            dnsProviderIds: null,
            certificateIds: null,
            certificates: draft.certificates,
            settings: draft.settings,
            roles: null,
            sections: new Set(incoming.keys())
        };
        return new Map([...incoming].map(([name, section]) => [name, section.plan(ground)]));
    }

    async #guard({ incoming }: Prepared, steps: ReadonlyMap<string, Step>): Promise<void> {
        for (const [name, section] of incoming) {
            const step = steps.get(name);
            if (step !== undefined) {
                await section.guard?.(step);
            }
        }
    }

    #resultOf(
        prepared: Prepared,
        steps: ReadonlyMap<string, Step>,
        rest: Pick<ImportResult, 'dryRun' | 'reload' | 'applied'>
    ): ImportResult {
        const sections = Object.fromEntries(
            [...steps].map(([name, { entries }]): [string, SectionResult] => [
                name,
                sectionResult(entries, name === 'hosts' ? prepared.hostNotes : [])
            ])
        );
        return {
            mode: prepared.mode,
            secrets: prepared.secrets,
            sections,
            plugins: [...steps.values()].flatMap(({ outcomes = [] }) => outcomes),
            notes: prepared.notes,
            ...rest
        };
    }

    async #apply(prepared: Prepared, call: Call, run: TaskRun): Promise<ImportResult> {
        let steps = this.#planAll(prepared, this.#engine.draft(), call);
        await this.#guard(prepared, steps);
        const commit = async (
            tx: Transaction,
            outcome: Pick<Outcome, 'applied' | 'reloaded'>
        ): Promise<ImportResult> => {
            for (const step of steps.values()) {
                await step.commit?.(tx);
            }
            const result = this.#resultOf(prepared, steps, {
                dryRun: false,
                reload: outcome.reloaded,
                applied: outcome.applied
            });
            await this.#options.recorder.record(
                tx,
                auditEntryOf(call, { status: 200, code: 0, after: summary(result) })
            );
            await run.recordResult(tx, bounded(cutAfterCommit(result)));
            return result;
        };
        // What is nothing to the engine does not wait for it.
        const result = isForEngine(steps)
            ? (
                  await this.#engine.change({
                      by: authorOf(call),
                      plan: (draft) => {
                          steps = this.#planAll(prepared, draft, call);
                          return mergePlans(steps);
                      },
                      commit
                  })
              ).value
            : await this.#db.write((tx) => commit(tx, { applied: true, reloaded: false }));
        steps.forEach((step) => step.done?.());
        run.log('Everything is written');
        const followed = [];
        for (const step of steps.values()) {
            followed.push(...((await step.follow?.(run)) ?? []));
        }
        return { ...result, plugins: followed };
    }

    /** @throws PLUGIN_FAILED, VALIDATION_FAILED when all of it is wanted, and something is missing */
    async #contributed(
        sections: readonly Section[],
        { passphrase, complete }: ExportRequest,
        signal: AbortSignal
    ): Promise<Given> {
        if (!sections.some(({ name }) => name === 'plugins')) {
            return { given: new Map(), leftOut: [], neverGiven: [] };
        }
        const result = await this.#options.contributions({ isSealed: passphrase !== undefined, signal });
        const [first] = complete === true ? result.leftOut : [];
        if (first !== undefined) {
            throw passphrase === undefined
                ? invalid({
                      path: 'passphrase',
                      message: `passphrase is required: ${first.name} has data of its own, which is only exported sealed`
                  })
                : fail.PLUGIN_FAILED(
                      { plugin: first.name, stage: 'running', cause: 'EXPORT_FAILED' },
                      { message: `The export would not be complete: ${first.name}: ${first.why}` }
                  );
        }
        return result;
    }
}

function sinkOf(secrets: Map<string, string>): SecretSink {
    return {
        put(path, secret) {
            secrets.set(path, secret);
        }
    };
}
