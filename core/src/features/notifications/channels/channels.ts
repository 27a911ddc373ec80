/** Notification channels as the API manages them. */
import { isDeepStrictEqual } from 'node:util';

import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { fail, type Invalid, invalid } from '../../../platform/errors.ts';
import type { Keyring } from '../../../platform/keys/keyring.ts';
import { requireVersion } from '../../../platform/version.ts';
import type { EmailFields } from '../delivery/email.ts';
import type { WebhookFields } from '../delivery/webhook.ts';
import type { ChannelRow } from '../entities.ts';
import type { ChannelCreate, ChannelUpdate, ChannelView } from '../schema.ts';
import { type ChannelFields, mergeFields, shownUrl } from './fields.ts';
import type { ChannelStore } from './store.ts';

/** Label under which secrets are sealed. */
const label = 'notifications';
/** How many channels there can be. */
export const mostChannels = 100;
/** What audit entries call a channel. */
export const resource = 'channels';

/** What {@link Channels} needs. */
export interface ChannelsOptions {
    readonly db: Database;
    readonly store: ChannelStore;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly clock: Clock;
    /** Called after a commit that may have made a waiting delivery due. */
    changed(): void;
}

/** Lists, creates, changes and removes channels. */
export class Channels {
    readonly #options: ChannelsOptions;

    constructor(options: ChannelsOptions) {
        this.#options = options;
    }

    /** All channels. */
    list(): readonly ChannelView[] {
        return this.#options.store.all().map(viewOf);
    }

