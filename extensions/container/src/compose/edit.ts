/** Small changes of a compose text that keep its comments and its form. */
import { posix } from 'node:path';

import { type Document, isMap, isScalar, isSeq, parseDocument } from 'yaml';

import { fail } from '../errors.ts';

/** The text with a further port of a service, published on loopback at a free port. @throws COMPOSE_INVALID 42250 where it cannot be added */
export function withLoopbackPort(text: string, service: string, port: number): string {
    const document = parseDocument(text, { version: '1.2', merge: true });
    try {
        const path = ['services', service, 'ports'];
        if (document.hasIn(path)) {
            document.addIn(path, `127.0.0.1::${port}`);
        } else {
            document.setIn(path, [`127.0.0.1::${port}`]);
        }
    } catch {
        const message = 'The port cannot be added here: write it into the file';
        throw fail.COMPOSE_INVALID({ errors: [{ path: `services.${service}.ports`, line: null, message }] });
    }
    return document.toString();
}

/** The text with relative binds as absolute paths, so that they mean the same wherever the stack lies. */
export function withAbsoluteBinds(text: string, folder: string): string {
    const document = parseDocument(text, { version: '1.2', merge: true });
    const services = document.get('services');
    if (!isMap(services)) {
        return text;
    }
    let changed = false;
    for (const { value: service } of services.items) {
        const volumes = isMap(service) ? service.get('volumes') : undefined;
        for (const item of isSeq(volumes) ? volumes.items : []) {
            changed = makeAbsolute(document, item, folder) || changed;
        }
    }
    return changed ? document.toString() : text;
}

function makeAbsolute(document: Document, item: unknown, folder: string): boolean {
    const isRelative = (path: unknown): path is string =>
        typeof path === 'string' && /^\.{1,2}(\/|:|$)/.test(path);
    if (isScalar(item) && isRelative(item.value)) {
        const [source = '', ...rest] = item.value.split(':');
        item.value = [posix.resolve(folder, source), ...rest].join(':');
        return true;
    }
    const source = isMap(item) ? item.get('source') : undefined;
    if (isMap(item) && isRelative(source)) {
        item.set('source', document.createNode(posix.resolve(folder, source)));
        return true;
    }
    return false;
}
