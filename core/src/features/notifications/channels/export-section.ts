/** The notification channels in an export and an import. Deliveries stay where they are. */
import { isDeepStrictEqual } from 'node:util';

import { joi, type Value } from '@portico/sdk';

import type { Entry, Ground, Incoming, Reading, Section } from '../../../engine/section.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Transaction } from '../../../platform/database/database.ts';
import { fail, type Invalid, invalid } from '../../../platform/errors.ts';
import type { Keyring } from '../../../platform/keys/keyring.ts';
import { faultsOf } from '../../../platform/validation.ts';
import type { ChannelRow } from '../entities.ts';
import { channelUpdate } from '../schema.ts';
import { fieldsOf, mostChannels, storedFields } from './channels.ts';
import { type ChannelFields, mergeFields, shownUrl } from './fields.ts';
import type { ChannelStore } from './store.ts';

/** What the section needs. */
export interface ChannelSectionOptions {
    readonly store: ChannelStore;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly clock: Clock;
    /** Called after a commit that may have made a waiting delivery due. */
    changed(): void;
}

// The address of a webhook is a credential: the public part has only its origin.
const shape = channelUpdate.keys({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required(),
    name: joi.string().max(100).required(),
    type: joi.string().valid('webhook', 'email').required(),
    enabled: joi.boolean().required(),
    createdAt: joi.string().isoDate().required(),
    updatedAt: joi.string().isoDate().required()
});
type Written = Value<typeof shape>;

const secretShape = joi.object({
    url: joi.string().max(2048),
    secret: joi.string().max(200),
    password: joi.string().max(1024)
});
type Secret = Value<typeof secretShape>;

interface ReadChannel {
    readonly written: Written;
    /** Null when the document has no secrets of the channel. */
    readonly secret: Secret | null;
}

interface Change {
    readonly before: ChannelRow | null;
    /** Null: it is removed. */
    readonly after: { readonly written: Written; readonly fields: ChannelFields } | null;
}

/** Builds the section `channels`. */
export function createChannelSection(options: ChannelSectionOptions): Section {
    return {
        name: 'channels',
        permissions: { read: 'settings:read', write: 'settings:write', secrets: 'settings:write' },
        collect: (sink) =>
            options.store.all().map((row): Written => {
                const { type, fields, secret } = fieldsOf(row, options.keyring);
                const hidden: Secret =
                    type === 'webhook'
                        ? { url: fields.url, secret: secret ?? '' }
                        : secret === null
                          ? {}
                          : { password: secret };
                sink?.put(String(row.id), JSON.stringify(hidden));
                return {
                    id: row.id,
                    name: row.name,
                    type,
                    events: JSON.parse(row.events) as string[],
                    enabled: row.enabled === 1,
                    ...(type === 'webhook'
                        ? { url: shownUrl(fields.url) }
                        : { ...fields, to: [...fields.to] }),
                    createdAt: row.createdAt,
                    updatedAt: row.updatedAt
                };
            }),
        read(part, reading) {
            const faults = faultsOf(joi.array().items(shape).unique('id'), part, reading.path);
            faults.forEach(({ path, message }) => reading.faults.add(path, message));
            if (faults.length > 0) {
                return { plan: () => ({ entries: [] }) };
            }
            const read = (part as readonly Written[]).map((written, at): ReadChannel => ({
                written,
                secret: secretOf(written, `${reading.path}.${at}`, reading)
            }));
            return createIncoming(read, reading.path, options);
        }
    };
}

function secretOf(written: Written, path: string, { secrets, faults }: Reading): Secret | null {
    const secret = secrets?.json(String(written.id));
    if (secret === undefined) {
        return null;
    }
    const found: Invalid[] = faultsOf(secretShape, secret, path);
    if (found.length === 0) {
        mergeFields(written.type, { ...sentOf(written), ...(secret as Secret) }, null, found);
    }
    found.forEach((fault) =>
        faults.add(fault.path.startsWith(path) ? fault.path : `${path}.${fault.path}`, fault.message)
    );
    return secret as Secret;
}

