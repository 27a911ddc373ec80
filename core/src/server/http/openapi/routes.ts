/** `GET /api/openapi.json`: the document as tools read it. */
import { joi } from '@portico/sdk';

import { fail } from '../../../platform/errors.ts';
import { http, type Route } from '../route.ts';
import type { OpenApi } from './document.ts';

/** Only for users who are logged in: it names every plugin that runs, which strangers must not learn. */
export function openApiRoutes(openApi: () => OpenApi): Route[] {
    return [
        http({
            id: 'openapi.read',
            methods: ['GET'],
            path: '/api/openapi.json',
            access: 'authenticated',
            maxBytes: 0,
            summary: 'Read this document',
            raw: 'An OpenAPI document stands for itself: tools read it as it is, without the envelope',
            validate: {
                query: joi.object({
                    tag: joi
                        .string()
                        .max(64)
                        .description(
                            'Only the operations of this tag, which is a group of the core or a plugin, with what they refer to'
                        )
                })
            },
            handler(asked, { query }) {
                const text = openApi().text(query.tag);
                if (text === null) {
                    throw fail.NOT_FOUND(null, { message: `There is no tag ${query.tag}` });
                }
                const { body, etag } = text;
                const known =
                    asked.headers
                        .get('if-none-match')
                        ?.split(',')
                        .some((tag) => tag.trim().replace(/^W\//, '') === etag) === true;
                return known
                    ? new Response(null, { status: 304, headers: { etag } })
                    : new Response(body, {
                          headers: { 'content-type': 'application/json; charset=utf-8', etag }
                      });
            }
        })
    ];
}
