/** What a host answers by itself: from what was sent to what is stored. */
import type { Site } from '../../../engine/site.ts';
import type { HostChange } from '../schema/bodies.ts';
import { bounds } from '../schema/parts.ts';
import { type Faults, isPlainPath, webUrl } from './normalise.ts';

/** The pages shown instead of answers with an error status. */
export function buildErrorPages(
    list: NonNullable<HostChange['errorPages']>,
    faults: Faults
): Site['errorPages'] {
    const seen = new Set<number>();
    return list.map(({ status = 0, body = '' }, at) => {
        if (seen.has(status)) {
            faults.add(`errorPages.${at}.status`, `errorPages.${at}.status is there twice`);
        }
        seen.add(status);
        return { status, body };
    });
}

/** Where a redirect leads. */
export function buildRedirect(value: NonNullable<HostChange['redirect']>, faults: Faults): Site['redirect'] {
    const to = value.to ?? '';
    const keepPath = value.keepPath ?? true;
    const url = webUrl(to, 'redirect.to', faults);
    if (url !== null && keepPath && to.includes('#')) {
        faults.add('redirect.to', 'redirect.to must have no fragment when keepPath appends to it');
    }
    return {
        to: url === null || /^[\x21-\x7e]+$/.test(to) ? to : url.href,
        code: value.code ?? 308,
        keepPath
    };
}

/** An absolute path of a folder, without a slash at its end. */
export function readFolder(typed: string, path: string, faults: Faults): string {
    const root = typed.length > 1 && typed.endsWith('/') ? typed.slice(0, -1) : typed;
    if (!isPlainPath(root)) {
        faults.add(path, `${path} must be an absolute path without "..", empty parts or control characters`);
    }
    return root;
}

/** The names of files that stand for their folder. */
export function readIndexFiles(list: readonly string[], path: string, faults: Faults): readonly string[] {
    list.forEach((name, at) => {
        if (!isPlainPath(`/${name}`) || name === '') {
            faults.add(`${path}.${at}`, `${path}.${at} must be a file's name`);
        }
    });
    return list;
}

/** Handlers in the engine's own language. Only their shape is checked here. */
export function readAdvanced(list: NonNullable<HostChange['advanced']>, faults: Faults): Site['advanced'] {
    list.forEach((handler, at) => {
        if (typeof handler['handler'] !== 'string' || handler['handler'] === '') {
            faults.add(
                `advanced.${at}.handler`,
                `advanced.${at}.handler is required: the name of a handler of the engine`
            );
        }
    });
    if (Buffer.byteLength(JSON.stringify(list)) > bounds.advancedBytes) {
        faults.add('advanced', `advanced is larger than ${bounds.advancedBytes} bytes`);
    }
    return list as Site['advanced'];
}
