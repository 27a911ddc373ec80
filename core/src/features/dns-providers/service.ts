/** DNS providers: who can prove that names are ours. Their credentials are sealed, and leave only towards the name server or the command that they are for. */
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail, invalid } from '../../platform/errors.ts';
import { challengeValue, newAccountKey } from '../../platform/keys/acme.ts';
import { requireVersion } from '../../platform/version.ts';
import { type ChallengeWriter, recordName, WriterFailure } from './challenges/solver.ts';
import { Writers, type WritersOptions } from './challenges/writers.ts';
import type { DnsProviderRow } from './entities.ts';
import { Lego, type LegoOptions } from './lego/command.ts';
import type { ProviderCreate, ProviderTestResult, ProviderUpdate, ProviderView } from './schema.ts';
import type { Credentials } from './store.ts';
import { TestSteps } from './test-steps.ts';
import { legoTool, type ProviderType, rfc2136Type } from './types.ts';
import { checkCredentials, isDomain } from './validation.ts';

/** What {@link DnsProviders} works with. */
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

const resource = 'dns-providers';
const testVisibleMs = { builtIn: 30_000, lego: 90_000 } as const;
const keptLines = 100;

/** The service behind `/api/dns-providers`. */
export class DnsProviders {
    readonly #store: DnsProvidersOptions['store'];
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #options: Omit<DnsProvidersOptions, 'store' | 'db' | 'clock' | 'lego'>;
    readonly #lego: Lego;
    readonly #writers: Writers;

