/** `/api/import-export`. */
import { reply } from '@portico/sdk';

import { json, type Route } from '../../server/http/route.ts';
import { documentView, exportBody, importAnswer, importBody } from './schema.ts';
import type { ImportExport } from './service.ts';

const base = '/api/import-export';
const mebibyte = 1024 * 1024;
const largest = 256 * mebibyte;
/** Reading and proving ten thousand hosts takes a while. */
const timeoutSeconds = 600;

/** The routes under `/api/import-export`. */
export function importExportRoutes(service: ImportExport): Route[] {
    return [
        json({
            method: 'GET',
            path: `${base}/export`,
            id: 'import-export.read',
            access: 'export:run',
            summary: 'Export the panel without its secrets',
            timeoutSeconds,
            description: 'One document with every section that the caller may read',
            returns: documentView,
            handler: (request) => service.export({}, request)
        }),
        json({
            method: 'POST',
            path: `${base}/export`,
            id: 'import-export.export',
            access: 'export:run',
            answers: [200],
            fails: ['STEP_UP_REQUIRED', 'PLUGIN_FAILED'],
            secret: true,
            summary: 'Export the panel',
            timeoutSeconds,
            description:
                "One document. With a passphrase (and a fresh session) password hashes, keys and all other secrets are in it, and the plugins' own data, sealed under a key that argon2id makes of the passphrase; the whole document is bound to them, so that it cannot be changed any more",
            validate: { payload: exportBody },
            returns: documentView,
            handler: (request) => service.export(request.payload, request)
        }),
        json({
            method: 'POST',
            path: `${base}/import`,
            id: 'import-export.import',
            access: 'import:run',
            effect: 'destructive',
            answers: [200, 202],
            secret: true,
            maxBytes: largest,
            timeoutSeconds,
            fails: [
                'STEP_UP_REQUIRED',
                'IN_USE',
                'CONFLICT',
                'VERSION_STALE',
                'REFUSED_BY_PLUGIN',
                'ENGINE_REJECTED',
                'ENGINE_UNAVAILABLE'
            ],
            summary: 'Import a document',
            description:
                'With `dryRun` it answers 200 and the exact plan. Otherwise (with a fresh session, and the write permission of each section) 202 and a task whose result is the plan as it was done: all of it, or nothing. What plugins take back and what is installed follows then, and is told in `plugins`',
            validate: { payload: importBody },
            returns: importAnswer,
            async handler(request) {
                const { dryRun, ...rest } = request.payload;
                return dryRun
                    ? service.plan({ ...rest, dryRun }, request)
                    : reply.accepted(await service.import({ ...rest, dryRun }, request));
            }
        })
    ];
}
