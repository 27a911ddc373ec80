/** Updates: which wait, what they change, and which are made by themselves. */
import { type Actor, isFailure } from '@portico/sdk';

import { type Catalogue, isSigned, keyIdOf, type OfferedApp } from '../apps/catalogue.ts';
import type { AppDocument } from '../catalogue/app-document.ts';
import { safeHtml } from '../catalogue/html.ts';
import { inLanguage } from '../catalogue/texts.ts';
import type { InstalledRow } from '../entities.ts';
import type { Apps } from '../install/apps.ts';
import type { Draft, Drafts } from '../install/planning/drafts.ts';
import type { ExposureDifference } from '../install/planning/exposure.ts';
import type { InstalledStore } from '../install/store.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import { type AutoUpdate, isInWindow, isNewer, isWithin } from './versions.ts';

/** An update that waits. */
export interface WaitingUpdate {
    readonly name: string;
    readonly from: string;
    readonly to: string;
    /** HTML, from the version after the one that is installed. */
    readonly changelog: string;
    /** Null while it cannot be planned; `why` says what is wrong. */
    readonly diff: ExposureDifference | null;
    readonly needsConsent: boolean;
    /** It is made by itself, in the window. */
    readonly auto: boolean;
    /** Why it is not. */
    readonly why: string | null;
}

const pollMs = 500;

/** Finds newer versions of installed apps, and tells of each once. */
export class Updates {
    readonly #ctx: Ctx;
    readonly #catalogue: Catalogue;
    readonly #store: InstalledStore;
    readonly #drafts: Drafts;
    readonly #apps: Apps;
    readonly #machine: Machine;
    /** `name version` of what was told of. */
    readonly #told = new Set<string>();

    constructor(
        ctx: Ctx,
        parts: {
            readonly catalogue: Catalogue;
            readonly store: InstalledStore;
            readonly drafts: Drafts;
            readonly apps: Apps;
            readonly machine: Machine;
        }
    ) {
        this.#ctx = ctx;
        this.#catalogue = parts.catalogue;
        this.#store = parts.store;
        this.#drafts = parts.drafts;
        this.#apps = parts.apps;
        this.#machine = parts.machine;
    }

    /** The version that waits for an app; null when there is none, or only one of another key. */
    async waiting({ name, source, app, keyId, revision }: InstalledRow): Promise<OfferedApp | null> {
        const offered = revision === 0 ? null : await this.#catalogue.find(source, app);
        if (offered?.row.document == null || keyIdOf(offered.source) !== keyId) {
            return null;
        }
        const [current] = await this.#store.history(name);
        const from = current?.version ?? '';
        const isUpdate = isNewer(from, offered.row.version);
        const isOther = !isSigned(offered.source) && current?.document !== offered.row.document;
        return isUpdate || (isOther && from === offered.row.version) ? offered : null;
    }

    /** All updates that wait, by the names of their apps. */
    async list(language: string | undefined, actor: Actor): Promise<readonly WaitingUpdate[]> {
        const found: WaitingUpdate[] = [];
        for (const row of await this.#store.list()) {
            const offered = await this.waiting(row);
            if (offered !== null) {
                found.push(await this.#view(row, offered, { language, actor }));
            }
        }
        return found;
    }

    /** Tells of updates that wait, and makes those that an app takes by itself, one after the other. */
    async automatic(signal: AbortSignal): Promise<void> {
        for (const row of await this.#store.list()) {
            const offered = await this.waiting(row);
            if (offered === null || signal.aborted) {
                continue;
            }
            const view = await this.#view(row, offered, { language: undefined, actor: null });
            await this.#tell(view);
            if (view.auto && isInWindow(this.#ctx.settings.autoUpdateWindow, this.#machine.minuteOfDay())) {
                await this.#make(view, signal);
            }
        }
    }

    async #make({ name, from, to }: WaitingUpdate, signal: AbortSignal): Promise<void> {
        try {
            await this.#apps.update(name, { version: to, backup: true }, null);
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            this.#ctx.log.warn('An update was not begun', { app: name, to, error: error.message });
            return;
        }
        // One at a time: the next begins when this one has ended.
        for (;;) {
            await this.#machine.wait(pollMs, signal);
            const row = await this.#store.find(name);
            if (row === null || row.operation === null) {
                break;
            }
        }
        const row = await this.#store.find(name);
        const [current] = row === null ? [] : await this.#store.history(name);
        if (current?.version === to) {
            await this.#ctx.notify({
                event: 'updated',
                severity: 'info',
                title: `${name} was updated from ${from} to ${to}`,
                data: { app: name, from, to }
            });
        }
    }

    async #tell({ name, from, to, auto, why }: WaitingUpdate): Promise<void> {
        const key = `${name} ${to}`;
        if (!this.#told.has(key)) {
            this.#told.add(key);
            await this.#ctx.notify({
                event: 'update-available',
                severity: 'info',
                title: `${name} can be updated from ${from} to ${to}`,
                text: auto ? 'It is updated by itself, in the window.' : (why ?? ''),
                data: { app: name, from, to }
            });
        }
    }

    async #view(
        row: InstalledRow,
        offered: OfferedApp,
        { language, actor }: { readonly language: string | undefined; readonly actor: Actor | null }
    ): Promise<WaitingUpdate> {
        const { version: from } = await this.#store.revision(row.name, row.revision);
        const document = await this.#catalogue.document(offered);
        const to = offered.row.version;
        const base = {
            ...{ name: row.name, from, to },
            changelog: document === null ? '' : this.#changelog(document, from, language)
        };
        let draft: Draft;
        try {
            draft = await this.#drafts.change(row, {}, { actor, offered });
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            return { ...base, diff: null, needsConsent: false, auto: false, why: whyOf(error) };
        }
        const needsConsent = draft.plan.consent !== null;
        const why = this.#whyNotByItself(row, { from, to, needsConsent, isSigned: isSigned(offered.source) });
        return { ...base, diff: draft.plan.difference, needsConsent, auto: why === null, why };
    }

    #whyNotByItself(
        { autoUpdate, takenBack }: InstalledRow,
        update: {
            readonly from: string;
            readonly to: string;
            readonly needsConsent: boolean;
            readonly isSigned: boolean;
        }
    ): string | null {
        const { from, to } = update;
        if (!update.isSigned) {
            return 'Unsigned apps never update by themselves';
        }
        if ((JSON.parse(takenBack) as readonly string[]).includes(to)) {
            return 'It was tried, and taken back';
        }
        if (update.needsConsent) {
            return 'It exposes more than before';
        }
        if (autoUpdate === 'off') {
            return 'Automatic updates of this app are off';
        }
        return isWithin(autoUpdate as AutoUpdate, from, to)
            ? null
            : `Only steps of ${autoUpdate} are made by themselves`;
    }

    #changelog({ changelog }: AppDocument, from: string, language: string | undefined): string {
        const newer = changelog.filter(({ version }) => isNewer(from, version));
        const { language: usual } = this.#ctx.settings;
        return newer
            .map(({ version, text }) => `## ${version}\n\n${inLanguage(text, language, usual)}`)
            .map(safeHtml)
            .join('');
    }
}

/** The fault that a person can do something about. */
function whyOf({ message, data }: { readonly message: string; readonly data: unknown }): string {
    const { errors: faults } = (data ?? {}) as { errors?: readonly { message: string }[] };
    return faults?.[0]?.message ?? message;
}
