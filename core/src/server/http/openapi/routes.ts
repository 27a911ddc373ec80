/** `GET /api/openapi.json`: the document as tools read it. */
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
            handler(asked) {
                const { body, etag } = openApi().text();
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
