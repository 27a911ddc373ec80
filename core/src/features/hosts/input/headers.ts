/** Header operations and CORS: from what was sent to what is stored. */
import type { Site } from '../../../engine/site.ts';
import { hidesValue, valuesOf, withValues } from '../../../platform/header-secrets.ts';
import type { HostChange } from '../schema/bodies.ts';
import { operationsOf } from './hidden.ts';
import { type Faults, headerName, isHeaderValue, isToken } from './normalise.ts';

type Operations = NonNullable<NonNullable<HostChange['headers']>['request']>;

/**
 * Operations on requests. A credential that is not sent stays as it is.
 *
 * @param kept - the operations of the host as it is
 */
export function buildRequestOperations(
    list: Operations | undefined,
    kept: Site['headers']['request'],
    faults: Faults
): Site['headers']['request'] {
    const path = 'headers.request';
    const whole = withValues(operationsOf({ headers: { request: list ?? [] } }), valuesOf(kept));
    whole.forEach((operation, at) => {
        if (hidesValue(operation) && operation.value === '') {
            faults.add(
                `${path}.${at}.value`,
                `${path}.${at}.value is required: the host has none for this header`
            );
        }
    });
    return buildOperations(whole, path, faults);
}

/** Header operations, in their order. */
export function buildOperations(
    list: Operations | undefined,
    path: string,
    faults: Faults
): Site['headers']['request'] {
    return (list ?? []).map((operation, at) => {
        const { op = 'set', name = '', value = '' } = operation;
        headerName(name, `${path}.${at}.name`, faults);
        if (!isHeaderValue(value)) {
            faults.add(`${path}.${at}.value`, `${path}.${at}.value must not have control characters`);
        }
        if (op === 'delete' && value !== '') {
            faults.add(`${path}.${at}.value`, `${path}.${at}.value must be empty for delete`);
        }
        if (
            name.toLowerCase() === 'host' &&
            (path === 'headers.response' || op !== 'set' || !/^[\x21-\x7e]+$/.test(value))
        ) {
            faults.add(
                `${path}.${at}`,
                `${path}.${at}: Host can only be set, on requests, to a name with or without a port`
            );
        }
        return { op, name, value };
    });
}

/** Which origins may use the host, and how. */
export function buildCors(value: NonNullable<HostChange['cors']>, faults: Faults): Site['cors'] {
    const origins = value.origins ?? [];
    origins.forEach((origin, at) => {
        if (origin === '*' ? origins.length > 1 : URL.parse(origin)?.origin !== origin || origin === 'null') {
            faults.add(
                `cors.origins.${at}`,
                `cors.origins.${at} must be an origin such as https://app.example.com, or * alone`
            );
        }
    });
    const credentials = value.credentials ?? false;
    if (credentials && origins.includes('*')) {
        faults.add('cors.credentials', 'cors.credentials cannot be combined with the origin *');
    }
    const methods = value.methods ?? ['GET', 'HEAD', 'POST'];
    methods.forEach((method, at) => {
        if (!/^[A-Z]{1,32}$/.test(method)) {
            faults.add(`cors.methods.${at}`, `cors.methods.${at} must be a method in capitals`);
        }
    });
    const headers = value.headers ?? [];
    headers.forEach((header, at) => {
        if (!isToken(header)) {
            faults.add(`cors.headers.${at}`, `cors.headers.${at} is not a header's name`);
        }
    });
    return { origins, methods, headers, credentials, maxAgeSeconds: value.maxAgeSeconds ?? 600 };
}
