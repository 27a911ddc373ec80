import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { definePlugin } from '@portico/sdk';
import { defineEntity, findRow, findRows, type InferEntity, p, type Row } from '@portico/sdk/db';
import { createTestHost } from '@portico/testing';

export const lab = Lab.script();
const { describe, it } = lab;

const Todo = defineEntity({
    name: 'Todo',
    tableName: 'todos_todos',
    properties: { id: p.integer().primary(), title: p.string(), doneAt: p.integer().nullable() }
});
type TodoRow = Row<InferEntity<typeof Todo>>;

const todos = [
    { id: 1, title: 'buy tea', doneAt: null },
    { id: 2, title: 'boil water', doneAt: 5 },
    { id: 3, title: 'wait', doneAt: null }
] satisfies TodoRow[];

describe('findRows and findRow', () => {
    it('read rows with null in an empty column, in an order and of a number, and save what a write changes in them', async () => {
        const seen = new Map<string, unknown>();
        const definition = definePlugin({
            entities: [Todo],
            migrations: [
                {
                    name: '0001-todos',
                    up: [
                        'create table todos_todos (id integer primary key, title text not null, done_at integer)'
                    ]
                }
            ],
            async setup({ db }) {
                await db.write((em) => em.insertMany(Todo, todos));
                const all = (): Promise<TodoRow[]> =>
                    db.read((em) => findRows(em, Todo, {}, { orderBy: { id: 'desc' } }));
                seen.set(
                    'all',
                    (await all()).map((row) => ({ ...row }))
                );
                seen.set(
                    'page',
                    await db.read(async (em) =>
                        (await findRows(em, Todo, {}, { orderBy: { id: 'asc' }, offset: 1, limit: 1 })).map(
                            ({ id }) => id
                        )
                    )
                );
                seen.set('none', await db.read((em) => findRows(em, Todo, { title: 'sleep' })));
                seen.set('no row', await db.read((em) => findRow(em, Todo, 4)));
                await db.write(async (em) => {
                    const byKey = await findRow(em, Todo, 1);
                    const byField = await findRow(em, Todo, { title: 'wait' });
                    const [other] = await findRows(em, Todo, { doneAt: { $ne: null } });
                    Object.assign(byKey ?? {}, { doneAt: 7 });
                    Object.assign(byField ?? {}, { doneAt: 8 });
                    Object.assign(other ?? {}, { doneAt: null });
                });
                seen.set(
                    'changed',
                    (await all()).map(({ id, doneAt }) => [id, doneAt])
                );
            }
        });
        const host = await createTestHost(definition, { quiet: true });
        await host.close();
        expect(seen.get('all')).to.equal(todos.toReversed());
        expect(seen.get('page')).to.equal([2]);
        expect(seen.get('none')).to.equal([]);
        expect(seen.get('no row')).to.be.null();
        expect(seen.get('changed')).to.equal([
            [3, 8],
            [2, null],
            [1, 7]
        ]);
    });
});