    /** @throws NOT_FOUND 40400 */
    get(id: number): ChannelView {
        return viewOf(channelOf(this.#options.store, id));
    }

    /** Creates a channel. The reply shows a webhook secret that was generated here; no later answer does. @throws VALIDATION_FAILED 40001 */
    create(body: ChannelCreate, call: Call): Promise<Reply<ChannelView>> {
        const { db, store } = this.#options;
        const faults: Invalid[] = [];
        const merged = mergeFields(body.type, body, null, faults);
        if (merged === null) {
            throw invalid(...faults);
        }
        return db.write(async (tx) => {
            if ((await store.count(tx)) >= mostChannels) {
                throw invalid({ path: 'name', message: `There are ${mostChannels} channels already` });
            }
            const at = this.#now();
            const row = {
                name: body.name,
                type: body.type,
                events: JSON.stringify(body.events),
                enabled: Number(body.enabled),
                ...storedFields(merged, this.#options.keyring),
                version: 1,
                createdAt: at,
                updatedAt: at
            };
            const id = await store.insert(tx, row);
            const view = viewOf({ id, ...row });
            const shown =
                merged.type === 'webhook' && merged.generated ? { ...view, secret: merged.secret } : view;
            return call.complete(tx, {
                action: 'create',
                resource,
                resourceId: id,
                before: null,
                after: view,
                reply: reply.created(`/api/settings/channels/${id}`, shown)
            });
        });
    }

    /** @throws NOT_FOUND 40400, VERSION_STALE 41200, VALIDATION_FAILED 40001 */
    async update(id: number, body: ChannelUpdate, call: Call): Promise<Reply<ChannelView>> {
        const { db, store, changed } = this.#options;
        const before = channelOf(store, id);
        requireVersion(call, body.version, before.version);
        const after = this.#changed(before, body);
        if (after === null) {
            return reply.with(viewOf(before), {});
        }
        return db.write(async (tx) => {
            if (!(await store.update(tx, after))) {
                throw fail.VERSION_STALE({ version: channelOf(store, id).version });
            }
            tx.afterCommit(changed);
            return call.complete(tx, {
                action: 'update',
                resource,
                resourceId: id,
                before: viewOf(before),
                after: viewOf(after),
                reply: reply.with(viewOf(after), {})
            });
        });
    }

    /** Removes a channel with its deliveries. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async remove(id: number, call: Call): Promise<null> {
        const { db, store } = this.#options;
        const before = channelOf(store, id);
        requireVersion(call, undefined, before.version);
        return db.write(async (tx) => {
            if (!(await store.remove(tx, id, before.version))) {
                throw fail.VERSION_STALE({ version: channelOf(store, id).version });
            }
            return call.complete(tx, {
                action: 'delete',
                resource,
                resourceId: id,
                before: viewOf(before),
                after: null,
                reply: null
            });
        });
    }

    /** The row after a change; null when nothing changes. @throws VALIDATION_FAILED 40001 */
    #changed(before: ChannelRow, body: ChannelUpdate): ChannelRow | null {
        const faults: Invalid[] = [];
        if (body.type !== undefined && body.type !== before.type) {
            faults.push({
                path: 'type',
                message: `type cannot be changed: this channel is of type ${before.type}`
            });
        }
        const old = fieldsOf(before, this.#options.keyring);
        const merged = mergeFields(old.type, body, old, faults);
        if (merged === null || faults.length > 0) {
            throw invalid(...faults);
        }
        const changes = {
            name: body.name ?? before.name,
            events: body.events === undefined ? before.events : JSON.stringify(body.events),
            enabled: body.enabled === undefined ? before.enabled : Number(body.enabled),
            // Each seal differs from the one before it, and nothing may have changed.
            ...(isDeepStrictEqual(
                { fields: merged.fields, secret: merged.secret },
                { fields: old.fields, secret: old.secret }
            )
                ? {}
                : storedFields(merged, this.#options.keyring))
        };
        return isDeepStrictEqual({ ...before, ...changes }, before)
            ? null
            : { ...before, ...changes, version: before.version + 1, updatedAt: this.#now() };
    }

    #now(): string {
        return new Date(this.#options.clock.now()).toISOString();
    }
}

/** The row of a channel. @throws NOT_FOUND 40400 */
export function channelOf(store: ChannelStore, id: number): ChannelRow {
    const row = store.find(id);
    if (row === undefined) {
        throw fail.NOT_FOUND(null, { message: `There is no channel ${id}` });
    }
    return row;
}

/** The fields of a channel with its secret. @throws Error when the secret was sealed under another key */
export function fieldsOf(row: ChannelRow, keyring: Pick<Keyring, 'open'>): ChannelFields {
    const secret = row.sealed === null ? null : keyring.open(label, row.sealed);
    if (row.type !== 'webhook') {
        return { type: 'email', fields: JSON.parse(row.fields) as EmailFields, secret };
    }
    const opened: SealedWebhook =
        secret?.startsWith('{') === true
            ? (JSON.parse(secret) as SealedWebhook)
            : { ...(JSON.parse(row.fields) as WebhookFields), secret: secret ?? '' }; // as earlier versions wrote it
    return { type: 'webhook', fields: { url: opened.url }, secret: opened.secret, generated: false };
}

/** What is sealed of a webhook: its address is a credential, too. */
interface SealedWebhook extends WebhookFields {
    readonly secret: string;
}

/** The fields of a channel as its row keeps them: secrets are sealed, and of the address of a webhook all but its origin. */
export function storedFields(
    { type, fields, secret }: ChannelFields,
    keyring: Pick<Keyring, 'seal'>
): Pick<ChannelRow, 'fields' | 'sealed'> {
    if (type === 'email') {
        return {
            fields: JSON.stringify(fields),
            sealed: secret === null ? null : keyring.seal(label, secret)
        };
    }
    const sealed: SealedWebhook = { url: fields.url, secret };
    return {
        fields: JSON.stringify({ url: shownUrl(fields.url) }),
        sealed: keyring.seal(label, JSON.stringify(sealed))
    };
}

/** A channel as the API shows it: without its secrets. */
export function viewOf(row: ChannelRow): ChannelView {
    const fields = JSON.parse(row.fields) as Pick<
        ChannelView,
        'url' | 'host' | 'port' | 'security' | 'username' | 'from' | 'to'
    >;
    const own =
        row.type === 'webhook'
            ? { url: shownUrl(fields.url ?? '') }
            : { ...fields, passwordSet: row.sealed !== null };
    return {
        id: row.id,
        name: row.name,
        type: row.type as ChannelView['type'],
        events: JSON.parse(row.events) as string[],
        enabled: row.enabled === 1,
        ...own,
        version: row.version,
        createdAt: row.createdAt,
        updatedAt: row.updatedAt
    };
}
