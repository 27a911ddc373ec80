/** The root of the site: the panel's pages, from the one plugin with the capability `pages`. They run in the panel's own origin, so a policy says what they may load. */
import { joi } from '@portico/sdk';
import type { GenerationDocument } from '@portico/sdk/host';

import { fail } from '../../../platform/errors.ts';
import { isNavigation } from '../../../server/http/navigation.ts';
import type { HttpPorts } from '../../../server/http/ports.ts';
import { http } from '../../../server/http/route.ts';
import { createHttpServer, type HttpServer } from '../../../server/http/server.ts';
import { answerOf, readAssets } from './assets.ts';

type Assets = GenerationDocument['assets'];
type Policy = Readonly<Record<string, readonly string[]>>;

/** Pages of other plugins are shown in frames, below the same origin. */
const usual: Policy = {
    'default-src': ["'self'"],
    'script-src': ["'self'"],
    'style-src': ["'self'"],
    'img-src': ["'self'", 'data:', 'blob:'],
    'font-src': ["'self'"],
    'connect-src': ["'self'"],
    'frame-src': ["'self'"],
    'worker-src': ["'self'"],
    'media-src': ["'self'"],
    'manifest-src': ["'self'"]
};
/** The part of the policy that no plugin can change. */
const fixed = "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const source = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x7e]+$/;

/** What the server of the site's root is made from. */
export interface PagesOptions {
    /** As logs name it. */
    readonly name: string;
    /** Real path of the package. */
    readonly folder: string;
    readonly assets: Assets;
    readonly http: HttpPorts;
}

/** Null for a plugin without any. @throws Error for a folder outside of the package, TypeError for a policy that is none */
export async function createPages({
    name,
    folder,
    assets,
    http: ports
}: PagesOptions): Promise<HttpServer | null> {
    const root = assets.filter(({ at }) => at === 'root');
    if (root.length === 0) {
        return null;
    }
    const files = await readAssets(folder, root);
    const fallback = root.find((each) => each.fallback !== undefined)?.fallback;
    if (fallback !== undefined && !files.has(fallback)) {
        throw new TypeError(`The fallback ${fallback} is not among the files at the root`);
    }
    const headers = {
        'content-security-policy': policyOf(root),
        'cross-origin-resource-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff'
    };
    const find = (path: string, isOpened: boolean): ReturnType<typeof files.get> =>
        files.get(path) ??
        files.get(path === '' ? 'index.html' : `${path.replace(/\/$/, '')}/index.html`) ??
        // A file that is missing is missing; only a place inside of the application is the application. A browser says what it opens.
        (fallback === undefined || (/\.[^/]*$/.test(path) && !isOpened) ? undefined : files.get(fallback));
    return createHttpServer({
        name: `${name} pages`,
        prefix: '',
        ports,
        headers: () => headers,
        routes: [
            http({
                id: 'pages',
                methods: ['GET', 'HEAD'],
                path: '/{path*}',
                access: { public: 'the pages of the panel' },
                raw: 'files as they are',
                maxBytes: 0,
                summary: 'Pages of the panel',
                validate: {
                    params: joi.object({ path: joi.string().allow('').max(1024).default('') }),
                    query: joi.object({ v: joi.any() }).unknown()
                },
                handler(request, { params }) {
                    const { headers: sent } = request;
                    const isOpened = isNavigation(sent.get('sec-fetch-mode'), sent.get('accept'));
                    const asset = find(params.path, isOpened);
                    if (asset === undefined) {
                        throw fail.NOT_FOUND();
                    }
                    return answerOf(asset, request);
                }
            })
        ]
    });
}

function policyOf(assets: Assets): string {
    const policy: Record<string, readonly string[]> = { ...usual };
    for (const [directive, sources] of assets.flatMap(({ csp }) => Object.entries(csp ?? {}))) {
        if (
            !Object.hasOwn(usual, directive) ||
            sources.length === 0 ||
            sources.some((each) => !source.test(each))
        ) {
            throw new TypeError(
                `csp: ${directive} must be one of ${Object.keys(usual).join(', ')}, with sources`
            );
        }
        policy[directive] = sources;
    }
    return [
        ...Object.entries(policy).map(([directive, sources]) => `${directive} ${sources.join(' ')}`),
        fixed
    ].join('; ');
}
