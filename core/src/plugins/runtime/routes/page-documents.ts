/**
 * The documents of pages that a plugin brings: an entry that is an ES module gets a document from the host, so that a plugin needs no
 * HTML. They are shown in frames without an origin.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';

import type { Manifest } from '@portico/registry';
import { joi } from '@portico/sdk';

import { fail } from '../../../platform/errors.ts';
import type { AboutPage } from '../../../server/http/openapi/document.ts';
import { http, type Route } from '../../../server/http/route.ts';

type Capabilities = NonNullable<Manifest['capabilities']>;
type Page = NonNullable<NonNullable<Manifest['contributes']>['pages']>[number];

/** The folder below a plugin's path with what the host gives to each page. */
export const pageFiles = 'pages/sdk';

const files = ['page.js', 'page.css'];
/** Lets a page write `import { connect } from '@portico/sdk/page'` without a bundler. It is the same for all pages, and the policy names its hash. */
const importMap = JSON.stringify({ imports: { '@portico/sdk/page': './sdk/page.js' } });
const importMapHash = `sha256-${createHash('sha256').update(importMap).digest('base64')}`;
let kept: ReadonlyMap<string, string> | null = null;

/** Where a page is, below the plugin's path: the host's document of a module, or the plugin's own document. */
export function pathOfPage(page: Page): string {
    return isModule(page) ? `pages/${page.id}` : page.entry.replace(/^\/+/, '');
}

/** Hashes of the inline scripts in the document of a page. */
export function pageScripts(page: Page): readonly string[] {
    return isModule(page) ? [importMapHash] : [];
}

/** The pages as the document's tag of the plugin names them, so that users who may not read plugins see them too. They use only what was granted. */
export function describePages({ name, contributes }: Manifest, granted: Capabilities): readonly AboutPage[] {
    const callable = new Set([...(granted.api?.read ?? []), ...(granted.api?.write ?? [])]);
    return (contributes?.pages ?? []).map((page) => ({
        id: page.id,
        title: page.title,
        ...(page.icon === undefined ? {} : { icon: page.icon }),
        access: `${name}:${page.access}`,
        place: page.place ?? 'nav',
        uses: (page.uses ?? []).filter((id) => callable.has(id) || callable.has('*')),
        path: `/api/plugins/${name}/${pathOfPage(page)}`
    }));
}

/** The routes of the documents that the host makes, and of the files that it gives to them. */
export function pageRoutes({ name, contributes }: Manifest): Route[] {
    const pages = (contributes?.pages ?? []).filter(isModule);
    return pages.length === 0 ? [] : [fileRoute(), ...pages.map((page) => documentRoute(name, page))];
}

function documentRoute(name: string, page: Page): Route {
    return http({
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
    });
}

function fileRoute(): Route {
    return http({
        id: 'pages.sdk',
        methods: ['GET', 'HEAD'],
        path: `/${pageFiles}/{file}`,
        access: { public: 'The same files for every page, part of the published SDK' },
        raw: 'files as they are',
        maxBytes: 0,
        summary: 'The module and the style sheet that the panel gives to pages',
        ui: { role: 'hidden' },
        validate: { params: joi.object({ file: joi.string().max(20).required() }) },
        handler(_request, { params }) {
            kept ??= new Map(files.map((file) => [file, readPageFile(file)]));
            const text = kept.get(params.file);
            if (text === undefined) {
                throw fail.NOT_FOUND();
            }
            const type = params.file.endsWith('.css') ? 'text/css' : 'text/javascript';
            return new Response(text, {
                headers: { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-cache' }
            });
        }
    });
}

/** Reads a file of `@portico/sdk`. In a checkout, which runs unbuilt, the module still has its types. */
function readPageFile(file: string): string {
    const path = fileURLToPath(
        import.meta.resolve(file === 'page.js' ? '@portico/sdk/page' : `@portico/sdk/${file}`)
    );
    const text = readFileSync(path, 'utf8');
    return path.endsWith('.ts')
        ? stripTypeScriptTypes(text)
        : text.replace(/^\/\/# sourceMappingURL=.*$/m, '');
}

function documentOf(plugin: string, page: Page, language: string): string {
    const address = `/api/plugins/${plugin}/${page.entry.replace(/^\/+/, '')}`;
    return `<!doctype html>
<html lang="${escape(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(page.title)}</title>
<link rel="stylesheet" href="sdk/page.css" crossorigin>
<script type="importmap">${importMap}</script>
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

/** Addresses of a plugin's texts, by language, as a browser asks for them. */
export function localePaths(
    prefix: string,
    locales: Readonly<Record<string, string>>
): Readonly<Record<string, string>> {
    return Object.fromEntries(
        Object.entries(locales).map(([language, file]) => [language, `${prefix}/${file}`])
    );
}
