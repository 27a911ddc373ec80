/** Static files of a package, below the plugin's path: read once into memory, public, and named by their content, so that they may be kept for good. */
import { createHash } from 'node:crypto';
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';

import { joi } from '@portico/sdk';

import { fail } from '../../../platform/errors.ts';
import { http, type Route } from '../../../server/http/route.ts';

const types: Readonly<Record<string, string>> = {
    '.html': 'text/html; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.mjs': 'text/javascript; charset=utf-8',
    '.css': 'text/css; charset=utf-8',
    '.json': 'application/json; charset=utf-8',
    '.svg': 'image/svg+xml',
    '.png': 'image/png',
    '.jpg': 'image/jpeg',
    '.jpeg': 'image/jpeg',
    '.webp': 'image/webp',
    '.gif': 'image/gif',
    '.ico': 'image/x-icon',
    '.woff2': 'font/woff2',
    '.txt': 'text/plain; charset=utf-8',
    '.wasm': 'application/wasm',
    '.map': 'application/json; charset=utf-8'
};
const mostFiles = 5_000;
const mostBytes = 64 * 1024 * 1024;
/** Names with a hash in them never change what they mean. */
const hashed = /[.-][A-Za-z0-9_-]{8,}\.[a-z0-9]+$/;

/** One file of a plugin's assets, ready to be sent; `type`, `tag` and `cache` become headers. */
export interface Asset {
    readonly bytes: Buffer;
    readonly type: string;
    readonly tag: string;
    readonly cache: string;
}

/** @throws Error when the folder is not inside the package, or too much */
export async function assetRoutes(
    packageFolder: string,
    folders: readonly { readonly folder: string; readonly at?: 'root'; readonly fallback?: string }[]
): Promise<Route[]> {
    const below = folders.filter(({ at }) => at === undefined);
    if (below.length === 0) {
        return [];
    }
    const files = await readAssets(packageFolder, below);
    const fallback = below.find((assets) => assets.fallback !== undefined)?.fallback;
    return [
        http({
            id: 'assets',
            methods: ['GET', 'HEAD'],
            path: '/assets/{path*}',
            access: { public: 'static files of the package' },
            raw: 'files as they are',
            maxBytes: 0,
            summary: 'Static files of the package',
            validate: {
                params: joi.object({ path: joi.string().allow('').max(1024).required() }),
                query: joi.object({ v: joi.any() }).unknown()
            },
            handler(request, { params }) {
                const asset =
                    files.get(params.path) ?? (fallback === undefined ? undefined : files.get(fallback));
                if (asset === undefined) {
                    throw fail.NOT_FOUND();
                }
                return answerOf(asset, request);
            }
        })
    ];
}

/** Files of folders by their paths; the first of two with one path counts. @throws Error when a folder is not inside the package, or too much */
export async function readAssets(
    packageFolder: string,
    folders: readonly { readonly folder: string }[]
): Promise<ReadonlyMap<string, Asset>> {
    const files = new Map<string, Asset>();
    for (const { folder } of [...folders].reverse()) {
        await collect(await inside(packageFolder, folder), files);
    }
    return files;
}

/** A file, or that it is the one that the client has. */
export function answerOf({ bytes, type, tag, cache }: Asset, request: Request): Response {
    const headers = { etag: tag, 'cache-control': cache, 'content-type': type };
    return request.headers.get('if-none-match')?.includes(tag) === true
        ? new Response(null, { status: 304, headers })
        : new Response(new Uint8Array(bytes), { headers });
}

async function inside(packageFolder: string, folder: string): Promise<string> {
    const [root, real] = [await realpath(packageFolder), await realpath(join(packageFolder, folder))];
    if (real !== root && !real.startsWith(root + sep)) {
        throw new Error(`The assets ${folder} are not inside the package`);
    }
    return real;
}

async function collect(root: string, files: Map<string, Asset>): Promise<void> {
    let total = 0;
    for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) {
            continue;
        }
        const path = join(entry.parentPath, entry.name);
        total += (await stat(path)).size;
        if (files.size >= mostFiles || total > mostBytes) {
            throw new Error(`The assets are more than ${mostFiles} files or ${mostBytes} bytes`);
        }
        const bytes = await readFile(path);
        const name = relative(root, path).split(sep).join('/');
        files.set(name, {
            bytes,
            type: types[extname(name).toLowerCase()] ?? 'application/octet-stream',
            tag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
            cache: hashed.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache'
        });
    }
}
