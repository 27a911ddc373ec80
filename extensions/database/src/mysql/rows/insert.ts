/** Rows into a table of MySQL. */
import type { StructureStatements } from '../../kinds/kind.ts';
import { quote } from '../names.ts';

/** The server takes 65,535 parameters at most. */
const mostParameters = 30_000;

/** Inserts rows as parameters of a statement. */
export const insert: StructureStatements['insert'] = async (
    session,
    { database, table },
    { names, rows }
) => {
    const head = `insert into ${quote(database)}.${quote(table)} (${names.map(quote).join(', ')}) values `;
    const line = `(${names.map(() => '?').join(', ')})`;
    const most = Math.max(1, Math.floor(mostParameters / names.length));
    for (let at = 0; at < rows.length; at += most) {
        const some = rows.slice(at, at + most);
        await session.run(head + some.map(() => line).join(', '), some.flat());
    }
};
