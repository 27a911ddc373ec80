/** What a host answers by itself: redirects, files, scripts and error pages. */
import { joi } from '@portico/sdk';

import { bounds, path, text, weight } from './parts.ts';

const index = () => joi.array().items(text(255)).max(bounds.indexFiles);

/** The field `errorPages` of a host: HTML that replaces answers with a status. */
export const errorPages = joi
    .array()
    .items(
        joi.object({
            status: joi.number().integer().min(400).max(599).required(),
            body: text(bounds.errorPageBytes).allow('').required().description('HTML')
        })
    )
    .max(bounds.errorPages)
    .allow(null)
    .default([])
    .description('Shown instead of every answer with that status, also of the upstream');

/** The field `redirect` of a host; null: it redirects nothing. */
export const redirect = joi
    .object({
        to: text(2048).required().description('Absolute http or https URL'),
        code: joi.number().valid(301, 302, 307, 308).default(308),
        keepPath: joi.boolean().default(true).description("Appends the request's path and query")
    })
    .allow(null)
    .default(null)
    .description('Required for `redirect`, and only there');

/** The field `static` of a host; null: it serves no files. */
export const staticFiles = joi
    .object({
        root: path(4096)
            .required()
            .description("Absolute path of a folder that the engine's user can read. Needs `hosts:unsafe`"),
        browse: joi.boolean().default(false).description('Lists folders that have no index file'),
        index: index()
            .default(['index.html'])
            .description('Files that stand for their folder, the first that exists'),
        spaFallback: joi
            .boolean()
            .default(false)
            .description("Serves the root's index file for paths that do not exist")
    })
    .allow(null)
    .default(null)
    .description('Required for `static`, and only there');

/** The field `php` of a host; null: it runs no scripts. */
export const php = joi
    .object({
        root: path(4096).required().description('Absolute path of the folder with the scripts'),
        fastcgi: text(300).description(
            '`host:port` or `unix/` with the absolute path of a socket. Required without `php.upstreams`, and not allowed beside it'
        ),
        upstreams: joi
            .array()
            .items(
                joi.object({
                    address: text(300).required().description('As `php.fastcgi`'),
                    weight: weight().description('Share of the requests, 1 to 1,000')
                })
            )
            .min(1)
            .max(bounds.upstreams)
            .description('Several FastCGI servers, instead of `php.fastcgi`. Their weights always count'),
        index: index()
            .default(['index.php'])
            .description('Scripts that stand for their folder, the first that exists')
    })
    .xor('fastcgi', 'upstreams')
    .allow(null)
    .default(null)
    .description('Required for `php`, and only there. Needs `hosts:unsafe`');
