/** DNS providers: who can prove that names are ours. Their credentials are sealed, and leave only towards the name server or the command that they are for. */
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { type Reply, reply } from '@portico/sdk';

import { challengeValue, newAccountKey } from '../../platform/acme-key.ts';
import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail, invalid } from '../../platform/errors.ts';
import type { Seen } from './authority.ts';
import type { DnsProviderRow } from './entities.ts';
import { createLego, type LegoOptions } from './lego/command.ts';
import type { ProviderCreate, ProviderTestResult, ProviderUpdate, ProviderView } from './schema.ts';
import { type ChallengeWriter, recordName, WriterFailure } from './solver.ts';
import type { Credentials } from './store.ts';
import { legoTool, type ProviderType, rfc2136Type } from './types.ts';
import { checkCredentials, isDomain } from './validation.ts';
import { createWriters, type WritersOptions } from './writers.ts';

export interface DnsProvidersOptions extends Pick<
    WritersOptions,
    'store' | 'clock' | 'nameservers' | 'visibleMs'
> {
    readonly db: Database;
    readonly clock: Clock;
    readonly lego: LegoOptions;
    /** Ids of the certificates that are issued with it, as of the last commit, or as the transaction sees them. */
    usersOf(id: number): readonly number[];
    usersIn(tx: Transaction, id: number): Promise<readonly number[]>;
}

export interface DnsProviders {
    list(): readonly ProviderView[];
    /** @throws NOT_FOUND 40400 */
    get(id: number): ProviderView;
    /** Every type that this machine can use; the message says how to get more. */
    types(): Promise<Reply<readonly ProviderType[]>>;
    /** @throws VALIDATION_FAILED 40001; CONFLICT 40900 for a taken name; TOOL_MISSING 50302 for a type that needs lego */
    create(body: ProviderCreate, call: Call): Promise<Reply<ProviderView>>;
    /** @throws as `create`, and NOT_FOUND, VERSION_STALE */
    update(id: number, body: ProviderUpdate, call: Call): Promise<Reply<ProviderView>>;
    /** @throws NOT_FOUND, VERSION_STALE, IN_USE with the certificates' ids in `data.by` */
    remove(id: number, call: Call): Promise<Reply<null>>;
    /** Writes, looks up and removes a record. @throws NOT_FOUND, VALIDATION_FAILED, TOOL_MISSING; what goes wrong beyond is in the answer */
    test(id: number, domain: string | undefined, call: Call): Promise<ProviderTestResult>;
    /** Who writes the records of a challenge. @throws NOT_FOUND, TOOL_MISSING */
    writer(id: number): Promise<ChallengeWriter>;
    /** The provider for those who name none; null when none is the default. */
    default(): number | null;
    /** Whether there is such a provider, as the transaction sees it. */
    existsIn(tx: Transaction, id: number): Promise<boolean>;
}

const resource = 'dns-providers';
const testVisibleMs = { builtIn: 30_000, lego: 90_000 } as const;
const keptLines = 100;

