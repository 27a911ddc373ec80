/** What a check does, as its probes take it. */
import { isIP } from 'node:net';

import type { CheckKind, Expect } from './schema.ts';

/** What a check does. */
export interface CheckSpec {
    readonly kind: CheckKind;
    readonly target: string;
    readonly timeoutSeconds: number;
    /** Without its headers, which lie beside it with their values. */
    readonly expect: Omit<Expect, 'headers'>;
    readonly headers: Readonly<Record<string, string>>;
}

/** A host and its port. */
export interface Endpoint {
    readonly host: string;
    readonly port: number;
}

/** Reads `host`, `host:port`, an address, or `[address]:port`; `port` is NaN where it is none. @param usual - the port where none is named */
export function splitTarget(text: string, usual: number): Endpoint {
    if (isIP(text) !== 0) {
        return { host: text, port: usual };
    }
    const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
    const number = port === undefined ? usual : Number(port);
    return { host: bracketed ?? plain ?? '', port: number > 65_535 ? Number.NaN : number };
}

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i;

/** Whether a text is an address or a name that can be resolved. */
export function isHost(text: string): boolean {
    return (
        isIP(text) !== 0 ||
        (text.length <= 253 &&
            text
                .replace(/\.$/, '')
                .split('.')
                .every((part) => label.test(part)))
    );
}
