/** The names in the hosts file of this machine (hosts(5)), for which no resolver is asked. `localhost` is seldom the only name of the loopback. */
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';

const path = '/etc/hosts';
/** Lists against advertisements have 200,000 lines. A larger file is not read. */
const mostBytes = 16 * 1024 * 1024;

let known: { readonly changed: string; readonly names: ReadonlyMap<string, readonly string[]> } | null = null;

/** The addresses of a lower-case name in the hosts file as it is now. None when the file cannot be read. */
export function addressesInHostsFile(name: string): readonly string[] {
    try {
        const { mtimeMs, ino, size } = statSync(path);
        const changed = `${mtimeMs} ${ino} ${size}`;
        if (known?.changed !== changed) {
            known = { changed, names: size > mostBytes ? new Map() : namesOf(readFileSync(path, 'utf8')) };
        }
    } catch {
        known = null;
    }
    return known?.names.get(name) ?? [];
}

function namesOf(text: string): ReadonlyMap<string, readonly string[]> {
    const found = new Map<string, string[]>();
    for (const line of text.split('\n')) {
        const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
        if (isIP(address) === 0) {
            continue;
        }
        for (const name of names) {
            const key = name.toLowerCase();
            found.set(key, [...(found.get(key) ?? []), address]);
        }
    }
    return found;
}
