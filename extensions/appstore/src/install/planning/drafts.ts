/** Reads what is asked of an install, a change or an update, and holds it against the app. */
import { type Actor, errors } from '@portico/sdk';

import { type Catalogue, isSigned, keyIdOf, type OfferedApp, sourceState } from '../../apps/catalogue.ts';
import type { AppDocument } from '../../catalogue/app-document.ts';
import { fillForm, type FormValues, type GivenValue } from '../../catalogue/form.ts';
import { inLanguage } from '../../catalogue/texts.ts';
import type { InstalledRow, LeftoverRow } from '../../entities.ts';
import { fail } from '../../errors.ts';
import type { Machine } from '../../machine.ts';
import type { Ctx } from '../../settings.ts';
import { accepts } from '../../updates/versions.ts';
import type { InstalledStore, Revision } from '../store.ts';
import type { Target } from '../trial.ts';
import { addressOf, type Layout, type Limits, type Published } from './layout.ts';
import type { AppPlan, Planner } from './planner.ts';

/** What an install is asked for. */
export interface InstallInput {
    readonly source: string;
    readonly app: string;
    readonly version?: string | undefined;
    readonly name?: string | undefined;
    readonly values: Readonly<Record<string, GivenValue>>;
    readonly domain?: string | null | undefined;
    readonly ssl: boolean;
    readonly sslMode?: string | null | undefined;
    readonly publish: readonly Published[];
    readonly limits: Readonly<Record<string, Limits>>;
    readonly reuseData: boolean;
    readonly acknowledgeUnsigned: boolean;
}

/** What a change may name; what is left out stays. */
export interface ChangeInput {
    readonly values?: Readonly<Record<string, GivenValue>> | undefined;
    readonly domain?: string | null | undefined;
    readonly publish?: readonly Published[] | undefined;
    readonly limits?: Readonly<Record<string, Limits>> | undefined;
}

/** An app as it would be, judged. */
export interface Draft {
    readonly name: string;
    readonly source: string;
    readonly app: string;
    readonly keyId: string | null;
    readonly document: AppDocument;
    readonly documentHash: string;
    readonly values: FormValues;
    readonly plan: AppPlan;
    readonly leftover: LeftoverRow | null;
}

/** Makes the draft of an install or update, before anything is changed. */
export class Drafts {
    readonly #ctx: Ctx;
    readonly #catalogue: Catalogue;
    readonly #planner: Planner;
    readonly #store: InstalledStore;
    readonly #machine: Machine;

    constructor(
        ctx: Ctx,
        parts: {
            readonly catalogue: Catalogue;
            readonly planner: Planner;
            readonly store: InstalledStore;
            readonly machine: Machine;
        }
    ) {
        this.#ctx = ctx;
        this.#catalogue = parts.catalogue;
        this.#planner = parts.planner;
        this.#store = parts.store;
        this.#machine = parts.machine;
    }

