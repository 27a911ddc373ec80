/**
 * The documents of pages that a plugin brings: an entry that is an ES module gets a document from the host, so that a plugin needs no
 * HTML. They are shown in frames without an origin.
 */
import type { Manifest } from '@portico/registry';
import { joi } from '@portico/sdk';

import { http, type Route } from '../../../server/http/route.ts';

type Page = NonNullable<NonNullable<Manifest['contributes']>['pages']>[number];

/** Where a page is, below the plugin's path: the host's document of a module, or the plugin's own document. */
export function pathOfPage(page: Page): string {
    return isModule(page) ? `pages/${page.id}` : page.entry.replace(/^\/+/, '');
}

/** The routes of the documents that the host makes. */
export function pageRoutes({ name, contributes }: Manifest): Route[] {
    return (contributes?.pages ?? []).filter(isModule).map((page) =>
        http({
            id: `pages.${page.id}`,
            methods: ['GET', 'HEAD'],
            path: `/pages/${page.id}`,
            access: { public: 'A frame without an origin sends no token; the document has no data in it' },
            raw: 'A document for a frame of the pages',
            maxBytes: 0,
            summary: `The page ${page.title}`,
            ui: { role: 'hidden' },
            validate: {
                query: joi.object({ lang: joi.string().pattern(/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/) })
            },
            handler: (_request, { query }) =>
                new Response(documentOf(name, page, query.lang ?? 'en'), {
                    headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' }
                })
        })
    );
}

function documentOf(plugin: string, page: Page, language: string): string {
    const address = `/api/plugins/${plugin}/${page.entry.replace(/^\/+/, '')}`;
    return `<!doctype html>
<html lang="${escape(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(page.title)}</title>
<script type="module" src="${escape(address)}" crossorigin></script>
</head>
<body></body>
</html>
`;
}

function isModule({ entry }: Page): boolean {
    return /^\/?assets\/.+\.m?js$/.test(entry);
}

function escape(text: string): string {
    return text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
}
