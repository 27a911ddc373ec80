/** The route that clones a database. */
import { joi, reply } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { databaseParams, existingName, newName } from './parameters.ts';

const ruleWords = {
    null: 'Empty',
    fixed: 'A fixed value',
    hash: 'A code made from it',
    email: 'An address at example.com',
    name: 'Another name',
    phone: 'Other digits',
    shuffle: 'The value of another row'
} as const;
const maskSchema = joi.object({
    table: existingName().required().label('Table'),
    schema: existingName().label('Schema').description('Default: public; MySQL has none'),
    column: existingName().required().label('Column'),
    rule: joi.choice(ruleWords).required().label('Becomes'),
    value: joi.string().max(10_000).allow('').label('Value').description('For a fixed value')
});

/** Registers `clone` of databases. */
export function registerCloneRoutes(ctx: Ctx, { clones }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/databases/{db}/clone',
        id: 'cloneDatabase',
        access: 'write',
        summary: 'Clone a database',
        description:
            'Into a new one on the same server, without the accounts that may use it. Rows are masked before the new database has them, and columns that refer to a masked one are masked alike. The same value becomes the same one in all clones of a server; what is unique stays unique.',
        answers: 'task',
        ui: { title: 'Clone', role: 'action' },
        returns: joi.any(),
        audit: { action: 'clone', resource: 'database' },
        validate: {
            params: databaseParams,
            payload: joi.object({
                name: newName(),
                mask: joi
                    .array()
                    .items(maskSchema)
                    .max(500)
                    .default([])
                    .label('Masked columns')
                    .description('What stands in their place'),
                rows: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(1_000_000_000)
                    .allow(null)
                    .default(null)
                    .label('Rows of each table')
                    .description(
                        'At most; rows that refer to others that are left out are left out, too. Default: all'
                    )
            })
        },
        async handler({ params, payload, actor, audit }) {
            const { name, mask, rows } = payload;
            audit({
                resourceId: `${params.id}/${name}`,
                after: {
                    from: params.db,
                    rows,
                    mask: mask.map(({ table, column, rule }) => ({ table, column, rule }))
                }
            });
            return reply.accepted(await clones.begin(params.id, params.db, { name, mask, rows }, actor));
        }
    });
}
