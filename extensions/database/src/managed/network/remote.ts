/** Which networks may reach a server that the panel runs, and which accounts of MariaDB come from these. */
import { hostname, networkInterfaces } from 'node:os';

import { errors } from '@portico/sdk';

/** Where a server lets clients of other machines in. */
export interface RemoteAccess {
    readonly certificateFile: string;
    readonly keyFile: string;
    /** Networks as address and length of the prefix. */
    readonly allow: readonly string[];
}

/** A network. */
interface Network {
    readonly family: 4 | 6;
    readonly value: bigint;
    readonly prefix: number;
}

/** A network as configurations write it. @throws VALIDATION_FAILED 40001 for what is none, and for bits beyond the prefix */
export function normalNetwork(text: string, path: string): string {
    const found = networkOf(text);
    if (found === null) {
        throw errors.invalid([{ path, message: `${text} is no address or network` }]);
    }
    const rest = 1n << BigInt(bitsOf(found) - found.prefix);
    if (found.value % rest !== 0n) {
        throw errors.invalid([{ path, message: `${text} has bits beyond its prefix` }]);
    }
    return `${text.split('/')[0] ?? text}/${found.prefix}`;
}

/** Whether an account of MariaDB comes from this machine, or from one of the networks. */
export function isAllowedHost(host: string, allow: readonly string[]): boolean {
    if (['localhost', '127.0.0.1', '::1'].includes(host)) {
        return true;
    }
    const from = networkOfHost(host);
    return (
        from !== null &&
        allow.some((each) => {
            const network = networkOf(each);
            return (
                network !== null &&
                network.family === from.family &&
                network.prefix <= from.prefix &&
                startOf(from, network.prefix) === startOf(network, network.prefix)
            );
        })
    );
}

/** What other machines may call this one. */
export function ownNames(): readonly string[] {
    const addresses = Object.values(networkInterfaces())
        .flatMap((each) => each ?? [])
        .map(({ address }) => address)
        .filter((address) => !address.startsWith('fe80'));
    const names = [hostname(), 'localhost'].filter((name) => /^[A-Za-z0-9.-]+$/.test(name));
    return [...new Set([...names, '127.0.0.1', ...addresses])];
}

/** `10.0.0.%` and `10.0.0.0/255.255.255.0` as well as addresses; null for names and for `%`. */
function networkOfHost(host: string): Network | null {
    const [address = '', mask] = host.split('/');
    if (mask !== undefined) {
        const bits = networkOf(mask);
        const ones = bits?.value.toString(2) ?? '';
        return /^1*0*$/.test(ones) ? networkOf(`${address}/${ones.replace(/0/g, '').length}`) : null;
    }
    const parts = /^((?:\d+\.){1,3})%$/
        .exec(host)?.[1]
        ?.split('.')
        .filter((part) => part !== '');
    if (parts === undefined) {
        return networkOf(host);
    }
    return networkOf(`${[...parts, '0', '0', '0'].slice(0, 4).join('.')}/${parts.length * 8}`);
}

function networkOf(text: string): Network | null {
    const [address = '', prefix] = text.split('/');
    const family = address.includes(':') ? 6 : 4;
    const value = URL.canParse(family === 6 ? `http://[${address}]/` : `http://${address}/`)
        ? valueOf(address, family)
        : null;
    const most = family === 6 ? 128 : 32;
    const length = prefix === undefined ? most : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Infinity;
    return value === null || length > most ? null : { family, value, prefix: length };
}

/** The number of an address; null for a name and for another spelling of an address. */
function valueOf(address: string, family: 4 | 6): bigint | null {
    if (family === 4) {
        const parts = address.split('.');
        return parts.length === 4 &&
            parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)
            ? parts.reduce((sum, part) => sum * 256n + BigInt(part), 0n)
            : null;
    }
    const plain = new URL(`http://[${address}]/`).hostname.slice(1, -1);
    const [head = '', tail] = plain.split('::');
    const words = (text: string): string[] => (text === '' ? [] : text.split(':'));
    const [first, last] = [words(head), words(tail ?? '')];
    const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0');
    return [...first, ...zeros, ...last].reduce((sum, word) => sum * 65_536n + BigInt(`0x${word}`), 0n);
}

const bitsOf = ({ family }: Network): number => (family === 6 ? 128 : 32);
const startOf = (network: Network, prefix: number): bigint =>
    network.value >> BigInt(bitsOf(network) - prefix);
