/** What an import would do or did, as it is read: names by what becomes of them, section by section. */
import type { Plan } from '../../engine/change.ts';
import type { Entry, ImportMode, PluginOutcome, Step } from '../../engine/section.ts';
import { type Call, recordedActor } from '../../platform/call.ts';

/** What an import does to one section. */
export interface SectionResult {
    readonly create: readonly string[];
    readonly update: readonly string[];
    readonly delete: readonly string[];
    readonly unchanged: readonly string[];
    /** What is not as the document says, and why. */
    readonly notes: readonly { readonly name: string; readonly message: string }[];
    /** How many there are of each, also when the names were too many to be listed. */
    readonly counts: {
        readonly create: number;
        readonly update: number;
        readonly delete: number;
        readonly unchanged: number;
    };
}

/** What an import does, or would do. */
export interface ImportResult {
    readonly mode: ImportMode;
    readonly dryRun: boolean;
    /** Whether the document has secrets. */
    readonly secrets: boolean;
    readonly sections: Readonly<Record<string, SectionResult>>;
    /** Plugins of which more becomes than their settings. */
    readonly plugins: readonly PluginOutcome[];
    /** Whether the engine has to load a configuration, or had to. */
    readonly reload: boolean;
    /** False: stored, and waiting for the engine. Null in a dry run. */
    readonly applied: boolean | null;
    /** What holds for all of it. */
    readonly notes: readonly string[];
}

/** A task's result may have 1 MiB. */
const mostBytes = 900 * 1024;
const effects = ['create', 'update', 'delete', 'unchanged'] as const;

/** Counts the entries of a section and collects their notes. */
export function sectionResult(entries: readonly Entry[], more: SectionResult['notes']): SectionResult {
    const named = (effect: Entry['effect']): string[] =>
        entries.filter((entry) => entry.effect === effect).map(({ name }) => name);
    const lists = {
        create: named('create'),
        update: named('update'),
        delete: named('delete'),
        unchanged: named('unchanged')
    };
    return {
        ...lists,
        notes: [
            ...more,
            ...entries.flatMap(({ name, notes = [] }) => notes.map((message) => ({ name, message })))
        ],
        counts: {
            create: lists.create.length,
            update: lists.update.length,
            delete: lists.delete.length,
            unchanged: lists.unchanged.length
        }
    };
}

/** The same without the names that would be too many for a task: first those that nothing happens to. */
export function bounded(result: ImportResult): ImportResult {
    let small = result;
    for (const effect of effects.toReversed()) {
        if (Buffer.byteLength(JSON.stringify(small)) <= mostBytes) {
            return small;
        }
        small = mapSections(small, (section) => ({ ...section, [effect]: [] }));
    }
    return Buffer.byteLength(JSON.stringify(small)) <= mostBytes
        ? small
        : mapSections(small, (section) => ({ ...section, notes: [] }));
}

/** The result of an import that is cut between its commit and its end. */
export function cutAfterCommit(result: ImportResult): ImportResult {
    return {
        ...result,
        plugins: result.plugins.map((outcome) => ({
            ...outcome,
            install: outcome.install === null ? null : 'failed',
            data: outcome.data === null ? null : 'waiting',
            notes: [
                ...outcome.notes,
                ...(outcome.install === null ? [] : ['the import was cut before it was installed']),
                ...(outcome.data === null ? [] : ['its data is kept until it runs'])
            ]
        })),
        notes: [
            ...result.notes,
            'The import was cut after everything was written and before it had ended: nothing of it is lost'
        ]
    };
}

/** For the audit log: the counts. */
export function summary({
    mode,
    secrets,
    sections
}: Pick<ImportResult, 'mode' | 'secrets' | 'sections'>): Readonly<Record<string, unknown>> {
    return {
        mode,
        secrets,
        ...Object.fromEntries(Object.entries(sections).map(([name, { counts }]) => [name, counts]))
    };
}

function mapSections(result: ImportResult, map: (section: SectionResult) => SectionResult): ImportResult {
    return {
        ...result,
        sections: Object.fromEntries(
            Object.entries(result.sections).map(([name, section]) => [name, map(section)])
        )
    };
}

/** Whether any step changes what the engine serves. */
export function isForEngine(steps: ReadonlyMap<string, Step>): boolean {
    const { hosts = [], certificates = [], settings } = mergePlans(steps);
    return hosts.length > 0 || certificates.length > 0 || settings !== undefined;
}

/** The plans of all steps as one. */
export function mergePlans(steps: ReadonlyMap<string, Step>): Plan {
    const plans = [...steps.values()].flatMap(({ engine }) => engine ?? []);
    const settings = plans.findLast((plan) => plan.settings !== undefined)?.settings;
    return {
        hosts: plans.flatMap(({ hosts = [] }) => hosts),
        certificates: plans.flatMap(({ certificates = [] }) => certificates),
        ...(settings === undefined ? {} : { settings })
    };
}

/** The audit entry of an import. */
export function auditEntryOf(
    { id, actor, ip, userAgent }: Call,
    {
        status,
        code,
        after
    }: { readonly status: number | null; readonly code: number; readonly after: unknown }
) {
    return {
        actor: recordedActor(actor),
        action: 'import',
        resource: 'panel',
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
