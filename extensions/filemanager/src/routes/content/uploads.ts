/** Routes of resumable uploads by tus 1.0. */
import { joi } from '@portico/sdk';

import { pathSchema, rootName } from '../../roots/path.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

const raw = 'tus 1.0 has its own headers, its own empty answers and its own statuses';
const maxBytes = 2 ** 40;

/** Registers the routes of tus 1.0. */
export function registerUploadRoutes(ctx: Ctx, services: Services): void {
    registerCollection(ctx, services);
    registerUpload(ctx, services);
}

function registerCollection(ctx: Ctx, { protocol }: Services): void {
    ctx.http({
        methods: ['OPTIONS', 'POST'],
        path: '/uploads',
        id: 'upload',
        access: 'write',
        summary: 'Begin a resumable upload',
        raw,
        maxBytes,
        description:
            'Where to: `root` and `path` as query parameters or in `Upload-Metadata`; `replace` there with the value `true` replaces a file.',
        validate: { query: joi.object({ root: rootName, path: pathSchema }) },
        handler: (request, call) => protocol.collection(request, call, call.query)
    });
}

function registerUpload(ctx: Ctx, { protocol }: Services): void {
    ctx.http({
        methods: ['OPTIONS', 'HEAD', 'PATCH', 'DELETE'],
        path: '/uploads/{id}',
        id: 'uploadPart',
        access: 'write',
        summary: 'Continue, ask about or give up an upload',
        raw,
        maxBytes,
        validate: {
            params: joi.object({
                id: joi
                    .string()
                    .pattern(/^[0-9a-f]{32}$/)
                    .required()
                    .label('Upload')
            })
        },
        handler: (request, call) => protocol.one(request, call, call.params.id)
    });
}
