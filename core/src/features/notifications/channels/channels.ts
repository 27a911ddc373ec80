/** Channels as objects of the API. */
import { isDeepStrictEqual } from 'node:util';

import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { fail, type Invalid, invalid } from '../../../platform/errors.ts';
import type { Keyring } from '../../../platform/keyring.ts';
import type { EmailFields } from '../delivery/email.ts';
import type { WebhookFields } from '../delivery/webhook.ts';
import type { ChannelRow } from '../entities.ts';
import type { ChannelCreate, ChannelUpdate, ChannelView } from '../schema.ts';
import type { Store } from '../store.ts';
import { settle, type Settled } from './fields.ts';

/** Label under which secrets are sealed. */
const label = 'notifications';
const mostChannels = 100;
export const resource = 'channels';

export interface ChannelsOptions {
    readonly db: Database;
    readonly store: Store;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly clock: Clock;
    /** Something that waits may be due now. */
    changed(): void;
}

export interface Channels {
    list(): readonly ChannelView[];
    /** @throws NOT_FOUND */
    get(id: number): ChannelView;
    /** The answer has the secret of a webhook that was made here, this once. @throws VALIDATION_FAILED */
    create(body: ChannelCreate, call: Call): Promise<Reply<ChannelView>>;
    /** @throws NOT_FOUND, VERSION_STALE, VALIDATION_FAILED */
    update(id: number, body: ChannelUpdate, call: Call): Promise<Reply<ChannelView>>;
    /** Its deliveries go with it. @throws NOT_FOUND, VERSION_STALE */
    remove(id: number, call: Call): Promise<null>;
}

export function createChannels({ db, store, keyring, clock, changed }: ChannelsOptions): Channels {
    const now = (): string => new Date(clock.now()).toISOString();
    const seal = (secret: string | null): string | null =>
        secret === null ? null : keyring.seal(label, secret);

    function checkVersion(row: ChannelRow, call: Call, sent: number | undefined): void {
        if (
            (call.ifMatch !== null && call.ifMatch !== '*' && call.ifMatch !== String(row.version)) ||
            (sent !== undefined && sent !== row.version)
        ) {
            throw fail.VERSION_STALE({ version: row.version });
        }
    }

    return {
        list: () => store.channels().map(viewOf),
        get: (id) => viewOf(channelOf(store, id)),
        create(body, call) {
            const faults: Invalid[] = [];
            const settled = settle(body.type, body, null, faults);
            if (settled === null) {
                throw invalid(...faults);
            }
            return db.write(async (tx) => {
                const [{ count } = { count: 0 }] = await tx.em.execute<{ count: number }[]>(
                    'select count(*) as count from notification_channel'
                );
                if (count >= mostChannels) {
                    throw invalid({ path: 'name', message: `There are ${mostChannels} channels already` });
                }
                const at = now();
                const fresh = {
                    name: body.name,
                    type: body.type,
                    events: JSON.stringify(body.events),
                    enabled: Number(body.enabled),
                    fields: JSON.stringify(settled.fields),
                    sealed: seal(settled.secret),
                    version: 1,
                    createdAt: at,
                    updatedAt: at
                };
                const id = await store.insertChannel(tx, fresh);
                const view = viewOf({ id, ...fresh });
                const shown =
                    settled.type === 'webhook' && settled.made ? { ...view, secret: settled.secret } : view;
                return call.complete(tx, {
                    action: 'create',
                    resource,
                    resourceId: id,
                    before: null,
                    after: view,
                    reply: reply.created(`/api/settings/channels/${id}`, shown)
                });
            });
        },
        async update(id, body, call) {
            const before = channelOf(store, id);
            checkVersion(before, call, body.version);
            const faults: Invalid[] = [];
            if (body.type !== undefined && body.type !== before.type) {
                faults.push({
                    path: 'type',
                    message: `type cannot be changed: this channel is of type ${before.type}`
                });
            }
            const old = settledOf(before, keyring);
            const settled = settle(old.type, body, old, faults);
            if (settled === null || faults.length > 0) {
                throw invalid(...faults);
            }
            const changes = {
                name: body.name ?? before.name,
                events: body.events === undefined ? before.events : JSON.stringify(body.events),
                enabled: body.enabled === undefined ? before.enabled : Number(body.enabled),
                fields: JSON.stringify(settled.fields),
                sealed: settled.secret === old.secret ? before.sealed : seal(settled.secret)
            };
            if (isDeepStrictEqual({ ...before, ...changes }, before)) {
                return reply.with(viewOf(before), {});
            }
            const after: ChannelRow = {
                ...before,
                ...changes,
                version: before.version + 1,
                updatedAt: now()
            };
            return db.write(async (tx) => {
                if (!(await store.updateChannel(tx, after))) {
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
        },
        async remove(id, call) {
            const before = channelOf(store, id);
            checkVersion(before, call, undefined);
            return db.write(async (tx) => {
                if (!(await store.removeChannel(tx, id, before.version))) {
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
    };
}

/** @throws NOT_FOUND 40400 */
export function channelOf(store: Store, id: number): ChannelRow {
    const row = store.channel(id);
    if (row === undefined) {
        throw fail.NOT_FOUND(null, { message: `There is no channel ${id}` });
    }
    return row;
}

/** A channel with its secret. @throws Error when that was sealed under another key */
export function settledOf(row: ChannelRow, keyring: Pick<Keyring, 'open'>): Settled {
    const secret = row.sealed === null ? null : keyring.open(label, row.sealed);
    return row.type === 'webhook'
        ? {
              type: 'webhook',
              fields: JSON.parse(row.fields) as WebhookFields,
              secret: secret ?? '',
              made: false
          }
        : { type: 'email', fields: JSON.parse(row.fields) as EmailFields, secret };
}

/** A channel as the API shows it: without its secret. */
export function viewOf(row: ChannelRow): ChannelView {
    const fields = JSON.parse(row.fields) as Pick<
        ChannelView,
        'url' | 'host' | 'port' | 'security' | 'username' | 'from' | 'to'
    >;
    const own = row.type === 'webhook' ? fields : { ...fields, passwordSet: row.sealed !== null };
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
