/** Exceptions to the policy, each on record with its reason and who allowed it. */
import { errors } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import { ExceptionEntity, type ExceptionRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import type { Exception } from './judge.ts';

/** The exceptions of a container or stack. */
export interface ExceptionRecord {
    readonly subject: string;
    readonly allow: readonly Exception[];
    readonly reason: string;
    readonly by: string | null;
    readonly at: number;
}

/** Tells `container:NAME` and `stack:NAME`. */
export const isSubject = (text: string): boolean =>
    /^(container|stack):[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$/.test(text);

/** Keeps what an admin allows beyond the policy, by container or stack. */
export class Exceptions {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    async list(): Promise<readonly ExceptionRecord[]> {
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, ExceptionEntity, {}, { orderBy: { subject: 'asc' } })
        );
        return rows.map(recordOf);
    }

    async of(subject: string): Promise<readonly Exception[]> {
        const row = await this.#ctx.db.read((em) => findRow(em, ExceptionEntity, { subject }));
        return row === null ? [] : recordOf(row).allow;
    }

    /** Sets all exceptions of a subject. */
    async set(record: Omit<ExceptionRecord, 'at'>): Promise<ExceptionRecord> {
        const row = {
            subject: record.subject,
            allowed: JSON.stringify(record.allow),
            reason: record.reason,
            setBy: record.by,
            setAt: Date.now()
        };
        await this.#ctx.db.write(async (em) => void (await em.upsert(ExceptionEntity, row)));
        return recordOf(row);
    }

    /** @throws NOT_FOUND 40400 */
    async remove(subject: string): Promise<ExceptionRecord> {
        const row = await this.#ctx.db.write(async (em) => {
            const found = await findRow(em, ExceptionEntity, { subject });
            await em.nativeDelete(ExceptionEntity, { subject });
            return found;
        });
        if (row === null) {
            throw errors.notFound('There is no exception for that subject');
        }
        return recordOf(row);
    }
}

function recordOf({ subject, allowed, reason, setBy, setAt }: ExceptionRow): ExceptionRecord {
    return { subject, allow: JSON.parse(allowed) as readonly Exception[], reason, by: setBy, at: setAt };
}
