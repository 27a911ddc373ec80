/**
 * Fills the search index in batches after commits: `audit_facets` with a row for each entry, `audit_words` with a document for each block of
 * entries. The search reads entries that are not indexed yet themselves, so a batch may be late.
 */
import type { Database } from '../../../platform/database/database.ts';
import { Writer } from '../../../platform/database/writer.ts';

/** Entries in one document of the word index. */
export const blockSize = 128;
/** Entries without facets that start a batch. */
const batchSize = 128;
/** Entries of one transaction; it completes at most one block. */
const mostAtOnce = blockSize;

const facetsSql = `insert or ignore into audit_facets (id, actor_id, username, action, resource, resource_id, outcome, late)
    select id, actor_id, username, action, resource, resource_id, outcome, late from audit_entries where id > ? and id <= ?`;
const wordsSql = `insert into audit_words (rowid, text)
    select ?, group_concat(coalesce(username, '') || char(10) || action || char(10) || resource || char(10) || coalesce(resource_id, '') || char(10) || coalesce(ip, '')
        || char(10) || coalesce(request_id, '') || char(10) || coalesce(user_agent, '') || char(10) || coalesce(changes, ''), char(10)) from audit_entries where id > ? and id <= ?`;

/** Keeps the search index of the audit log up to date. */
export class Indexer {
    readonly #db: Database;
    readonly #failed: (error: unknown) => void;
    readonly #writer = new Writer();
    #facets: number;
    #blocks: number;
    #running: Promise<void> | null = null;
    #closed = false;
    #head = 0;

    constructor(db: Database, failed: (error: unknown) => void) {
        this.#db = db;
        this.#failed = failed;
        const { facets, blocks } = db
            .prepare<[], { facets: number; blocks: number }>('select facets, blocks from audit_indexed')
            .get() ?? { facets: 0, blocks: 0 };
        this.#facets = facets;
        this.#blocks = blocks;
    }

    /** Entries up to this one have facets. */
    get facets(): number {
        return this.#facets;
    }

    /** Blocks below this one have words; block `n` holds the entries from `n * blockSize + 1`. */
    get blocks(): number {
        return this.#blocks;
    }

    /** To be called outside a transaction after the chain got longer. */
    advance(head: number): void {
        this.#head = head;
        if (this.#running === null && !this.#closed && head - this.#facets >= batchSize) {
            this.#running = this.#run()
                .catch(this.#failed)
                .finally(() => {
                    this.#running = null;
                });
        }
    }

    async close(): Promise<void> {
        this.#closed = true;
        await this.#running;
    }

    async #run(): Promise<void> {
        while (!this.#closed && this.#head - this.#facets >= batchSize) {
            const upTo = Math.min(this.#head, this.#facets + mostAtOnce);
            const block = upTo >= (this.#blocks + 1) * blockSize ? this.#blocks : null;
            await this.#db.write(async (tx) => {
                (await this.#writer.statement(tx, facetsSql)).run(this.#facets, upTo);
                if (block !== null) {
                    (await this.#writer.statement(tx, wordsSql)).run(
                        block,
                        block * blockSize,
                        (block + 1) * blockSize
                    );
                }
                (await this.#writer.statement(tx, 'update audit_indexed set facets = ?, blocks = ?')).run(
                    upTo,
                    block === null ? this.#blocks : block + 1
                );
                tx.afterCommit(() => {
                    this.#facets = upTo;
                    this.#blocks = block === null ? this.#blocks : block + 1;
                });
            });
        }
    }
}
