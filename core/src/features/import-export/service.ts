/**
 * The whole panel as one document, and back. An import is planned like any other change, in the engine's queue, and written in the one
 * transaction that goes with it: everything or nothing, also across a crash.
 */
import { isFailure } from '@portico/sdk';

import type { Draft, Engine, Outcome, Plan } from '../../engine/change.ts';
import type {
    Following,
    Ground,
    ImportMode,
    Incoming,
    SecretSink,
    Section,
    Step
} from '../../engine/section.ts';
import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail, type Invalid, invalid } from '../../platform/errors.ts';
import { type Foreign, foreignSource } from './caddy/foreign.ts';
import { type ExportDocument, format, formatVersion, readDocument } from './document/document.ts';
import { open, seal, type SecretMap, Unsealed } from './document/vault.ts';
import { bounded, type ImportResult, type SectionResult, sectionResult, summary } from './plan.ts';
import type { Given } from './plugins/contributions.ts';
import type { Restorer } from './plugins/restorer.ts';
import { dataPath } from './plugins/section.ts';
import type { Recorder, Tasks, TaskView } from './ports.ts';

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

export interface ExportRequest {
    /** Default: all that the caller may read. */
    readonly sections?: readonly string[] | undefined;
    readonly passphrase?: string | undefined;
    /** Rather none than one without a plugin's own data. */
    readonly complete?: boolean | undefined;
}

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

/** More faults than this help nobody. */
const mostFaults = 200;
const resource = 'panel';

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
        const sections = chosen(this.#options.sections, names, call);
        if (passphrase !== undefined && !call.actor.fresh) {
            throw fail.STEP_UP_REQUIRED();
        }
        for (const { permissions } of sections) {
            require(call, permissions.read);
            if (passphrase !== undefined) {
                require(call, permissions.secrets);
            }
        }
        for (const section of sections) {
            await section.ready?.();
        }
        const { given, leftOut } = await this.#contributed(sections, request, call.signal);
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
        const notes = leftOut.map(({ name, why }) => `${name}: ${why}`);
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
                        return merged(steps);
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
                        entryOf(call, {
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
            require(call, permissions.read);
            if (!request.dryRun) {
                require(call, permissions.write);
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
                            : { get: (path) => own.get(path), json: (path) => plainOf(own.get(path)) }
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

    async #apply(prepared: Prepared, call: Call, run: Following): Promise<ImportResult> {
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
                entryOf(call, { status: 200, code: 0, after: summary(result) })
            );
            return result;
        };
        const { actor } = call;
        // What is nothing to the engine does not wait for it.
        const result = isForEngine(steps)
            ? (
                  await this.#engine.change({
                      by: {
                          id: actor.id,
                          username: actor.username,
                          tokenId: actor.tokenId,
                          plugin: actor.plugin,
                          requestId: call.id
                      },
                      plan: (draft) => {
                          steps = this.#planAll(prepared, draft, call);
                          return merged(steps);
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
            return { given: new Map(), leftOut: [] };
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

function plainOf(text: string | undefined): unknown {
    try {
        return text === undefined ? undefined : (JSON.parse(text) as unknown);
    } catch {
        return null;
    }
}

class Faults {
    readonly list: Invalid[] = [];

    add(path: string, message: string): void {
        if (this.list.length < mostFaults) {
            this.list.push({ path, message });
        }
    }

    throw(): void {
        if (this.list.length > 0) {
            throw invalid(...this.list);
        }
    }
}

/** @throws VALIDATION_FAILED for a section that there is not */
function chosen(
    all: readonly Section[],
    names: readonly string[] | undefined,
    call: Call
): readonly Section[] {
    if (names === undefined) {
        return all.filter(({ permissions }) => call.actor.can(permissions.read));
    }
    const unknown = names.flatMap((name, at) =>
        all.some((section) => section.name === name)
            ? []
            : [
                  {
                      path: `sections.${at}`,
                      message: `There is no section ${name}; there are ${all.map((section) => section.name).join(', ')}`
                  }
              ]
    );
    if (unknown.length > 0) {
        throw invalid(...unknown);
    }
    const wanted = new Set(names);
    all.filter(({ name }) => names.includes(name)).forEach(({ needs = [] }) =>
        needs.forEach((name) => wanted.add(name))
    );
    return all.filter(({ name }) => wanted.has(name));
}

function sinkOf(secrets: Map<string, string>): SecretSink {
    return {
        put(path, secret) {
            secrets.set(path, secret);
        }
    };
}

/** @throws VALIDATION_FAILED for a passphrase that is missing or wrong, and for a document that somebody changed */
async function openSecrets(
    { secrets, ...document }: ExportDocument,
    passphrase: string | undefined
): Promise<SecretMap | null> {
    if (secrets === undefined) {
        return null;
    }
    if (passphrase === undefined) {
        throw invalid({ path: 'passphrase', message: 'passphrase is required: the document has secrets' });
    }
    try {
        return await open(secrets, passphrase, document);
    } catch (error) {
        if (!(error instanceof Unsealed)) {
            throw error;
        }
        throw invalid(
            error.why === 'passphrase'
                ? { path: 'passphrase', message: 'passphrase is wrong' }
                : { path: 'document', message: 'document is damaged, or was changed after it was sealed' }
        );
    }
}

/** @throws FORBIDDEN */
function require(call: Call, permission: string): void {
    if (!call.actor.can(permission)) {
        throw fail.FORBIDDEN({ permission });
    }
}

function isForEngine(steps: ReadonlyMap<string, Step>): boolean {
    const { hosts = [], certificates = [], settings } = merged(steps);
    return hosts.length > 0 || certificates.length > 0 || settings !== undefined;
}

function merged(steps: ReadonlyMap<string, Step>): Plan {
    const plans = [...steps.values()].flatMap(({ engine }) => engine ?? []);
    const settings = plans.findLast((plan) => plan.settings !== undefined)?.settings;
    return {
        hosts: plans.flatMap(({ hosts = [] }) => hosts),
        certificates: plans.flatMap(({ certificates = [] }) => certificates),
        ...(settings === undefined ? {} : { settings })
    };
}

function entryOf(
    { id, actor, ip, userAgent }: Call,
    {
        status,
        code,
        after
    }: { readonly status: number | null; readonly code: number; readonly after: unknown }
) {
    return {
        actor: { id: actor.id, username: actor.username, tokenId: actor.tokenId, plugin: actor.plugin },
        action: 'import',
        resource,
        resourceId: null,
        after,
        outcome: code === 0 ? 'success' : 'failure',
        status,
        code,
        ip,
        userAgent,
        requestId: id
    } as const;
}
