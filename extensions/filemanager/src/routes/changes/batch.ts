/** The route that does one thing with many entries. */
import { type Actor, errors, joi, taskSchema } from '@portico/sdk';

import { type BatchAction, batchSchema, requireFolder } from '../../batch/batch.ts';
import { location, parsePath, pathSchema } from '../../roots/path.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { acceptTask, throttledProgress } from '../../task-replies.ts';
import { onConflictSchema } from '../locations.ts';
import { accountSchema, bitsSchema, parseBits, parseOwner } from './permissions.ts';

const payloadSchema = joi.object({
    action: joi
        .choice({
            move: 'Move',
            copy: 'Copy',
            trash: 'Move to the trash',
            delete: 'Remove for good',
            mode: 'Set permissions',
            owner: 'Set owner and group'
        })
        .required()
        .label('What is done'),
    items: joi
        .array()
        .items(location)
        .min(1)
        .max(10_000)
        .required()
        .label('Entries')
        .description('Below any roots that you may reach'),
    to: location
        .keys({ path: pathSchema.default('') })
        .optional()
        .label('To')
        .description('The folder that entries are moved or copied to'),
    onConflict: onConflictSchema,
    mode: bitsSchema,
    owner: accountSchema.label('Owner').meta({ ui: { widget: 'account' } }),
    group: accountSchema.label('Group')
});
type Payload = ReturnType<typeof payloadSchema.validate>['value'];

/** Registers the route that does one thing with many entries. */
export function registerBatchRoutes(ctx: Ctx, services: Services): void {
    const { batch } = services;
    ctx.route({
        method: 'POST',
        path: '/batch',
        id: 'batch',
        access: 'write',
        summary: 'Do one thing with many entries',
        ui: {
            title: 'Several at once',
            role: 'action',
            confirm: 'Do this with all of these entries?'
        },
        returns: joi.alternatives(batchSchema, taskSchema),
        effect: 'destructive',
        audit: { action: 'update', resource: 'files' },
        maxBytes: 64 * 2 ** 20,
        timeoutSeconds: 120,
        description:
            'What fails for one entry does not touch the others; the result says for each what became of it, and the failed ones can be sent again. Between roots and file systems an entry is copied, the copy is verified, and then the source is removed. More than 200 entries, or than 500 files and 32 MiB to copy, become a task with the same result (202).',
        validate: { payload: payloadSchema },
        async handler({ payload, actor, audit, signal }) {
            const { items } = payload;
            const action = await readAction(services, actor, payload);
            audit({
                resourceId: `${items.length} entries`,
                after: {
                    action: payload.action,
                    to: payload.to,
                    items: items.slice(0, 100).map(({ root, path }) => `${root}:${path}`)
                }
            });
            if (!(await batch.isLarge(actor, items, action))) {
                return batch.run(actor, items, action, { signal, step: () => undefined });
            }
            const description = {
                kind: 'batch',
                title: `${titles[payload.action]} ${items.length} entries`,
                actor,
                resource: payload.to === undefined ? 'files' : `${payload.to.root}:${payload.to.path}`
            };
            return acceptTask(ctx, description, (run) => {
                const progress = throttledProgress(run);
                return batch.run(actor, items, action, {
                    signal: run.signal,
                    step: (done) => progress(done / items.length)
                });
            });
        }
    });
}

const titles: Readonly<Record<Payload['action'], string>> = {
    move: 'Move',
    copy: 'Copy',
    trash: 'Remove',
    delete: 'Remove for good',
    mode: 'Set permissions of',
    owner: 'Set the owner of'
};

/** @throws VALIDATION_FAILED 40001 when what the action needs is missing; and as the target's root and folder */
async function readAction(
    { roots, accounts }: Services,
    actor: Actor,
    { action, to, onConflict, mode, owner, group }: Payload
): Promise<BatchAction> {
    switch (action) {
        case 'move':
        case 'copy': {
            if (to === undefined) {
                throw errors.invalid([{ path: 'to', message: 'to is needed' }]);
            }
            const place = { root: roots.forChange(actor, to.root), path: parsePath(to.path, 'to.path') };
            await requireFolder(place);
            return { kind: action, to: place, onConflict };
        }
        case 'mode':
            if (mode === undefined) {
                throw errors.invalid([{ path: 'mode', message: 'mode is needed' }]);
            }
            return { kind: action, change: { mode: parseBits(mode) } };
        case 'owner':
            return { kind: action, change: await parseOwner(accounts, { owner, group }) };
        default:
            return { kind: action };
    }
}
