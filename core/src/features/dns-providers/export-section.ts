/** The DNS providers of a document of the whole panel. Without a passphrase their credentials are missing, and a new one cannot come of them. */
import { isDeepStrictEqual } from 'node:util';

import { joi, type Value } from '@portico/sdk';

import type { Entry, Ground, Incoming, Reading, Section } from '../../engine/section.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import { faultsOf } from '../../platform/validation.ts';
import { DnsProviderEntity, type DnsProviderRow } from './entities.ts';
import type { Credentials, DnsProviderStore } from './store.ts';

/** What {@link createDnsProviderSection} works with. */
export interface DnsProviderSectionOptions {
    readonly db: Database;
    readonly store: DnsProviderStore;
    readonly clock: Clock;
    /** Certificates that it works for. */
    usersOf(id: number): readonly number[];
}

const shape = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required(),
    name: joi
        .string()
        .max(255)
        .pattern(/^[^\p{Cc}\p{Cs}\u2028\u2029]+$/u)
        .required(),
    type: joi
        .string()
        .max(64)
        .pattern(/^[a-z0-9-]+$/)
        .required(),
    isDefault: joi.boolean().required(),
    createdAt: joi.string().isoDate().required(),
    updatedAt: joi.string().isoDate().required()
});
type Written = Value<typeof shape>;

const credentialsShape = joi.record(joi.string().max(16_384));

interface Read {
    readonly written: Written;
    /** Null: not in the document. */
    readonly credentials: Credentials | null;
}

interface Change {
    readonly id: number;
    readonly before: DnsProviderRow | null;
    readonly after: Read | null;
}

/** Makes the section `dnsProviders` of an export document. */
export function createDnsProviderSection({ db, store, clock, usersOf }: DnsProviderSectionOptions): Section {
    const highest = db.prepare<[], { seq: number }>(
        "select seq from sqlite_sequence where name = 'dns_provider'"
    );
    return {
        name: 'dnsProviders',
        permissions: { read: 'dns:read', write: 'dns:write', secrets: 'dns:write' },
        collect: (sink) =>
            store.list().map((row): Written => {
                sink?.put(row.name, JSON.stringify(store.open(row)));
                const { id, name, type, isDefault, createdAt, updatedAt } = row;
                return { id, name, type, isDefault, createdAt, updatedAt };
            }),
        read(part, reading) {
            const wrong = faultsOf(joi.array().items(shape).unique('name').unique('id'), part, reading.path);
            wrong.forEach(({ path, message }) => reading.faults.add(path, message));
            if (wrong.length > 0) {
                return { plan: () => ({ entries: [] }) };
            }
            const read = (part as readonly Written[]).map((written, at): Read => ({
                written,
                credentials: credentialsOf(written, `${reading.path}.${at}`, reading)
            }));
            return createIncoming(read, store, clock, () => highest.get()?.seq ?? 0, usersOf);
        }
    };
}

function credentialsOf({ name }: Written, path: string, { secrets, faults }: Reading): Credentials | null {
    const sealed = secrets?.json(name);
    if (sealed === undefined) {
        return null;
    }
    const [wrong] = faultsOf(credentialsShape, sealed);
    if (wrong !== undefined) {
        faults.add(path, `its credentials are damaged: ${wrong.message}`);
    }
    return wrong === undefined ? (sealed as Credentials) : null;
}

function createIncoming(
    read: readonly Read[],
    store: DnsProviderStore,
    clock: Clock,
    highest: () => number,
    usersOf: DnsProviderSectionOptions['usersOf']
): Incoming {
    return {
        plan(ground) {
            const { entries, changes, numbers } = planAll(read, store, ground, highest());
            // Where the document has certificates, their own section decides what becomes of those whose provider goes.
            for (const { id } of ground.sections.has('certificates')
                ? []
                : changes.filter(({ after }) => after === null)) {
                const by = usersOf(id);
                if (by.length > 0) {
                    throw fail.IN_USE(
                        { by },
                        {
                            message: `A DNS provider that the document does not have is used by certificate ${by.join(', ')}`
                        }
                    );
                }
            }
            ground.dnsProviderIds = numbers;
            return { entries, commit: (tx) => write(tx, changes, store, clock) };
        }
    };
}

function planAll(
    read: readonly Read[],
    store: DnsProviderStore,
    ground: Ground,
    last: number
): { readonly entries: Entry[]; readonly changes: Change[]; readonly numbers: ReadonlyMap<number, number> } {
    const byName = new Map(store.list().map((row) => [row.name, row]));
    const entries: Entry[] = [];
    const changes: Change[] = [];
    const numbers = new Map<number, number>();
    let next = Math.max(last, ...read.map(({ written }) => Math.min(written.id, last + 100_000)));
    for (const after of read) {
        const { id, name, type, isDefault } = after.written;
        const before = byName.get(name) ?? null;
        byName.delete(name);
        if (after.credentials === null && before?.type !== type) {
            entries.push({
                effect: 'unchanged',
                name,
                notes: ['left out: its credentials are not in the document']
            });
            continue;
        }
        next += before === null ? 1 : 0;
        const own = before?.id ?? (id > last && id <= last + 100_000 ? id : next);
        numbers.set(id, own);
        const same =
            before !== null &&
            before.type === type &&
            before.isDefault === isDefault &&
            (after.credentials === null || isDeepStrictEqual(store.open(before), after.credentials));
        entries.push({ effect: before === null ? 'create' : same ? 'unchanged' : 'update', name });
        if (!same) {
            changes.push({ id: own, before, after });
        }
    }
    if (ground.mode === 'replace') {
        for (const before of byName.values()) {
            entries.push({ effect: 'delete', name: before.name });
            changes.push({ id: before.id, before, after: null });
        }
    }
    return { entries, changes, numbers };
}

async function write(
    tx: Transaction,
    changes: readonly Change[],
    store: DnsProviderStore,
    clock: Clock
): Promise<void> {
    const now = new Date(clock.now()).toISOString();
    for (const { id, before, after } of changes) {
        if ((await store.versionIn(tx, id)) !== (before?.version ?? null)) {
            throw fail.VERSION_STALE({ version: before?.version ?? null });
        }
        if (after === null) {
            await store.remove(tx, id);
            continue;
        }
        const { name, type, isDefault, createdAt, updatedAt } = after.written;
        if (isDefault) {
            await store.clearDefault(tx, id, now);
        }
        const sealedCredentials =
            after.credentials === null ? (before?.sealedCredentials ?? '') : store.seal(after.credentials);
        const row =
            before === null
                ? { id, name, type, isDefault, sealedCredentials, version: 1, createdAt, updatedAt }
                : {
                      ...before,
                      type,
                      isDefault,
                      sealedCredentials,
                      version: before.version + 1,
                      updatedAt: now
                  };
        if (before === null) {
            await tx.em.insert(DnsProviderEntity, row);
        } else {
            await store.update(tx, row);
        }
    }
}
