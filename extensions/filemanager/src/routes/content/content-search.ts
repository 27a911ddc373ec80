/** The route that searches in the content of files. */
import { joi, reply } from '@portico/sdk';

import { searchContent } from '../../files/content-search.ts';
import { filesystem } from '../../files/filesystem.ts';
import { location, pathSchema } from '../../roots/path.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

const matchSchema = joi.object({
    path: joi
        .string()
        .required()
        .label('Path')
        .meta({ ui: { column: 1 } }),
    line: joi
        .number()
        .integer()
        .required()
        .label('Line')
        .meta({ ui: { column: 2 } }),
    column: joi.number().integer().required().label('Column').description('In characters, from 1'),
    text: joi
        .string()
        .allow('')
        .required()
        .label('Text')
        .description('The line, or 300 characters of it around the text')
        .meta({ ui: { column: 3 } })
});

/** Registers the route that searches in the content of files. */
export function registerContentSearchRoutes(ctx: Ctx, { roots }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/search/content',
        id: 'searchContent',
        access: 'content',
        summary: 'Find a text in files',
        ui: { title: 'Search in files', order: 4, label: 'path', empty: 'Nothing was found' },
        returns: joi.array().items(matchSchema),
        timeoutSeconds: 60,
        description:
            'The text as it is written, one row for each line. Binary files are left out, links are never followed. `X-Truncated` says why the search ended early: `results` or `time` (setting `searchSeconds`).',
        validate: {
            query: location.keys({
                path: pathSchema.default(''),
                q: joi
                    .string()
                    .min(1)
                    .max(255)
                    .pattern(/^[^\n\0]+$/)
                    .required()
                    .label('Text')
                    .example('listen 80'),
                case: joi.boolean().default(false).label('Match the case'),
                word: joi.boolean().default(false).label('Whole words'),
                glob: joi
                    .string()
                    .min(1)
                    .max(255)
                    .label('Names')
                    .description('Only files of these names: a part of the name, or a pattern')
                    .example('*.conf'),
                limit: joi.number().integer().min(1).max(1_000).default(200).label('Results')
            })
        },
        async handler({ query, actor, signal }) {
            const { root, path } = roots.at(actor, query);
            await filesystem(() => root.files.stat(path));
            const { found, truncated } = await searchContent(
                root.files,
                path,
                {
                    text: query.q,
                    exactCase: query.case,
                    word: query.word,
                    glob: query.glob ?? null,
                    limit: query.limit,
                    milliseconds: ctx.settings.searchSeconds * 1_000
                },
                signal
            );
            return reply.with([...found], {
                headers: truncated === null ? {} : { 'x-truncated': truncated }
            });
        }
    });
}