export function createDnsProviders({
    store,
    db,
    clock,
    lego: legoOptions,
    ...options
}: DnsProvidersOptions): DnsProviders {
    const lego = createLego(legoOptions);
    lego.sweep();
    const writers = createWriters({
        store,
        lego,
        clock,
        nameservers: options.nameservers,
        ...(options.visibleMs === undefined ? {} : { visibleMs: options.visibleMs })
    });

    const view = (row: DnsProviderRow): ProviderView => ({
        id: row.id,
        name: row.name,
        type: row.type,
        credentials: Object.fromEntries(
            Object.keys(store.open(row))
                .sort()
                .map((name) => [name, true])
        ),
        isDefault: row.isDefault,
        usedBy: [...options.usersOf(row.id)],
        version: row.version,
        createdAt: row.createdAt,
        updatedAt: row.updatedAt
    });

    async function typeOf(name: string): Promise<ProviderType> {
        if (name === rfc2136Type.type) {
            return rfc2136Type;
        }
        const types = await lego.types();
        const type = types.find((each) => each.type === name);
        if (type === undefined && types.length === 0) {
            throw fail.TOOL_MISSING(legoTool, {
                message:
                    'Only the type rfc2136 needs no other program; lego brings the others and is not installed'
            });
        }
        if (type === undefined) {
            throw invalid({ path: 'type', message: 'type must be one of GET /api/dns-providers/types' });
        }
        return type;
    }

    async function checked(type: string, credentials: Credentials): Promise<string> {
        const faults = checkCredentials(await typeOf(type), credentials);
        if (faults.length > 0) {
            throw invalid(...faults);
        }
        return store.seal(credentials);
    }

    async function nameFree(tx: Transaction, name: string, id: number | null): Promise<void> {
        if (await store.nameTakenIn(tx, name, id)) {
            throw fail.CONFLICT({ field: 'name' }, { message: 'Another DNS provider has this name' });
        }
    }

    async function mustBe(tx: Transaction, before: DnsProviderRow): Promise<void> {
        const version = await store.versionIn(tx, before.id);
        if (version === null) {
            throw fail.NOT_FOUND(null, { message: `There is no DNS provider ${before.id}` });
        }
        if (version !== before.version) {
            throw fail.VERSION_STALE({ version });
        }
    }

    return {
        list: () => store.list().map(view),
        get: (id) => view(store.get(id)),
        async types() {
            const more = await lego.types();
            return reply.with(
                [rfc2136Type, ...more],
                more.length > 0
                    ? {}
                    : { message: `The command lego brings many more types: ${legoTool.install}` }
            );
        },
        async create(body, call) {
            checkName(body.name);
            const sealedCredentials = await checked(body.type, body.credentials);
            const now = new Date(clock.now()).toISOString();
            const fields = {
                name: body.name,
                type: body.type,
                sealedCredentials,
                isDefault: body.isDefault,
                version: 1,
                createdAt: now,
                updatedAt: now
            };
            return db.write(async (tx) => {
                await nameFree(tx, body.name, null);
                if (body.isDefault) {
                    await store.clearDefault(tx, null, now);
                }
                const id = await store.insert(tx, fields);
                const after = view({ id, ...fields });
                return call.complete(tx, {
                    action: 'create',
                    resource,
                    resourceId: id,
                    before: null,
                    after,
                    reply: reply.created(`/api/dns-providers/${id}`, after)
                });
            });
        },
        async update(id, body, call) {
            const before = store.get(id);
            checkVersion(before, call.ifMatch, body.version);
            checkName(body.name);
            const type = body.type ?? before.type;
            const sealedCredentials =
                type === before.type && body.credentials === undefined
                    ? before.sealedCredentials
                    : await checked(
                          type,
                          merged(type === before.type ? store.open(before) : {}, body.credentials ?? {})
                      );
            const changed = {
                ...before,
                name: body.name ?? before.name,
                type,
                isDefault: body.isDefault ?? before.isDefault
            };
            if (
                isDeepStrictEqual(changed, before) &&
                (sealedCredentials === before.sealedCredentials ||
                    isDeepStrictEqual(store.open({ sealedCredentials }), store.open(before)))
            ) {
                return reply.with(view(before), {});
            }
            const now = new Date(clock.now()).toISOString();
            const row: DnsProviderRow = {
                ...changed,
                sealedCredentials,
                version: before.version + 1,
                updatedAt: now
            };
            return db.write(async (tx) => {
                await mustBe(tx, before);
                await nameFree(tx, row.name, id);
                if (row.isDefault) {
                    await store.clearDefault(tx, id, now);
                }
                await store.update(tx, row);
                const after = view(row);
                return call.complete(tx, {
                    action: 'update',
                    resource,
                    resourceId: id,
                    before: view(before),
                    after,
                    reply: reply.with(after, {})
                });
            });
        },
        async remove(id, call) {
            const before = store.get(id);
            checkVersion(before, call.ifMatch, undefined);
            return db.write(async (tx) => {
                await mustBe(tx, before);
                const by = await options.usersIn(tx, id);
                if (by.length > 0) {
                    throw fail.IN_USE(
                        { by: [...by] },
                        { message: `DNS provider ${id} is used by certificate ${by.join(', ')}` }
                    );
                }
                await store.remove(tx, id);
                return call.complete(tx, {
                    action: 'delete',
                    resource,
                    resourceId: id,
                    before: view(before),
                    after: null,
                    reply: reply.with(null, {})
                });
            });
        },
        async test(id, sent, call) {
            const row = store.get(id);
            const name =
                sent?.toLowerCase().replace(/^\*\./, '').replace(/\.$/, '') ??
                (row.type === rfc2136Type.type
                    ? store.open(row)['zone']?.toLowerCase().replace(/\.$/, '')
                    : undefined);
            if (name === undefined || !isDomain(name)) {
                throw invalid({
                    path: 'domain',
                    message:
                        name === undefined
                            ? 'domain is required: the provider does not name its zone'
                            : 'domain must be a DNS name'
                });
            }
            const steps = new Steps();
            const writer = await writers.of(row, {
                limitMs: row.type === rfc2136Type.type ? testVisibleMs.builtIn : testVisibleMs.lego,
                wrote: () => steps.done('write', 'The provider took the record'),
                saw: (seen) => steps.see(seen),
                removed: () => steps.removed()
            });
            const key = newAccountKey();
            const token = randomBytes(32).toString('base64url');
            const log: string[] = [];
            try {
                await writer.solve(
                    {
                        challenges: [{ domain: name, token, value: challengeValue(token, key) }],
                        key: { pem: key },
                        signal: call.signal,
                        log: (text) => void (log.length < keptLines && log.push(text))
                    },
                    async () => {
                        steps.done('lookup', 'The name servers have it');
                    }
                );
                steps.end('The record is gone');
            } catch (error) {
                if (!(error instanceof WriterFailure)) {
                    throw error;
                }
                steps.failed(error.message);
            }
            const result = { ok: steps.ok, record: recordName(name), steps: steps.list, log };
            await db.write((tx) =>
                call.complete(tx, {
                    action: 'test',
                    resource,
                    resourceId: id,
                    after: { ok: result.ok, record: result.record },
                    reply: result
                })
            );
            return result;
        },
        writer: async (id) => writers.of(store.get(id)),
        default: () => store.default()?.id ?? null,
        existsIn: async (tx, id) => (await store.versionIn(tx, id)) !== null
    };
}

