/** Holds a plugin's entities against the tables that its migrations made: a difference shows only when a row is read or written. */
import type { PluginDefinition } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import type { TestHost } from '../panel/host.ts';
import { errorOf, type Finding } from './finding.ts';

/** A column, as SQLite tells it. */
interface Column {
    readonly name: string;
    readonly notnull: 0 | 1;
    readonly dflt_value: string | null;
    readonly pk: number;
}

type Entity = ReturnType<EntityManager['getMetadata']>;

const mend = 'Make both say the same: add a migration, or change the entity';

/** Compares each entity with its table. The database has all migrations. */
export async function checkEntities(
    host: TestHost,
    { entities }: PluginDefinition
): Promise<readonly Finding[]> {
    if (entities.length === 0) {
        return [];
    }
    return host.db.read(async (em) => {
        const findings: Finding[] = [];
        for (const entity of em.getMetadata().getAll().values()) {
            if (!entity.virtual && !entity.embeddable && !entity.abstract) {
                const columns = await em.execute<Column[]>('select * from pragma_table_info(?)', [
                    entity.tableName
                ]);
                findings.push(
                    ...differencesOf(entity, columns).map((message) =>
                        errorOf('database', entity.tableName, message, mend)
                    )
                );
            }
        }
        return findings;
    });
}

function differencesOf(entity: Entity, columns: readonly Column[]): readonly string[] {
    if (columns.length === 0) {
        return [`No migration makes this table of the entity ${entity.className}`];
    }
    const messages: string[] = [];
    const known = new Set<string>();
    for (const { name, fieldNames = [], nullable = false, persist, formula } of entity.props) {
        const isStored = persist !== false && formula === undefined;
        for (const field of isStored ? fieldNames : []) {
            known.add(field);
            const column = columns.find((each) => each.name === field);
            if (column === undefined) {
                messages.push(`The property ${entity.className}.${name} has no column ${field}`);
            } else if (column.pk === 0 && nullable !== (column.notnull === 0)) {
                messages.push(
                    nullable
                        ? `The property ${entity.className}.${name} is nullable, and the column ${field} is not null`
                        : `The column ${field} may be null, and the property ${entity.className}.${name} is not nullable`
                );
            }
        }
    }
    for (const { name, notnull, dflt_value: initial, pk } of columns) {
        if (!known.has(name) && notnull === 1 && initial === null && pk === 0) {
            messages.push(
                `The column ${name} is not null and has no default, and no property of ${entity.className} fills it`
            );
        }
    }
    return messages;
}
