/** The audit log: writes entries into the chain, finds them, proves the chain, and prunes what is too old. */
import { AsyncLocalStorage } from 'node:async_hooks';

import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import type { Logger } from '../../platform/log/log.ts';
import type { AuditEntry, Recorder } from '../../server/http/ports.ts';
import { Chain, type ChainState, emptyChain } from './chain/chain.ts';
import { findBreak } from './chain/find-break.ts';
import { type Head, type HeadFile, openHead, readHead } from './chain/head.ts';
import { auditKeys, type CheckpointRow } from './chain/keys.ts';
import { pruneAudit } from './chain/prune.ts';
import { type Verification, verifyChain } from './chain/verify.ts';
import { AloneEntries } from './entry/alone.ts';
import { draftOf, type EntryRow, type EntryView, viewOf } from './entry/row.ts';
import { Refusals, type RefusalsOptions } from './refusals.ts';
import { Indexer } from './search/indexer.ts';
import { type AuditFilter, Search } from './search/search.ts';

/** An entry of the panel's own work, which no request caused. */
export type OwnEntry = Pick<AuditEntry, 'action' | 'resource' | 'resourceId' | 'before' | 'after'> & {
    readonly failed?: boolean;
};

/** Which part of the matching entries a list shows. */
export interface AuditPage {
    readonly limit: number;
    /** Only entries with a smaller number; null for the first page. */
    readonly before: number | null;
    readonly signal?: AbortSignal;
}

/** One page of entries, newest first. */
export interface AuditList {
    readonly entries: readonly EntryView[];
    /** `before` of the next page; null on the last page. */
    readonly next: number | null;
    /** How many entries match; undefined where that is not known without counting. */
    readonly total: number | undefined;
}

/** What the audit log is built from. */
export interface AuditOptions {
    readonly db: Database;
    readonly keyring: Pick<Keyring, 'derive'>;
    /** Path of the file that keeps the head of the chain: `audit.head` beside the database. */
    readonly headFile: string;
    readonly clock: Clock;
    readonly log: Logger;
    /** The setting `audit.retentionDays`. */
    readonly retentionDays: () => number;
    /** Called after the commit of each entry; must not throw. */
    readonly recorded?: (entry: AuditEntry) => void;
    /** How long equal refusals are counted, in milliseconds; default: a minute. */
    readonly refusalWindowMs?: number;
}

const checkpointMs = 5 * 60_000;
const pruneMs = 60 * 60_000;
const exportPage = 200;
const noActor = { id: null, username: null, tokenId: null, plugin: null };

/** The audit log: an append-only chain of entries, with its search and its housekeeping. */
export class Audit implements Recorder {
    readonly #options: AuditOptions;
    readonly #keys: ReturnType<typeof auditKeys>;
    readonly #headFile: HeadFile;
    readonly #chain: Chain;
    readonly #indexer: Indexer;
    readonly #search: Search;
    readonly #refusals: Refusals;
    readonly #alone: AloneEntries;
    readonly #byId: ReturnType<Database['prepare']>;
    /** What was wrong with the chain when the panel started. */
    readonly #break: ReturnType<typeof findBreak>;
    /** Runs work outside the transaction that is open: what follows a commit must not join it. */
    readonly #outside = AsyncLocalStorage.snapshot();
    readonly #timers: NodeJS.Timeout[] = [];
    #verifying: Promise<Verification> | null = null;
    #pruning: Promise<number> | null = null;
    readonly #closing = new AbortController();

