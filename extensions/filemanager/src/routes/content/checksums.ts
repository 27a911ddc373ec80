/** The route that makes checksums. */
import { joi, taskSchema } from '@portico/sdk';

import { openFile } from '../../files/content/content.ts';
import { type Algorithm, algorithms, checksumOf } from '../../files/content/hashing.ts';
import { parseInner, pathSchema, rootName } from '../../roots/path.ts';
import type { Root } from '../../roots/roots.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { acceptTask, throttledProgress } from '../../task-replies.ts';

/** Bytes that one request reads. More becomes a task. */
const mostAtOnce = 256 * 2 ** 20;

const checksumsSchema = joi.array().items(
    joi.object({
        path: joi.string().required().label('Path'),
        checksum: joi.string().required().label('Checksum').description('In hexadecimal digits')
    })
);

/** Registers the route that makes checksums. */
export function registerChecksumRoutes(ctx: Ctx, { roots }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/checksums',
        id: 'checksums',
        access: 'content',
        effect: 'read',
        summary: 'Make checksums of files',
        ui: { title: 'Checksums', role: 'action' },
        returns: joi.alternatives(checksumsSchema, taskSchema),
        audit: false,
        timeoutSeconds: 120,
        description: 'In the order of the paths. More than 256 MiB become a task with the same result (202).',
        validate: {
            payload: joi.object({
                root: rootName.required(),
                paths: joi
                    .array()
                    .items(pathSchema)
                    .min(1)
                    .max(1_000)
                    .required()
                    .label('Files')
                    .description('Paths below the root')
                    .meta({ ui: { widget: 'lines' } }),
                algorithm: joi.choice(algorithms).default('sha256').label('Algorithm')
            })
        },
        async handler({ payload, actor, signal }) {
            const root = roots.of(actor, payload.root);
            const { algorithm } = payload;
            const paths = payload.paths.map((path, index) => parseInner(path, `paths.${index}`));
            let bytes = 0;
            for (const path of paths) {
                const { handle, entry } = await openFile(root.files, path);
                await handle.close();
                bytes += entry.size;
            }
            if (bytes <= mostAtOnce) {
                return makeChecksums(root, paths, { algorithm, signal, step: () => undefined });
            }
            const description = {
                kind: 'checksums',
                title: `Make checksums of ${paths.length} files`,
                actor,
                resource: root.name,
                access: 'content'
            };
            return acceptTask(ctx, description, (run) => {
                const progress = throttledProgress(run);
                let done = 0;
                return makeChecksums(root, paths, {
                    algorithm,
                    signal: run.signal,
                    step: (read) => {
                        done += read;
                        progress(Math.min(1, done / bytes));
                    }
                });
            });
        }
    });
}

async function makeChecksums(
    { files }: Root,
    paths: readonly string[],
    options: { readonly algorithm: Algorithm; readonly signal: AbortSignal; step(bytes: number): void }
): Promise<{ path: string; checksum: string }[]> {
    const made: { path: string; checksum: string }[] = [];
    for (const path of paths) {
        const { handle } = await openFile(files, path);
        try {
            const checksum = await checksumOf(handle, options.algorithm, options.signal, (bytes) =>
                options.step(bytes)
            );
            made.push({ path, checksum });
        } finally {
            await handle.close();
        }
    }
    return made;
}
