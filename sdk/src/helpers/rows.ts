/** Rows of a plugin's tables, typed as the database gives them. */
import type { EntityManager, EntityName, FilterQuery, FindOptions } from '@mikro-orm/sqlite';

/** A row of a table, of the type of its entity: `Row<InferEntity<typeof NoteEntity>>`. Every column is there; one without a value is null, where the type of the entity also says undefined. */
export type Row<Entity> = {
    -readonly [K in keyof Entity as K extends symbol ? never : K]-?: Exclude<Entity[K], undefined>;
};

/** Order and size of an answer. `refresh` reads rows anew that this entity manager has read before. */
export type RowOptions<Entity> = Pick<FindOptions<Entity>, 'orderBy' | 'limit' | 'offset' | 'refresh'>;

/** Finds the rows of a table that match `where`, of which an empty object matches all. In a write, what is changed in them is saved. */
export async function findRows<Entity extends object>(
    em: EntityManager,
    table: EntityName<Entity>,
    where: FilterQuery<NoInfer<Entity>>,
    options: RowOptions<Entity> = {}
): Promise<Row<Entity>[]> {
    const rows: unknown = await em.find<Entity>(table, where, options);
    return rows as Row<Entity>[]; // a column that was read is null, never undefined
}

/** Finds the row of a table whose key is `where`, or that matches it; null when there is none. In a write, what is changed in it is saved. */
export async function findRow<Entity extends object>(
    em: EntityManager,
    table: EntityName<Entity>,
    where: FilterQuery<NoInfer<Entity>>
): Promise<Row<Entity> | null> {
    const row: unknown = await em.findOne<Entity>(table, where);
    return row as Row<Entity> | null; // as in `findRows`
}
