/** The page at the root of the site while no plugin serves the panel's pages: it says why, and what an admin can do. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { joi } from '@portico/sdk';

import type { HttpPorts } from './ports.ts';
import { http } from './route.ts';
import { createHttpServer, type HttpServer } from './server.ts';

/** Why no plugin serves the pages. It names no plugin: strangers read it. */
export type PagesState = 'missing' | 'disabled' | 'starting' | 'failed' | 'safe-mode';

/** What the page says, and what an admin can do about it. */
const texts: Readonly<Record<PagesState, string>> = {
    missing: `<p>The panel runs. No pages are installed.</p>
<p>Install a plugin that serves them: <code>portico plugin install &lt;package&gt;</code>. Until then the command line does everything: <code>portico help</code>.</p>`,
    disabled: `<p>The panel runs. Its pages are installed, but disabled.</p>
<p>List the plugins with <code>portico plugin list</code>, and enable the one with the pages: <code>portico plugin enable &lt;name&gt;</code>.</p>`,
    starting: `<p>The panel is starting its pages. This page loads again by itself.</p>`,
    failed: `<p>The panel runs. Its pages are installed, but they did not start.</p>
<p><code>portico plugin list</code> says why.</p>`,
    'safe-mode': `<p>The panel runs in safe mode: no plugin is loaded, so there are no pages. The sites are served as before.</p>
<p><code>portico plugin list</code> says why, and how to leave safe mode.</p>`
};

const soonSeconds = 2;
const loadAgain = `<meta http-equiv="refresh" content="${soonSeconds}" />`;

/** Builds the server of the page. @param state - is asked for each request */
export function createStartPage(ports: HttpPorts, state: () => PagesState): HttpServer {
    const template = readFileSync(new URL('../../../web/start.html', import.meta.url), 'utf8');
    const style = /<style>([\s\S]*?)<\/style>/.exec(template)?.[1] ?? '';
    const headers = {
        'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
        'cross-origin-resource-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff'
    };
    return createHttpServer({
        name: 'start page',
        prefix: '',
        ports,
        headers: () => headers,
        routes: [
            http({
                id: 'start',
                methods: ['GET', 'HEAD'],
                path: '/{path*}',
                access: { public: 'It says why there are no pages, before anyone can log in' },
                raw: 'A page for people',
                maxBytes: 0,
                summary: 'Says why there are no pages',
                validate: { params: joi.object({ path: joi.any() }), query: joi.object({}).unknown() },
                handler() {
                    const now = state();
                    const isSoon = now === 'starting';
                    const page = template
                        .replace('<!--again-->', isSoon ? loadAgain : '')
                        .replace('<!--why-->', texts[now]);
                    return new Response(page, {
                        status: now === 'missing' || now === 'disabled' ? 200 : 503,
                        headers: {
                            'content-type': 'text/html; charset=utf-8',
                            'cache-control': 'no-store',
                            ...(isSoon ? { 'retry-after': String(soonSeconds) } : {})
                        }
                    });
                }
            })
        ]
    });
}