type Step = ProviderTestResult['steps'][number];

/** What came of each step, in order; a failure is the one of the step that is under way, and its record is removed all the same. */
class Steps {
    readonly list: Step[] = [];
    #began = performance.now();
    #seen: readonly Seen[] = [];
    #isRemoved = false;

    get ok(): boolean {
        return this.list.length === 3 && this.list.every(({ ok }) => ok);
    }

    see(seen: readonly Seen[]): void {
        this.#seen = seen;
    }

    removed(): void {
        this.#isRemoved = true;
    }

    done(step: Step['step'], message: string): void {
        this.#add(step, true, message);
    }

    end(message: string): void {
        this.#add(
            'remove',
            this.#isRemoved,
            this.#isRemoved ? message : 'The record could not be removed; the next attempt will try again'
        );
    }

    failed(message: string): void {
        const step = (['write', 'lookup', 'remove'] as const)[Math.min(this.list.length, 2)] ?? 'remove';
        this.#add(step, false, message);
        if (step === 'lookup') {
            this.end('The record is gone');
        }
    }

    #add(step: Step['step'], ok: boolean, message: string): void {
        const now = performance.now();
        const seen = this.#seen.map(({ server, values, error }) => ({ server, values: [...values], error }));
        this.list.push({
            step,
            ok,
            message,
            milliseconds: Math.round(now - this.#began),
            ...(step === 'lookup' ? { seen } : {})
        });
        this.#began = now;
    }
}

function merged(before: Credentials, sent: NonNullable<ProviderUpdate['credentials']>): Credentials {
    const fields = new Map(Object.entries(before));
    for (const [name, value] of Object.entries(sent)) {
        if (value === null) {
            fields.delete(name);
        } else if (value !== true) {
            fields.set(name, value as string);
        }
    }
    return Object.fromEntries(fields);
}

/** @throws VALIDATION_FAILED for a name that does not fit on one line */
function checkName(name: string | undefined): void {
    if (name !== undefined && (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name) || name.trim() === '')) {
        throw invalid({ path: 'name', message: 'name must be a line of text without control characters' });
    }
}

/** @throws VERSION_STALE when the caller means another version */
function checkVersion(row: DnsProviderRow, ifMatch: string | null, sent: number | undefined): void {
    if (
        (ifMatch !== null && ifMatch !== '*' && ifMatch !== String(row.version)) ||
        (sent !== undefined && sent !== row.version)
    ) {
        throw fail.VERSION_STALE({ version: row.version });
    }
}
