/** Routes of accounts with an end. */
import { joi, pages, reply } from '@portico/sdk';

import type { CredentialRow } from '../../entities.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { existingName, serverId, serverParams } from '../parameters.ts';

const shortest = 5;
const longest = 30 * 86_400;
const levelWords = {
    read: 'Read rows',
    write: 'Read and change rows',
    owner: 'Change tables as well'
} as const;
const fields = {
    id: joi.number().integer().required().label('Number'),
    account: joi
        .string()
        .required()
        .label('Account')
        .meta({ ui: { column: 1 } }),
    database: joi
        .string()
        .required()
        .label('Database')
        .meta({ ui: { column: 2 } }),
    level: joi.choice(levelWords).required().label('Level'),
    createdAt: joi.string().isoDate().required().label('Made'),
    expiresAt: joi
        .string()
        .isoDate()
        .required()
        .label('Ends')
        .meta({ ui: { column: 3 } })
};
const madeSchema = joi.object({
    ...fields,
    username: joi.string().required().label('Name'),
    password: joi.string().required().label('Password').description('Shown this once'),
    uri: joi.string().required().label('Address').description('Without the password')
});

function viewOf({ id, account, database, level, createdAt, expiresAt }: CredentialRow) {
    return {
        id,
        account,
        database,
        level,
        createdAt: new Date(createdAt).toISOString(),
        expiresAt: new Date(expiresAt).toISOString()
    };
}

/** Registers the routes below `/servers/{id}/credentials`. */
export function registerCredentialRoutes(ctx: Ctx, { credentials, servers }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/credentials',
        id: 'credentials',
        access: 'read',
        summary: 'Accounts with an end',
        ui: { title: 'Credentials', order: 4, label: 'account', empty: 'No credential yet' },
        returns: joi.array().items(joi.object(fields)),
        validate: { params: serverParams, query: joi.object(pages.query()) },
        async handler({ params, query }) {
            await servers.get(params.id);
            const { rows, page } = pages.sorted(await credentials.list(params.id), query, ({ id }) => id);
            return reply.list(rows.map(viewOf), page);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/credentials',
        id: 'createCredential',
        access: 'secrets',
        summary: 'Make an account with an end',
        description:
            'Its password is in this answer only. When its time has come, its sessions end and it is removed.',
        answers: 'made',
        secret: true,
        ui: { title: 'New credential', primary: true },
        returns: madeSchema,
        audit: { action: 'create', resource: 'credential' },
        validate: {
            params: serverParams,
            payload: joi.object({
                database: existingName().required().label('Database'),
                level: joi.choice(levelWords).default('read').label('Level'),
                ttlSeconds: joi
                    .number()
                    .integer()
                    .min(shortest)
                    .max(longest)
                    .required()
                    .label('Good for')
                    .unit('second')
            })
        },
        async handler({ params, payload, audit }) {
            const { row, username, password, uri } = await credentials.create(params.id, payload);
            audit({ resourceId: `${params.id}/${row.account}`, after: viewOf(row) });
            const path = `/api/plugins/${ctx.name}/servers/${params.id}/credentials/${row.id}`;
            return reply.created(path, { ...viewOf(row), username, password, uri });
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/servers/{id}/credentials/{cid}',
        id: 'removeCredential',
        access: 'secrets',
        summary: 'End a credential',
        answers: 'done',
        ui: { title: 'End', confirm: 'End this credential? Programs that use it lose their login.' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'credential' },
        validate: {
            params: joi.object({
                id: serverId,
                cid: joi.number().integer().min(1).required().label('Credential')
            })
        },
        async handler({ params, audit }) {
            audit({ resourceId: `${params.id}/${params.cid}` });
            await credentials.remove(params.id, params.cid);
            return null;
        }
    });
}
