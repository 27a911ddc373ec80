/** The hapi server of one generation, below `/api/plugins/<name>`. */
import type { Manifest, PluginPackage } from '@portico/registry';
import { sandboxHeaders } from '@portico/sdk/host';

import type { HttpPorts } from '../../../server/http/ports.ts';
import type { Route } from '../../../server/http/route.ts';
import { createHttpServer, type HttpServer } from '../../../server/http/server.ts';
import {
    describePages,
    localePaths,
    pageFiles,
    pageRoutes,
    pageScripts,
    pathOfPage
} from './page-documents.ts';

/** Creates the server. Pages that the manifest declares may run their own scripts; everything else is sandboxed without them. */
export function createPluginServer(
    { manifest, version, title }: PluginPackage,
    routes: readonly Route[],
    ports: HttpPorts,
    granted: NonNullable<Manifest['capabilities']>
): HttpServer {
    const prefix = `/api/plugins/${manifest.name}`;
    const pages = manifest.contributes?.pages ?? [];
    const paths = {
        pages: new Map(pages.map((page) => [`${prefix}/${pathOfPage(page)}`, pageScripts(page)])),
        files: [`${prefix}/assets/`, `${prefix}/${pageFiles}/`]
    };
    return createHttpServer({
        name: `${manifest.name} ${version}`,
        prefix,
        about: {
            title,
            ...(manifest.icon === undefined ? {} : { icon: manifest.icon }),
            ...(manifest.contributes?.group === undefined ? {} : { group: manifest.contributes.group }),
            ...(pages.length === 0 ? {} : { pages: describePages(manifest, granted) }),
            ...(manifest.contributes?.locales === undefined
                ? {}
                : { locales: localePaths(prefix, manifest.contributes.locales) })
        },
        routes: [...routes, ...pageRoutes(manifest)],
        ports,
        headers: (_route, path) => sandboxHeaders(paths, path)
    });
}
