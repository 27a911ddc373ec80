/** Routes of recorded terminals. */
import { joi, pages, reply } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { recordingSchema } from '../terminals/recordings.ts';

const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Recording')
        .meta({ ui: { ref: 'filemanager.recordings' } })
});

/** Registers the routes of recordings. */
export function registerRecordingRoutes(ctx: Ctx, { recordings }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/recordings',
        id: 'recordings',
        access: 'recordings',
        summary: 'Recorded terminals',
        ui: { title: 'Recordings', order: 10, label: 'id', empty: 'Nothing was recorded' },
        returns: joi.array().items(recordingSchema),
        description: 'Newest first. Whether terminals are recorded is a setting.',
        validate: { query: joi.object(pages.query()) },
        async handler({ query }) {
            const found = await recordings.list(query.limit, pages.afterNumber(query));
            const { rows, page } = pages.read(found, query.limit, ({ id }) => id);
            return reply.list(
                rows.map((row) => recordings.view(row)),
                page
            );
        }
    });
    ctx.download({
        path: '/recordings/{id}',
        id: 'recording',
        access: 'recordings',
        summary: 'Download a recording',
        ui: { title: 'Download' },
        description:
            'As asciicast v2, which asciinema plays. Of a terminal that is open: what it has shown so far.',
        validate: { params },
        async handler({ params: { id }, actor }) {
            const file = await recordings.open(id);
            await ctx.audit({ action: 'read', resource: 'recording', resourceId: id, actor });
            return file;
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/recordings/{id}',
        id: 'removeRecording',
        access: 'recordings',
        summary: 'Remove a recording',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this recording for good?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'recording' },
        validate: { params },
        async handler({ params: { id }, audit }) {
            const { username, started } = await recordings.remove(id);
            audit({ resourceId: id, before: { username, startedAt: new Date(started).toISOString() } });
            return null;
        }
    });
}
