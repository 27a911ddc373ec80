/** Where a translation sends packets. */
import { type Interval, readPrefix } from '../address/interval.ts';
import { readPorts } from '../address/ports.ts';

/** The target of a translation. */
export interface NatTarget {
    /** One address; null: this machine. */
    readonly address: Interval | null;
    readonly port: number | null;
}

/** Reads `10.0.0.5`, `10.0.0.5:8080`, `fd00::5`, `[fd00::5]:8080` or `8080`; null for anything else. */
export function parseTarget(text: string): NatTarget | null {
    const only = readPrefix(text);
    if (only !== null) {
        return only.from === only.to ? { address: only, port: null } : null;
    }
    const [, six, four, port = ''] = /^(?:\[([0-9A-Fa-f:.]+)\]:|([\d.]+):)?(\d{1,5})$/.exec(text) ?? [];
    const range = readPorts(port);
    if (range === null) {
        return null;
    }
    const head = six ?? four;
    const address = head === undefined ? null : readPrefix(head);
    const isRight =
        head === undefined || (address !== null && address.family === (six === undefined ? 'ipv4' : 'ipv6'));
    return isRight ? { address, port: range.from } : null;
}