/** The fields of the type, without the ones that the sealed box has. */
function sentOf({
    host,
    port,
    security,
    username,
    from,
    to
}: Written): Omit<Written, 'id' | 'name' | 'type' | 'enabled' | 'createdAt' | 'updatedAt'> {
    return {
        ...(host === undefined ? {} : { host }),
        ...(port === undefined ? {} : { port }),
        ...(security === undefined ? {} : { security }),
        ...(username === undefined ? {} : { username }),
        ...(from === undefined ? {} : { from }),
        ...(to === undefined ? {} : { to })
    };
}

function createIncoming(
    read: readonly ReadChannel[],
    path: string,
    options: ChannelSectionOptions
): Incoming {
    return {
        plan(ground) {
            const { entries, changes } = planAll(read, ground, options);
            const count = changes.reduce(
                (sum, { before, after }) => sum + (before === null ? 1 : after === null ? -1 : 0),
                options.store.all().length
            );
            if (count > mostChannels) {
                throw invalid({ path, message: `There would be more than ${mostChannels} channels` });
            }
            return { entries, commit: (tx) => write(tx, changes, options) };
        }
    };
}

function planAll(
    read: readonly ReadChannel[],
    ground: Ground,
    { store, keyring }: ChannelSectionOptions
): { readonly entries: Entry[]; readonly changes: Change[] } {
    const present = [...store.all()];
    const entries: Entry[] = [];
    const changes: Change[] = [];
    for (const { written, secret } of read) {
        const { name, type } = written;
        const at = present.findIndex((row) => row.name === name && row.type === type);
        const before = at === -1 ? null : (present.splice(at, 1)[0] ?? null);
        const old = before === null ? null : fieldsOf(before, keyring);
        const faults: Invalid[] = [];
        const fields =
            secret === null && old === null && type === 'webhook'
                ? null
                : mergeFields(type, { ...sentOf(written), ...secret }, old, faults);
        if (fields === null) {
            entries.push({
                effect: 'unchanged',
                name,
                notes: ['left out: its address or its secret is not in the document']
            });
        } else if (before !== null && isSame(before, written, fields, old)) {
            entries.push({ effect: 'unchanged', name });
        } else {
            entries.push({ effect: before === null ? 'create' : 'update', name });
            changes.push({ before, after: { written, fields } });
        }
    }
    for (const before of ground.mode === 'replace' ? present : []) {
        entries.push({ effect: 'delete', name: before.name });
        changes.push({ before, after: null });
    }
    return { entries, changes };
}

function isSame(
    before: ChannelRow,
    written: Written,
    after: ChannelFields,
    old: ChannelFields | null
): boolean {
    return (
        (before.enabled === 1) === written.enabled &&
        isDeepStrictEqual(JSON.parse(before.events), eventsOf(written)) &&
        isDeepStrictEqual(after.fields, old?.fields) &&
        after.secret === old?.secret
    );
}

function eventsOf({ events = ['*'] }: Written): readonly string[] {
    return events;
}

async function write(
    tx: Transaction,
    changes: readonly Change[],
    { store, keyring, clock, changed }: ChannelSectionOptions
): Promise<void> {
    tx.afterCommit(changed);
    for (const { before, after } of changes) {
        if (after === null) {
            if (before !== null && !(await store.remove(tx, before.id, before.version))) {
                throw fail.VERSION_STALE({ version: before.version });
            }
            continue;
        }
        const { written, fields } = after;
        const row = {
            name: written.name,
            type: fields.type,
            events: JSON.stringify(eventsOf(written)),
            enabled: Number(written.enabled),
            ...storedFields(fields, keyring)
        };
        if (before === null) {
            const { createdAt, updatedAt } = written;
            await store.insert(tx, { ...row, version: 1, createdAt, updatedAt }, written.id);
        } else {
            const updatedAt = new Date(clock.now()).toISOString();
            if (!(await store.update(tx, { ...before, ...row, version: before.version + 1, updatedAt }))) {
                throw fail.VERSION_STALE({ version: before.version });
            }
        }
    }
}