    constructor({ store, db, clock, lego: legoOptions, ...options }: DnsProvidersOptions) {
        this.#store = store;
        this.#db = db;
        this.#clock = clock;
        this.#options = options;
        this.#lego = new Lego(legoOptions);
        this.#lego.sweep();
        this.#writers = new Writers({
            store,
            lego: this.#lego,
            clock,
            nameservers: options.nameservers,
            ...(options.visibleMs === undefined ? {} : { visibleMs: options.visibleMs })
        });
    }

    list(): readonly ProviderView[] {
        return this.#store.list().map((row) => this.#view(row));
    }

    /** @throws NOT_FOUND 40400 */
    get(id: number): ProviderView {
        return this.#view(this.#store.get(id));
    }

    /** Every type that this machine can use; the message says how to get more. */
    async types(): Promise<Reply<readonly ProviderType[]>> {
        const more = await this.#lego.types();
        return reply.with(
            [rfc2136Type, ...more],
            more.length > 0 ? {} : { message: `The command lego brings many more types: ${legoTool.install}` }
        );
    }

    /** @throws VALIDATION_FAILED 40001; CONFLICT 40900 for a taken name; TOOL_MISSING 50302 for a type that needs lego */
    async create(body: ProviderCreate, call: Call): Promise<Reply<ProviderView>> {
        checkName(body.name);
        const sealedCredentials = await this.#checked(body.type, body.credentials);
        const now = new Date(this.#clock.now()).toISOString();
        const fields = {
            name: body.name,
            type: body.type,
            sealedCredentials,
            isDefault: body.isDefault,
            version: 1,
            createdAt: now,
            updatedAt: now
        };
        return this.#db.write(async (tx) => {
            await this.#nameFree(tx, body.name, null);
            if (body.isDefault) {
                await this.#store.clearDefault(tx, null, now);
            }
            const id = await this.#store.insert(tx, fields);
            const after = this.#view({ id, ...fields });
            return call.complete(tx, {
                action: 'create',
                resource,
                resourceId: id,
                before: null,
                after,
                reply: reply.created(`/api/dns-providers/${id}`, after)
            });
        });
    }

    /** @throws as `create`, and NOT_FOUND, VERSION_STALE */
    async update(id: number, body: ProviderUpdate, call: Call): Promise<Reply<ProviderView>> {
        const before = this.#store.get(id);
        requireVersion(call, body.version, before.version);
        checkName(body.name);
        const type = body.type ?? before.type;
        const sealedCredentials =
            type === before.type && body.credentials === undefined
                ? before.sealedCredentials
                : await this.#checked(
                      type,
                      merged(type === before.type ? this.#store.open(before) : {}, body.credentials ?? {})
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
                isDeepStrictEqual(this.#store.open({ sealedCredentials }), this.#store.open(before)))
        ) {
            return reply.with(this.#view(before), {});
        }
        const now = new Date(this.#clock.now()).toISOString();
        const row: DnsProviderRow = {
            ...changed,
            sealedCredentials,
            version: before.version + 1,
            updatedAt: now
        };
        return this.#db.write(async (tx) => {
            await this.#mustBe(tx, before);
            await this.#nameFree(tx, row.name, id);
            if (row.isDefault) {
                await this.#store.clearDefault(tx, id, now);
            }
            await this.#store.update(tx, row);
            const after = this.#view(row);
            return call.complete(tx, {
                action: 'update',
                resource,
                resourceId: id,
                before: this.#view(before),
                after,
                reply: reply.with(after, {})
            });
        });
    }

    /** @throws NOT_FOUND, VERSION_STALE, IN_USE with the certificates' ids in `data.by` */
    async remove(id: number, call: Call): Promise<Reply<null>> {
        const before = this.#store.get(id);
        requireVersion(call, undefined, before.version);
        return this.#db.write(async (tx) => {
            await this.#mustBe(tx, before);
            const by = await this.#options.usersIn(tx, id);
            if (by.length > 0) {
                throw fail.IN_USE(
                    { by: [...by] },
                    { message: `DNS provider ${id} is used by certificate ${by.join(', ')}` }
                );
            }
            await this.#store.remove(tx, id);
            return call.complete(tx, {
                action: 'delete',
                resource,
                resourceId: id,
                before: this.#view(before),
                after: null,
                reply: reply.with(null, {})
            });
        });
    }

    /** Writes, looks up and removes a record. @throws NOT_FOUND, VALIDATION_FAILED, TOOL_MISSING; what goes wrong beyond is in the answer */
    async test(id: number, sent: string | undefined, call: Call): Promise<ProviderTestResult> {
        const row = this.#store.get(id);
        const name =
            sent?.toLowerCase().replace(/^\*\./, '').replace(/\.$/, '') ??
            (row.type === rfc2136Type.type
                ? this.#store.open(row)['zone']?.toLowerCase().replace(/\.$/, '')
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
        const steps = new TestSteps();
        const writer = await this.#writers.of(row, {
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
        await this.#db.write((tx) =>
            call.complete(tx, {
                action: 'test',
                resource,
                resourceId: id,
                after: { ok: result.ok, record: result.record },
                reply: result
            })
        );
        return result;
    }

    /** Who writes the records of a challenge. @throws NOT_FOUND, TOOL_MISSING */
    async writer(id: number): Promise<ChallengeWriter> {
        return this.#writers.of(this.#store.get(id));
    }

    /** The provider for those who name none; null when none is the default. */
    default(): number | null {
        return this.#store.default()?.id ?? null;
    }

    /** Whether there is such a provider, as the transaction sees it. */
    async existsIn(tx: Transaction, id: number): Promise<boolean> {
        return (await this.#store.versionIn(tx, id)) !== null;
    }

    #view(row: DnsProviderRow): ProviderView {
        return {
            id: row.id,
            name: row.name,
            type: row.type,
            credentials: Object.fromEntries(
                Object.keys(this.#store.open(row))
                    .sort()
                    .map((name) => [name, true])
            ),
            isDefault: row.isDefault,
            usedBy: [...this.#options.usersOf(row.id)],
            version: row.version,
            createdAt: row.createdAt,
            updatedAt: row.updatedAt
        };
    }

    async #typeOf(name: string): Promise<ProviderType> {
        if (name === rfc2136Type.type) {
            return rfc2136Type;
        }
        const types = await this.#lego.types();
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

    async #checked(type: string, credentials: Credentials): Promise<string> {
        const faults = checkCredentials(await this.#typeOf(type), credentials);
        if (faults.length > 0) {
            throw invalid(...faults);
        }
        return this.#store.seal(credentials);
    }

    async #nameFree(tx: Transaction, name: string, id: number | null): Promise<void> {
        if (await this.#store.nameTakenIn(tx, name, id)) {
            throw fail.CONFLICT({ field: 'name' }, { message: 'Another DNS provider has this name' });
        }
    }

    async #mustBe(tx: Transaction, before: DnsProviderRow): Promise<void> {
        const version = await this.#store.versionIn(tx, before.id);
        if (version === null) {
            throw fail.NOT_FOUND(null, { message: `There is no DNS provider ${before.id}` });
        }
        if (version !== before.version) {
            throw fail.VERSION_STALE({ version });
        }
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
