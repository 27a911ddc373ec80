/** Keeps secrets that stand in a path out of logs and audit entries. A route names them by `joi.secret()` in its `params`. */
import { type SchemaDescription, secretPaths } from '@portico/sdk/host';

import type { Route } from '../route.ts';

const mask = '[secret]';

/** The names of the route's path parameters that are secrets. */
export function secretParams({ validate }: Pick<Route, 'validate'>): readonly string[] {
    const schema = validate?.params as { describe?(): SchemaDescription } | undefined;
    return secretPaths(schema?.describe?.() ?? null);
}

/**
 * A path with every part masked that holds a secret.
 *
 * @param template - the whole path of the route, as `/api/plugins/files/s/{token}`
 */
export function maskPath(route: Pick<Route, 'validate'>, template: string, path: string): string {
    const secrets = secretParams(route);
    if (secrets.length === 0) {
        return path;
    }
    const parts = path.split('/');
    const wanted = template.split('/');
    return wanted
        .flatMap((part, index) => {
            const isSecret = secrets.some((name) => new RegExp(`\\{${name}[?*\\d]*\\}`).test(part));
            // A parameter of several parts is the last of its path.
            const own = /\{\w+\*\d*\}/.test(part) ? parts.slice(index) : parts.slice(index, index + 1);
            return isSecret && own.length > 0 ? [mask] : own;
        })
        .join('/');
}
