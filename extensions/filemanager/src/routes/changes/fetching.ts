/** The route that downloads a URL into a folder. */
import { joi, taskSchema } from '@portico/sdk';

import { parseUrl } from '../../fetching/fetching.ts';
import { ownerOf } from '../../files/attributes/owner.ts';
import { parentOf, parseInner, pathSchema, rootName } from '../../roots/path.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { acceptTask, throttledProgress } from '../../task-replies.ts';
import { refuseTakenAt } from '../locations.ts';

/** How often the log of the task says how far it is. */
const sayEveryMs = 5_000;

/** Registers the route that downloads a URL. */
export function registerFetchRoutes(ctx: Ctx, { roots, fetching }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/fetch',
        id: 'fetch',
        access: 'write',
        summary: 'Download an address into a folder',
        answers: 'task',
        ui: { title: 'Download from an address', role: 'action' },
        returns: taskSchema,
        audit: { action: 'create', resource: 'file' },
        description:
            'By http or https, with at most 5 redirects. Addresses of this machine and of private networks are refused, unless an admin granted them to the plugin. The file appears whole or not at all.',
        validate: {
            payload: joi.object({
                root: rootName.required(),
                url: joi
                    .string()
                    .max(4096)
                    .required()
                    .label('Address')
                    .description('Begins with https:// or http://')
                    .example('https://example.com/file.iso'),
                path: pathSchema.required().label('File').description('Path of the new file, below the root'),
                sha256: joi
                    .string()
                    .pattern(/^[0-9a-fA-F]{64}$/, 'SHA-256')
                    .label('SHA-256')
                    .description('What the file must have, in 64 hexadecimal digits; else nothing is kept'),
                replace: joi.boolean().default(false).label('Replace a file of that name')
            })
        },
        async handler({ payload, actor, audit }) {
            const root = roots.forChange(actor, payload.root);
            const path = parseInner(payload.path);
            const url = parseUrl(payload.url);
            audit({ resourceId: `${root.name}:${path}`, after: { from: `${url.origin}${url.pathname}` } });
            await ownerOf(root.files, parentOf(path));
            await refuseTakenAt(root, path, payload.replace);
            const description = {
                kind: 'fetch',
                title: `Download ${path} from ${url.host}`,
                actor,
                resource: `${root.name}:${path}`
            };
            return acceptTask(ctx, description, (run) => {
                const progress = throttledProgress(run);
                let said = Date.now();
                return fetching.run({ root, path }, actor, {
                    url,
                    sha256: payload.sha256 ?? null,
                    replace: payload.replace,
                    signal: run.signal,
                    progress(bytes, total) {
                        progress(total === null || total === 0 ? null : bytes / total);
                        if (Date.now() - said >= sayEveryMs) {
                            said = Date.now();
                            run.log(total === null ? `${bytes} bytes` : `${bytes} of ${total} bytes`);
                        }
                    }
                });
            });
        }
    });
}
