/** Queries that several services share. */
import type { EntityManager, EntitySchema, InferEntity } from '@portico/sdk/db';

import type { entities, Row } from './entities.ts';

/** How rows are found. */
export interface FindOptions {
    readonly orderBy?: Readonly<Record<string, 'asc' | 'desc'>>;
    readonly limit?: number;
    /** Reads them anew, also where this entity manager has read them already. */
    readonly refresh?: boolean;
}

/** Finds rows of a table. In a write, changes of the rows are saved. */
export async function findRows<Table extends (typeof entities)[number]>(
    em: EntityManager,
    table: Table,
    where: object,
    options: FindOptions = {}
): Promise<Row<InferEntity<Table>>[]> {
    const rows: unknown = await em.find(table as EntitySchema<object>, where, options);
    // The entity's type allows undefined in a nullable column; the database gives null.
    return rows as Row<InferEntity<Table>>[];
}