    /**
     * A new app.
     *
     * @throws NOT_FOUND 40400, VALIDATION_FAILED 40001, UNSIGNED_NOT_ACCEPTED 40952, ARCHITECTURE 40953, PORT_TAKEN 40954, CONFLICT 40900,
     * INDEX_INVALID 42250, DIGEST_MISMATCH 42252, POLICY_REFUSED 42253
     */
    async install(input: InstallInput, actor: Actor): Promise<Draft> {
        const offered = await this.#catalogue.get(input.source, input.app);
        const document = await this.#installable(offered, input);
        const leftover = await this.#leftover(input, offered);
        const name = input.name ?? (leftover?.name || (await this.#freeName(input.app)));
        if ((await this.#store.find(name)) !== null) {
            throw errors.conflict('name');
        }
        const kept = leftover === null ? {} : await this.#openValues(leftover.values);
        const values = fill(document, input.values, kept);
        const reserved = await this.#store.reservedPorts();
        const layout: Layout = {
            port: leftover?.port ?? (await this.#planner.freePort(reserved)),
            ports: {},
            publish: input.publish,
            limits: input.limits,
            domain: input.domain ?? null,
            ssl: input.ssl,
            sslMode: input.sslMode ?? null
        };
        const plan = await this.#planner.plan(
            {
                ...{ name, key: offered.key, keyId: keyIdOf(offered.source), document, values, layout },
                ...{ isSigned: isSigned(offered.source), pinned: {}, exposed: null }
            },
            reserved,
            actor
        );
        await this.#planner.check(plan, new Set());
        return {
            ...{ name, source: input.source, app: input.app, keyId: keyIdOf(offered.source), document },
            ...{ documentHash: offered.row.document ?? '', values, plan, leftover }
        };
    }

    /** The same app with other values, ports or limits; or with another document, which is an update. */
    async change(
        row: InstalledRow,
        input: ChangeInput,
        { actor, offered }: { readonly actor: Actor | null; readonly offered?: OfferedApp | undefined }
    ): Promise<Draft> {
        const before = await this.#store.revision(row.name, row.revision);
        const document =
            offered === undefined ? before.document : await this.#updatable(row, before, offered);
        const documentHash = offered?.row.document ?? before.documentHash;
        const values = fill(document, input.values ?? {}, before.values);
        const layout: Layout = {
            ...before.layout,
            publish: input.publish ?? before.layout.publish,
            limits: input.limits ?? before.layout.limits,
            domain: input.domain === undefined ? before.layout.domain : input.domain
        };
        const plan = await this.plan(
            row,
            { ...before, document, values, layout },
            {
                actor,
                exposed: before,
                pinned: offered === undefined
            }
        );
        await this.#planner.check(plan, heldBy(before));
        const { name, source, app, keyId } = row;
        return { name, source, app, keyId, document, documentHash, values, plan, leftover: null };
    }

    /** A revision that was, as it would be now. */
    async revision(row: InstalledRow, revision: number, actor: Actor | null): Promise<Draft> {
        const wanted = await this.#store.revision(row.name, revision);
        const before = await this.#store.revision(row.name, row.revision);
        const plan = await this.plan(row, wanted, { actor, exposed: before, pinned: true });
        const { document, documentHash, values } = wanted;
        const { name, source, app, keyId } = row;
        return { name, source, app, keyId, document, documentHash, values, plan, leftover: null };
    }

    /** Plans a revision of an installed app. `pinned`: by the digests that it ran with. */
    plan(
        row: InstalledRow,
        { document, values, layout, digests }: Pick<Revision, 'document' | 'values' | 'layout' | 'digests'>,
        options: { readonly actor: Actor | null; readonly exposed: Revision | null; readonly pinned: boolean }
    ): Promise<AppPlan> {
        const { name, source, app, keyId } = row;
        return this.#planner.plan(
            {
                ...{ name, key: `${source}/${app}`, keyId, document, values, layout },
                isSigned: keyId !== null,
                pinned: options.pinned ? digests : {},
                exposed: options.exposed?.exposure ?? null
            },
            new Set(),
            options.actor ?? undefined
        );
    }

    /** What is deployed for a draft. */
    target({ name, document, plan }: Pick<Draft, 'name' | 'document' | 'plan'>): Target {
        const title = inLanguage(document.title, this.#ctx.settings.language);
        const { compose, env, digests, stackConsent, layout } = plan;
        return { name, title, main: document.main, compose, env, digests, stackConsent, layout };
    }

    async #installable(offered: OfferedApp, input: InstallInput): Promise<AppDocument> {
        const { source, row } = offered;
        const document = await this.#catalogue.document(offered);
        if (document === null) {
            throw fail.IMPORT_UNSUPPORTED({ why: row.why ?? 'unknown', keys: [] });
        }
        if (input.version !== undefined && input.version !== row.version) {
            const message = `The source has version ${row.version} now, and not ${input.version}`;
            throw errors.invalid([{ path: 'version', message }]);
        }
        this.refuseSource(offered);
        if (!isSigned(source) && !source.acceptUnsigned) {
            throw fail.UNSIGNED_NOT_ACCEPTED(null, {
                message: `The source ${source.name} has no signatures, and is not accepted without: set its \`acceptUnsigned\``
            });
        }
        if (!isSigned(source) && !input.acknowledgeUnsigned) {
            throw fail.UNSIGNED_NOT_ACCEPTED();
        }
        await this.#refuseArchitecture(offered);
        return document;
    }

    /** @throws ARCHITECTURE 40953 */
    async #refuseArchitecture({ about }: OfferedApp): Promise<void> {
        const architecture = await this.#planner.architecture();
        if (about.architectures.length > 0 && !about.architectures.includes(architecture)) {
            throw fail.ARCHITECTURE({ architecture });
        }
    }

    /** Nothing is installed or updated from a catalogue that has expired, or a source that is off. @throws INDEX_INVALID 42250 */
    refuseSource({ source }: OfferedApp): void {
        if (sourceState(source, this.#machine.now()) === 'expired') {
            throw fail.INDEX_INVALID({ why: 'it has expired: sync the source' });
        }
        if (!source.enabled) {
            throw errors.inUse(source.name, `The source ${source.name} is disabled: enable it first`);
        }
    }

    async #updatable(row: InstalledRow, before: Revision, offered: OfferedApp): Promise<AppDocument> {
        this.refuseSource(offered);
        if (keyIdOf(offered.source) !== row.keyId) {
            throw fail.SIGNATURE_INVALID({ why: `the app belongs to the key ${row.keyId ?? 'none'}` });
        }
        const document = await this.#catalogue.document(offered);
        if (document === null || document.main === undefined) {
            throw fail.IMPORT_UNSUPPORTED({ why: offered.row.why ?? 'unknown', keys: [] });
        }
        if (before.version === document.version && before.documentHash === offered.row.document) {
            throw errors.invalid([{ path: 'version', message: `${document.version} is installed already` }]);
        }
        if (!accepts(document.from, before.version)) {
            const message = `${document.version} updates only from ${document.from}`;
            throw errors.invalid([{ path: 'version', message }]);
        }
        await this.#refuseArchitecture(offered);
        return document;
    }

    /** The data that an install takes up. @throws VALIDATION_FAILED 40001, IN_USE 40901 */
    async #leftover(
        { name, app, reuseData }: InstallInput,
        { source }: OfferedApp
    ): Promise<LeftoverRow | null> {
        const leftover = await this.#store.leftover(name ?? app);
        if (!reuseData) {
            if (leftover !== null && name !== undefined) {
                throw errors.inUse(
                    name,
                    'An app of this name left data: send "reuseData": true to take them up, remove them, or take another name'
                );
            }
            return null;
        }
        const fits =
            leftover?.source === source.name && leftover.app === app && leftover.keyId === keyIdOf(source);
        if (leftover === null || !fits) {
            throw errors.invalid([{ path: 'reuseData', message: 'This app left no data under this name' }]);
        }
        return leftover;
    }

