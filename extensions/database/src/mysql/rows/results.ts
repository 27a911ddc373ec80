/** The rows of a statement of a user, as they come. */
import type { Connection, FieldPacket, Query, ResultSetHeader } from 'mysql2';

import type { Cell, Column, ResultStream } from '../../kinds/kind.ts';
import { failureOf } from '../failures.ts';
import { cellOf, columnOf } from './cells.ts';

/** What one batch holds at most, but for its last row. */
const batchRows = 1_000;
const batchBytes = 512 * 1024;
/** What a cell takes beside a text. */
const cellBytes = 8;

type Batch = readonly (readonly Cell[])[];

/** Gathers rows in batches. The connection reads no further while a whole one waits to be taken, so the server waits, too. */
export class Results implements ResultStream {
    readonly columns: Column[] = [];
    readonly #connection: Connection;
    readonly #began = Promise.withResolvers<void>();
    #affected: number | null = null;
    #batch: Cell[][] = [];
    #bytes = 0;
    #isEnded = false;
    #failure: Error | null = null;
    #wake: () => void = () => undefined;

    constructor(connection: Connection, command: Query) {
        this.#connection = connection;
        command.on('fields', (fields: FieldPacket[] | undefined) => {
            if (this.columns.length === 0) {
                this.columns.push(...(fields ?? []).map(columnOf));
            }
            this.#began.resolve();
        });
        command.on('result', (row: unknown[] | ResultSetHeader) => this.#take(row));
        command.on('error', (error: Error) => this.fail(error));
        command.on('end', () => this.#end());
    }

    /** Waits until the columns are known, or the statement has failed. */
    async begun(): Promise<this> {
        await this.#began.promise;
        if (this.#failure !== null) {
            throw failureOf(this.#failure);
        }
        return this;
    }

    affected(): number | null {
        return this.#affected;
    }

    get batches(): AsyncGenerator<Batch> {
        return this.#read();
    }

    /** Ends it with a failure: the driver does not tell when the connection is closed from this side. */
    fail(error: Error): void {
        this.#failure ??= error;
        this.#end();
    }

    async *#read(): AsyncGenerator<Batch> {
        for (;;) {
            if (this.#batch.length < batchRows && this.#bytes < batchBytes && !this.#isEnded) {
                await new Promise<void>((resolve) => (this.#wake = resolve));
            }
            if (this.#failure !== null) {
                throw failureOf(this.#failure);
            }
            const batch = this.#batch;
            this.#batch = [];
            this.#bytes = 0;
            if (batch.length > 0) {
                yield batch;
            }
            if (this.#isEnded && this.#batch.length === 0) {
                return;
            }
            this.#connection.resume();
        }
    }

    #take(row: unknown[] | ResultSetHeader): void {
        if (!Array.isArray(row)) {
            this.#affected = row.affectedRows;
            return;
        }
        const cells: Cell[] = [];
        for (let at = 0; at < row.length; at += 1) {
            const cell = cellOf(row[at], this.columns[at]?.type ?? '');
            cells.push(cell);
            this.#bytes += typeof cell === 'string' ? cell.length : cellBytes;
        }
        this.#batch.push(cells);
        if (this.#batch.length >= batchRows || this.#bytes >= batchBytes) {
            this.#connection.pause();
            this.#wake();
        }
    }

    #end(): void {
        this.#isEnded = true;
        this.#began.resolve();
        this.#wake();
    }
}
