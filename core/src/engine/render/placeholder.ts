/** Texts of users in the engine's configuration. The engine expands `{…}`, but a text must be served as it was typed. */

import { parseRange } from '../../platform/address/ip.ts';
import type { HeaderOperation, Site } from '../site.ts';
import { parseUpstream } from './profile/upstream.ts';

/** Fields of a site whose text the engine would not serve as typed. */
export interface UnsupportedText {
    /** `advanced.0.body`, `static.root`, … */
    readonly path: string;
    readonly message: string;
}

/**
 * Escapes a text so that the engine serves it literally. The engine unescapes a brace behind a backslash, but only in text with an opening brace, and
 * leaves all other text alone.
 */
export const literal = (text: string): string => (text.includes('{') ? text.replace(/[{}]/g, '\\$&') : text);

/** Placeholders that `advanced` may not use, because they reveal secrets of the machine. Those of the request are allowed. */
const secretPlaceholder = /\{\$|\{(?:env|file|system)\b/i;

/** The texts of a site that the engine would read as a placeholder or a pattern and that cannot be escaped. Validation refuses them. Pure. */
export const unsupportedPlaceholders = (site: Site): readonly UnsupportedText[] => {
    const found: UnsupportedText[] = [];
    const refuse = (path: string, message: string): void => {
        found.push({ path, message });
    };

    upstreamTexts(site, refuse);
    headerTexts(site, refuse);
    pathTexts(site, refuse);
    site.advanced.forEach((handler, index) => {
        walk(handler, `advanced.${index}`, refuse);
    });
    return found;
};

type Refuse = (path: string, message: string) => void;

const upstreamTexts = (site: Site, refuse: Refuse): void => {
    const schemes = new Set<string>();
    const check = (address: string, path: string): void => {
        const upstream = parseUpstream(address);
        if (upstream === null) {
            refuse(
                path,
                'must be host:port, optionally behind http://, https:// or h2c://, or unix/ and an absolute path'
            );
        }
    };

    site.upstreams.forEach((upstream, index) => {
        check(upstream.address, `upstreams.${index}.address`);
        schemes.add(parseUpstream(upstream.address)?.scheme ?? '');
    });
    if (schemes.size > 1) {
        refuse('upstreams', 'must all use the same of http, https and h2c');
    }

    site.locations.forEach((location, index) => {
        check(location.upstream, `locations.${index}.upstream`);
    });
    if (site.php?.fastcgi !== undefined) {
        check(site.php.fastcgi, 'php.fastcgi');
    }
    site.php?.upstreams?.forEach(({ address }, index) => {
        check(address, `php.upstreams.${index}.address`);
    });
};

const headerTexts = (site: Site, refuse: Refuse): void => {
    const name = (text: string, path: string): void => {
        if (!/^[!#$%&'+.^_`|~0-9A-Za-z-]+$/.test(text)) {
            refuse(path, 'must be a header name; the engine takes * for a pattern');
        }
    };
    const operations = (list: readonly HeaderOperation[], path: string): void => {
        list.forEach((operation, index) => {
            name(operation.name, `${path}.${index}.name`);
        });
    };

    operations(site.headers.request, 'headers.request');
    operations(site.headers.response, 'headers.response');
    site.access.forwardAuth?.copyHeaders.forEach((header, index) => {
        name(header, `access.forwardAuth.copyHeaders.${index}`);
    });
    const { forwardAuth } = site.access;
    if (forwardAuth !== null && !isAuthUrl(forwardAuth.url)) {
        refuse(
            'access.forwardAuth.url',
            'must be an http or https URL without user, fragment and encoded % ? # in its path'
        );
    }

    site.cors?.origins.forEach((origin, index) => {
        if (origin !== '*' && origin.includes('*')) {
            refuse(`cors.origins.${index}`, 'must be one exact origin, or * alone');
        }
    });
    for (const list of ['allow', 'deny'] as const) {
        site.access[list].forEach((range, index) => {
            if (parseRange(range) === null) {
                refuse(`access.${list}.${index}`, 'must be an IP address or a CIDR range');
            }
        });
    }
};

const isAuthUrl = (text: string): boolean => {
    const url = URL.parse(text);
    if (
        url === null ||
        !/^https?:$/.test(url.protocol) ||
        url.username !== '' ||
        url.hash !== '' ||
        parseUpstream(`${url.hostname}:1`) === null
    ) {
        return false;
    }

    try {
        return !/[%?#]/.test(decodeURIComponent(url.pathname));
    } catch {
        return false;
    }
};

/** The engine looks for files by pattern below these roots, and cannot be told that a character of the root is meant literally. */
const pathTexts = (site: Site, refuse: Refuse): void => {
    const pattern = /[*?[\]\\]/;
    if (site.type === 'static' && site.static?.spaFallback === true && pattern.test(site.static.root)) {
        refuse('static.root', 'may not contain * ? [ ] or \\ with spaFallback');
    }

    if (site.type === 'php' && site.php !== null && pattern.test(site.php.root)) {
        refuse('php.root', 'may not contain * ? [ ] or \\');
    }

    const indexes =
        site.type === 'php'
            ? (['php', site.php?.index] as const)
            : site.type === 'static'
              ? (['static', site.static?.index] as const)
              : (['', []] as const);
    indexes[1]?.forEach((index, at) => {
        if (!/^[^/\\*?[\]%#\0]+$/.test(index) || index === '.' || index === '..') {
            refuse(`${indexes[0]}.index.${at}`, 'must be a file name');
        }
    });
};

const walk = (value: unknown, path: string, refuse: Refuse): void => {
    if (typeof value === 'string') {
        if (secretPlaceholder.test(value)) {
            refuse(path, 'may not use the placeholders {env.…}, {file.…} and {system.…}');
        }
    } else if (Array.isArray(value)) {
        value.forEach((item, index) => {
            walk(item, `${path}.${index}`, refuse);
        });
    } else if (typeof value === 'object' && value !== null) {
        for (const [key, item] of Object.entries(value)) {
            walk(key, `${path}.${key}`, refuse);
            walk(item, `${path}.${key}`, refuse);
        }
    }
};