    private constructor(options: AuditOptions) {
        const { db, log } = options;
        this.#options = options;
        this.#keys = auditKeys(options.keyring);
        const stored = readHead(options.headFile, this.#keys.head);
        const start = readChainState(db);
        this.#break = findBreak({ source: db, keys: this.#keys, stored, head: start.head });
        this.#headFile = openHead(options.headFile, this.#keys.head);
        if (stored.state === 'missing' && start.head.sequence === 0) {
            this.#headFile.write(start.head);
            this.#headFile.flush();
        }
        this.#indexer = new Indexer(db, (error) =>
            log.error('The search index of the audit log could not be filled', { error })
        );
        this.#chain = new Chain({
            keys: this.#keys,
            headFile: { ...this.#headFile, write: (next) => this.#writeHead(next) },
            clock: options.clock,
            start,
            advanced: (next) => this.#outside(() => this.#indexer.advance(next.sequence))
        });
        this.#search = new Search(db, this.#indexer, () => this.#chain.head.sequence);
        this.#byId = db.prepare('select * from audit_entries where id = ?');
        this.#alone = new AloneEntries((entries) =>
            db.write(async (tx) => {
                for (const entry of entries) {
                    await this.record(tx, entry);
                }
            })
        );
        this.#refusals = new Refusals({
            windowMs: options.refusalWindowMs ?? 60_000,
            failed: (error) => log.error('Counted refusals could not be recorded', { error }),
            write: (entries) => this.#outside(() => this.#writeCounted(entries))
        });
    }

    /**
     * Opens the log. A break between the database and its head file becomes an entry of its own: otherwise the next write would replace the
     * head file and with it the evidence.
     */
    static async open(options: AuditOptions): Promise<Audit> {
        const audit = new Audit(options);
        await audit.#start();
        return audit;
    }

    async record(tx: Transaction, entry: AuditEntry): Promise<void> {
        await this.#chain.append(tx, draftOf(entry, 1));
        tx.afterCommit(() => this.#options.recorded?.(entry));
    }

    recordAlone(entry: AuditEntry): Promise<void> {
        return this.#alone.add(entry);
    }

    /** Appends an entry of the panel's own work. */
    async recordOwn({ failed = false, ...detail }: OwnEntry): Promise<void> {
        await this.recordAlone({
            ...detail,
            actor: noActor,
            outcome: failed ? 'failure' : 'success',
            status: null,
            code: failed ? 50000 : 0,
            ip: null,
            userAgent: null,
            requestId: null
        });
    }

    refused(entry: AuditEntry): Promise<void> {
        return this.#refusals.add(entry);
    }

    /** Every action and every resource that entries name, sorted. */
    names(): { readonly actions: string[]; readonly resources: string[] } {
        return this.#search.names();
    }

    /** One page of the entries that match, newest first. */
    async list(filter: AuditFilter, { before, limit, signal }: AuditPage): Promise<AuditList> {
        const rows = await this.#search.find(filter, {
            order: 'newest',
            after: before,
            limit: limit + 1,
            ...(signal === undefined ? {} : { signal })
        });
        const more = rows.length > limit;
        const entries = rows.slice(0, limit);
        const filtered = Object.values(filter).some((value) => value !== undefined);
        const counted = before === null && !more ? rows.length : undefined;
        return {
            entries: entries.map(viewOf),
            next: more ? (entries.at(-1)?.id ?? null) : null,
            total: filtered ? counted : this.#chain.head.sequence - this.#search.first() + 1
        };
    }

    /** @throws NOT_FOUND 40400 */
    get(id: number): EntryView {
        const row = this.#byId.get(id) as EntryRow | undefined;
        if (row === undefined) {
            throw fail.NOT_FOUND();
        }
        return viewOf(row);
    }

    /** Checks the whole chain; calls at the same time share one check. */
    verify(): Promise<Verification> {
        this.#verifying ??= this.#outside(() =>
            verifyChain({
                source: this.#options.db,
                keys: this.#keys,
                head: { state: 'valid', head: this.#chain.head },
                signal: this.#closing.signal
            }).finally(() => {
                this.#verifying = null;
            })
        );
        return this.#verifying;
    }

    /** Every entry that exists now and matches, oldest first, read as it is consumed. */
    async *export(filter: AuditFilter, signal?: AbortSignal): AsyncGenerator<EntryView> {
        const end = this.#chain.head.sequence;
        for (let after: number | null = null; ;) {
            const rows: EntryRow[] = await this.#search.find(filter, {
                order: 'oldest',
                after,
                limit: exportPage,
                ...(signal === undefined ? {} : { signal })
            });
            for (const row of rows) {
                if (row.id > end) {
                    return;
                }
                yield viewOf(row);
            }
            after = rows.at(-1)?.id ?? end;
            if (rows.length < exportPage || after >= end) {
                return;
            }
        }
    }

    /** Removes what is older than the retention, as also happens every hour. Returns how many entries were removed. */
    prune(): Promise<number> {
        const before = this.#options.clock.now() - this.#options.retentionDays() * 86_400_000;
        this.#pruning ??= this.#outside(() =>
            pruneAudit({
                db: this.#options.db,
                chain: this.#chain,
                keys: this.#keys,
                before,
                signal: this.#closing.signal
            })
                .then(async (removed) => {
                    if (removed > 0) {
                        await this.recordOwn({
                            action: 'prune',
                            resource: 'audit',
                            after: { removed, before: new Date(before) }
                        });
                    }
                    return removed;
                })
                .finally(() => {
                    this.#pruning = null;
                })
        );
        return this.#pruning;
    }

    /** The last committed entry. */
    head(): Head {
        return this.#chain.head;
    }

    /** Ends the housekeeping, and writes refusals that are only counted so far. */
    async close(): Promise<void> {
        this.#timers.forEach((timer) => clearInterval(timer));
        this.#closing.abort();
        await Promise.allSettled([this.#verifying, this.#pruning]);
        try {
            await this.#refusals.close();
            await this.#alone.close();
            await this.#checkpoint();
        } finally {
            await this.#indexer.close();
            this.#headFile.close();
        }
    }

    async #start(): Promise<void> {
        const { log } = this.#options;
        if (this.#break !== null) {
            log.error('The audit log does not go on where it ended', this.#break);
            await this.recordOwn({
                action: 'break',
                resource: 'audit',
                resourceId: this.#break.id,
                after: this.#break,
                failed: true
            });
        }
        this.#indexer.advance(this.#chain.head.sequence);
        const failed = (error: unknown): void => log.error('Housekeeping of the audit log failed', { error });
        this.#timers.push(
            setInterval(() => void this.#checkpoint().catch(failed), checkpointMs).unref(),
            setInterval(() => void this.prune().catch(failed), pruneMs).unref()
        );
    }

    async #writeCounted(entries: Parameters<RefusalsOptions['write']>[0]): Promise<void> {
        await this.#options.db.write(async (tx) => {
            for (const { entry, count } of entries) {
                await this.#chain.append(tx, draftOf(entry, count));
            }
        });
    }

    async #checkpoint(): Promise<void> {
        if (this.#chain.unsigned) {
            await this.#options.db.writeEssential((tx) => this.#chain.checkpoint(tx));
        }
    }

    /** The entry is durable already: a head file that cannot be written is reported, and the next entry writes it again. */
    #writeHead(head: Head): void {
        try {
            this.#headFile.write(head);
        } catch (error) {
            this.#options.log.error('The head of the audit log could not be written beside the database', {
                error
            });
        }
    }
}

/** Where the chain stands in the database. After a full prune the newest seal carries the head. */
function readChainState(db: Database): ChainState {
    const last = db
        .prepare<[], Head & { at: number }>(
            'select id as sequence, hash, at from audit_entries order by id desc limit 1'
        )
        .get();
    const point = db
        .prepare<[], CheckpointRow>('select * from audit_checkpoints order by sequence desc limit 1')
        .get();
    const sealed =
        point?.kind === 'sealed' ? { sequence: point.sequence, hash: point.hash } : emptyChain.head;
    const head = last === undefined ? sealed : { sequence: last.sequence, hash: last.hash };
    return { head, latest: last?.at ?? 0, checkpoint: Math.min(point?.sequence ?? 0, head.sequence) };
}
