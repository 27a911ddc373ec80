/** Names that this machine gives to addresses by itself (hosts(5)): no resolver is asked for them, and `localhost` is seldom the only one for itself. */
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';

const path = '/etc/hosts';
/** A list against advertisements has 200,000 lines; what is behind them is not looked at. */
const mostBytes = 16 * 1024 * 1024;

let known: { readonly changed: string; readonly names: ReadonlyMap<string, readonly string[]> } | null = null;

/** The addresses of a lower-case name in the hosts file as it is now; none where the file cannot be read. */
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
