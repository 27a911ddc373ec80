/** Several clients that change the same hosts. No acknowledged change may be overwritten by another one. */
import type { Client } from '../../support/panel/client.ts';
import type { Random } from '../random.ts';
import type { Fields } from './world.ts';

export interface Contenders {
    /** Domains of the hosts. */
    readonly domains: readonly string[];
    /** Changes hosts until it is stopped or gets no answer. @returns how many changes were acknowledged */
    run(stopped: () => boolean): Promise<number>;
    /** Compares the hosts with everything that was acknowledged. */
    settle(hosts: readonly Fields[]): void;
    /** Accepts the hosts as they are, after other clients changed them. */
    adopt(hosts: readonly Fields[]): void;
}

interface Told {
    readonly id: number;
    /** The acknowledged state of each version. */
    readonly versions: Map<number, string>;
    /** The change that was sent and not answered. */
    readonly unknown: Set<string>;
    /** The last version that was checked. */
    seen: number;
}

/** @param hosts - as they are now */
export function createContenders(
    hosts: readonly Fields[],
    clients: readonly Client[],
    random: Random,
    violation: (text: string) => void
): Contenders {
    const told = new Map(
        hosts.map((host) => [
            String(host['domain']),
            {
                id: Number(host['id']),
                versions: new Map([[Number(host['version']), String(host['notes'])]]),
                unknown: new Set(),
                seen: Number(host['version'])
            } satisfies Told as Told
        ])
    );
    let serial = 0;
    const change = async (client: Client, host: Told): Promise<boolean | null> => {
        const notes = `contended ${(serial += 1)}`;
        const stated = random.chance(0.3) ? { 'if-match': `"${host.seen}"` } : {};
        host.unknown.add(notes);
        const body = { notes, ...(random.chance(0.1) ? { compression: random.chance(0.5) } : {}) };
        const answer = await client.put(`/api/hosts/${host.id}`, body, { headers: stated }).catch(() => null);
        if (answer === null || answer.code === 50300) {
            return null;
        }
        host.unknown.delete(notes);
        if (answer.code !== 0) {
            if (answer.code !== 41200 && answer.code !== 50301) {
                violation(`A contended change is answered ${answer.text}`);
            }
            return false;
        }
        const version = Number(answer.data.version);
        if (host.versions.has(version)) {
            violation(
                `Version ${version} of host ${host.id} was acknowledged to two changes: ${host.versions.get(version)} and ${notes}`
            );
        }
        host.versions.set(version, notes);
        return true;
    };
    return {
        domains: [...told.keys()],
        async run(stopped) {
            const counts = await Promise.all(
                clients.map(async (client) => {
                    let acknowledged = 0;
                    for (let done: boolean | null = true; !stopped() && done !== null;) {
                        done = await change(client, random.pick([...told.values()]));
                        acknowledged += done === true ? 1 : 0;
                    }
                    return acknowledged;
                })
            );
            return counts.reduce((sum, count) => sum + count, 0);
        },
        settle(now) {
            for (const [domain, host] of told) {
                const row = now.find((each) => each['domain'] === domain);
                const version = Number(row?.['version'] ?? 0);
                const notes = String(row?.['notes']);
                const highest = Math.max(...host.versions.keys());
                if (version < highest) {
                    violation(`${domain} is at version ${version}, but ${highest} was acknowledged`);
                }
                const wanted = host.versions.get(version);
                if (wanted === undefined ? !host.unknown.has(notes) : wanted !== notes) {
                    violation(
                        `${domain} at version ${version} says ${notes}, and not ${wanted ?? 'what a client sent'}`
                    );
                }
                const counted = [...host.versions.keys()].filter((each) => each > host.seen).length;
                if (version - host.seen > counted + host.unknown.size) {
                    violation(
                        `${domain} went from version ${host.seen} to ${version} with ${counted} changes acknowledged and ${host.unknown.size} unknown`
                    );
                }
                anew(host, version, notes);
            }
        },
        adopt(now) {
            for (const [domain, host] of told) {
                const row = now.find((each) => each['domain'] === domain);
                anew(host, Number(row?.['version']), String(row?.['notes']));
            }
        }
    };
}

function anew(host: Told, version: number, notes: string): void {
    host.versions.clear();
    host.versions.set(version, notes);
    host.unknown.clear();
    host.seen = version;
}
