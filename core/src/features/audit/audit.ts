/** The audit log: writes entries into the chain, finds them, proves the chain, and prunes what is too old. */
import { AsyncLocalStorage } from 'node:async_hooks';

import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keyring.ts';
import type { Logger } from '../../platform/log.ts';
import type { AuditEntry, Recorder } from '../../server/http/ports.ts';
import { Chain, emptyChain } from './chain/chain.ts';
import { findBreak } from './chain/find-break.ts';
import { type Head, type HeadFile, openHead, readHead } from './chain/head.ts';
import { auditKeys, type CheckpointRow } from './chain/keys.ts';
import { pruneAudit } from './chain/prune.ts';
import { type Verification, verifyChain } from './chain/verify.ts';
import { draftOf, type EntryRow, type EntryView, viewOf } from './entry/row.ts';
import { Refusals } from './refusals.ts';
import { Indexer } from './search/indexer.ts';
import { type AuditFilter, Search } from './search/search.ts';

export interface Audit extends Recorder {
    /** Newest first. `total` only where it is known without counting. */
    list(
        filter: AuditFilter,
        page: { readonly limit: number; readonly before: number | null; readonly signal?: AbortSignal }
    ): Promise<AuditList>;
    /** @throws NOT_FOUND 40400 */
    get(id: number): EntryView;
    /** Walks the whole chain; calls at the same time share one walk. */
    verify(): Promise<Verification>;
    /** Every entry that is there now and matches, oldest first, read as it is consumed. */
    export(filter: AuditFilter, signal?: AbortSignal): AsyncGenerator<EntryView>;
    /** Removes what is older than the retention; also done by itself every hour. Returns how many entries went. */
    prune(): Promise<number>;
    /** Entries of the panel's own work. */
    recordOwn(
        entry: Pick<AuditEntry, 'action' | 'resource' | 'resourceId' | 'before' | 'after'> & {
            readonly failed?: boolean;
        }
    ): Promise<void>;
    head(): Head;
    /** Writes what is still counted. */
    close(): Promise<void>;
}

export interface AuditList {
    readonly entries: readonly EntryView[];
    /** Number after which the next page goes on; null at the end. */
    readonly next: number | null;
    readonly total: number | undefined;
}

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
const nobody = { id: null, username: null, tokenId: null, plugin: null };

/** Opens the log. A break between the database and its head file becomes an entry of its own, so that the evidence outlives the next write. */
export async function createAudit(options: AuditOptions): Promise<Audit> {
    const log = new Log(options);
    await log.start();
    return log;
}

class Log implements Audit {
    readonly #options: AuditOptions;
    readonly #keys: ReturnType<typeof auditKeys>;
    readonly #headFile: HeadFile;
    readonly #chain: Chain;
    readonly #indexer: Indexer;
    readonly #search: Search;
    readonly #refusals: Refusals;
    readonly #one: ReturnType<Database['prepare']>;
    readonly #broken: ReturnType<typeof findBreak>;
    /** Work that follows a commit must not believe that it is still inside of it. */
    readonly #outside = AsyncLocalStorage.snapshot();
    readonly #timers: NodeJS.Timeout[] = [];
    #verifying: Promise<Verification> | null = null;
    #pruning: Promise<number> | null = null;
    readonly #closing = new AbortController();

    constructor(options: AuditOptions) {
        const { db, clock, log } = options;
        this.#options = options;
        this.#keys = auditKeys(options.keyring);
        const stored = readHead(options.headFile, this.#keys.head);
        const last = db
            .prepare<[], Head>('select id as sequence, hash from audit_entries order by id desc limit 1')
            .get();
        const point = db
            .prepare<[], CheckpointRow>('select * from audit_checkpoints order by sequence desc limit 1')
            .get();
        const sealed =
            point?.kind === 'sealed' ? { sequence: point.sequence, hash: point.hash } : emptyChain.head;
        const head = last ?? sealed;
        this.#broken = findBreak({ source: db, keys: this.#keys, stored, head });
        this.#headFile = openHead(options.headFile, this.#keys.head);
        if (stored.state === 'missing' && head.sequence === 0) {
            this.#headFile.write(head);
            this.#headFile.flush();
        }
        this.#indexer = new Indexer(db, (error) =>
            log.error('The search index of the audit log could not be filled', { error })
        );
        this.#chain = new Chain({
            keys: this.#keys,
            headFile: { ...this.#headFile, write: (next) => this.#writeHead(next) },
            clock,
            start: {
                head,
                latest:
                    db
                        .prepare<[], { at: number }>('select at from audit_entries order by id desc limit 1')
                        .get()?.at ?? 0,
                checkpoint: Math.min(point?.sequence ?? 0, head.sequence)
            },
            advanced: (next) => this.#outside(() => this.#indexer.advance(next.sequence))
        });
        this.#search = new Search(db, this.#indexer, () => this.#chain.head.sequence);
        this.#one = db.prepare('select * from audit_entries where id = ?');
        this.#refusals = new Refusals({
            windowMs: options.refusalWindowMs ?? 60_000,
            failed: (error) => log.error('Counted refusals could not be recorded', { error }),
            write: (entries) =>
                this.#outside(() =>
                    db.write(async (tx) => {
                        for (const { entry, count } of entries) {
                            await this.#chain.append(tx, draftOf(entry, count));
                        }
                    })
                )
        });
    }

    async start(): Promise<void> {
        const { log } = this.#options;
        if (this.#broken !== null) {
            log.error('The audit log does not go on where it ended', this.#broken);
            await this.recordOwn({
                action: 'break',
                resource: 'audit',
                resourceId: this.#broken.id,
                after: this.#broken,
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

    async record(tx: Transaction, entry: AuditEntry): Promise<void> {
        await this.#chain.append(tx, draftOf(entry, 1));
        tx.afterCommit(() => this.#options.recorded?.(entry));
    }

    async recordAlone(entry: AuditEntry): Promise<void> {
        await this.#options.db.write((tx) => this.record(tx, entry));
    }

    async recordOwn({ failed = false, ...detail }: Parameters<Audit['recordOwn']>[0]): Promise<void> {
        await this.recordAlone({
            ...detail,
            actor: nobody,
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

    async list(
        filter: AuditFilter,
        page: { readonly limit: number; readonly before: number | null; readonly signal?: AbortSignal }
    ): Promise<AuditList> {
        const { before, limit, signal } = page;
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

    get(id: number): EntryView {
        const row = this.#one.get(id) as EntryRow | undefined;
        if (row === undefined) {
            throw fail.NOT_FOUND();
        }
        return viewOf(row);
    }

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

    head(): Head {
        return this.#chain.head;
    }

    async close(): Promise<void> {
        this.#timers.forEach((timer) => clearInterval(timer));
        this.#closing.abort();
        await Promise.allSettled([this.#verifying, this.#pruning]);
        await this.#refusals.close();
        await this.#checkpoint();
        await this.#indexer.close();
        this.#headFile.close();
    }

    async #checkpoint(): Promise<void> {
        if (this.#chain.unsigned) {
            await this.#options.db.write((tx) => this.#chain.checkpoint(tx));
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
