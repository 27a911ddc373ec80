/** Routes of what the engine uses of the disk. */
import { joi, reply, taskSchema } from '@portico/sdk';

import { pruneKinds } from '../../prune/prune.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

const usage = (label: string) =>
    joi
        .object({
            count: joi.number().integer().required().label('Number'),
            bytes: joi.number().required().label('Size').unit('byte'),
            reclaimableBytes: joi.number().required().label('Used for nothing').unit('byte')
        })
        .required()
        .label(label);
const pruned = joi.object({
    items: joi
        .array()
        .items(
            joi.object({
                kind: joi
                    .valid(...pruneKinds)
                    .required()
                    .label('Kind'),
                id: joi.string().required().label('Id'),
                name: joi.string().required().label('Name'),
                bytes: joi.number().required().label('Size').unit('byte')
            })
        )
        .required()
        .label('What goes'),
    bytes: joi.number().required().label('Size').unit('byte'),
    list: joi.string().required().label('List').description('Names this list: what removes it sends it')
});

/** Registers the routes of usage and pruning. */
export function registerPruneRoutes(ctx: Ctx, { prune }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/usage',
        id: 'usage',
        access: 'read',
        summary: 'What the engine uses of the disk',
        timeoutSeconds: 130,
        ui: { title: 'Disk', role: 'card', order: 9 },
        returns: joi.object({
            images: usage('Images'),
            containers: usage('Containers'),
            volumes: usage('Volumes'),
            buildCache: usage('Cache of builds')
        }),
        handler: () => prune.usage()
    });
    ctx.route({
        method: 'POST',
        path: '/prune',
        id: 'prune',
        access: 'write',
        summary: 'Remove what is used for nothing',
        description:
            'With `dryRun`, 200 says what would go, and nothing does. Send the `list` of that answer with the same input, and exactly what it showed goes; 41200 when that is another list by now. Without `list`, what is used for nothing at that moment goes. What belongs to a stack or a plugin, and images that a revision could go back to, never go. Without `all`, images and volumes with a name stay.',
        answers: ['done', 'task'],
        timeoutSeconds: 130,
        effect: 'destructive',
        ui: { title: 'Prune', confirm: 'Remove what is used for nothing?' },
        returns: joi.alternatives(pruned, taskSchema),
        audit: { action: 'prune', resource: 'engine' },
        validate: {
            payload: joi.object({
                what: joi
                    .array()
                    .items(
                        joi.choice({
                            containers: 'Containers that ended',
                            images: 'Images',
                            networks: 'Networks',
                            volumes: 'Volumes',
                            buildCache: 'The cache of builds'
                        })
                    )
                    .min(1)
                    .required()
                    .label('What'),
                all: joi.boolean().default(false).label('Also those with a name'),
                olderThanHours: joi
                    .number()
                    .integer()
                    .min(0)
                    .max(87_600)
                    .default(0)
                    .label('Older than')
                    .unit('hour'),
                dryRun: joi.boolean().default(false).label('Only say what would go'),
                list: joi.string().max(64).optional().label('List').description('Of the dry run')
            })
        },
        async handler({ payload: { dryRun, list, ...input }, actor, audit }) {
            if (dryRun) {
                const { items, ...found } = await prune.find(input);
                return { items: [...items], ...found };
            }
            audit({ after: input });
            return reply.accepted(await prune.begin(input, list, actor));
        }
    });
}