    async #freeName(app: string): Promise<string> {
        const taken = new Set([
            ...(await this.#store.list()).map(({ name }) => name),
            ...(await this.#store.keptData()).map(({ name }) => name)
        ]);
        const base = app.slice(0, 36);
        let name = base;
        for (let count = 2; taken.has(name); count += 1) {
            name = `${base}-${count}`;
        }
        return name;
    }

    async #openValues(sealed: string): Promise<FormValues> {
        return JSON.parse(await this.#ctx.secrets.open(sealed)) as FormValues;
    }
}

/** Values of a form. @throws VALIDATION_FAILED 40001 with the paths `values.NAME` */
function fill(
    { form }: AppDocument,
    given: Readonly<Record<string, GivenValue>>,
    kept: FormValues
): FormValues {
    const { values, faults } = fillForm(form, given, kept);
    if (faults.length > 0) {
        throw errors.invalid(faults.map(({ path, message }) => ({ path, message: `${path}: ${message}` })));
    }
    return values;
}

/** Addresses that the app itself listens on. */
function heldBy({ layout, exposure }: Revision): ReadonlySet<string> {
    const own = [layout.port, ...Object.values(layout.ports)].map((port) => addressOf({ port }));
    const published = exposure.ports.flatMap((text) => / on (\S+:\d+)$/.exec(text)?.[1] ?? []);
    return new Set([...own, ...published]);
}
