/** Ports that this machine takes connections or packets on, and the processes that do. */
import type { Machine } from '../machine.ts';
import { readUsers } from '../sampling/sources/processes.ts';
import { linesOf } from '../sampling/sources/system.ts';

/** One open port, and the process that listens there. */
export interface OpenPort {
    readonly protocol: 'tcp' | 'udp';
    /** IPv4 or IPv6; `0.0.0.0` and `::` are every address. */
    readonly address: string;
    readonly port: number;
    /** Null when the process is in another namespace, or may not be seen. */
    readonly pid: number | null;
    readonly process: string | null;
    readonly user: string | null;
    /** Who can reach it: this machine alone, its networks alone, or everyone that a firewall lets in. */
    readonly scope: 'loopback' | 'private' | 'all';
}

interface ListeningSocket {
    readonly protocol: 'tcp' | 'udp';
    readonly address: string;
    readonly port: number;
    readonly uid: number;
    readonly inode: string;
}

/** TCP sockets that listen, and UDP sockets without a peer, by the numbers of `include/net/tcp_states.h`. */
const openStates = { tcp: '0A', udp: '07' } as const;
const tables = [
    ['tcp', '/proc/net/tcp'],
    ['tcp', '/proc/net/tcp6'],
    ['udp', '/proc/net/udp'],
    ['udp', '/proc/net/udp6']
] as const;
/** Number of processes that are looked at before other work gets its turn. */
const batch = 50;
const privateAddress =
    /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|f[cd]|fe[89ab])/;

/** Lists open ports by port, protocol and address. A port that several processes share is listed for each. */
export async function listPorts(machine: Machine): Promise<OpenPort[]> {
    const sockets = tables.flatMap(([protocol, path]) => readTable(machine, protocol, path));
    const owners = await findOwners(machine, new Set(sockets.map(({ inode }) => inode)));
    const users = readUsers(machine);
    const ports = sockets.flatMap(({ protocol, address, port, uid, inode }): OpenPort[] =>
        (owners.get(inode) ?? [null]).map((pid) => ({
            protocol,
            address,
            port,
            pid,
            process: pid === null ? null : nameOf(machine, pid),
            user: users.get(uid) ?? String(uid),
            scope: scopeOf(address)
        }))
    );
    const unique = new Map(ports.map((each) => [JSON.stringify(each), each]));
    return [...unique.values()].sort(
        (a, b) =>
            a.port - b.port ||
            a.protocol.localeCompare(b.protocol) ||
            a.address.localeCompare(b.address) ||
            (a.pid ?? 0) - (b.pid ?? 0)
    );
}

/** Says who can reach an address of this machine. */
export function scopeOf(address: string): OpenPort['scope'] {
    const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
    if (plain === '::1' || plain.startsWith('127.')) {
        return 'loopback';
    }
    return privateAddress.test(plain) ? 'private' : 'all';
}

function readTable(machine: Machine, protocol: 'tcp' | 'udp', path: string): ListeningSocket[] {
    return linesOf(machine.read(path))
        .slice(1)
        .flatMap((line): ListeningSocket[] => {
            const [, local = '', , state, , , , uid = '', , inode = ''] = line.trim().split(/\s+/);
            const [address = '', port = ''] = local.split(':');
            return state === openStates[protocol] && inode !== '0'
                ? [
                      {
                          protocol,
                          address: parseAddress(address),
                          port: Number.parseInt(port, 16),
                          uid: Number(uid),
                          inode
                      }
                  ]
                : [];
        });
}

/** Reads an address of `/proc/net`: words of four bytes, each in the order of the processor, which is little-endian wherever Node runs today. */
function parseAddress(hex: string): string {
    const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => [
        ...Buffer.from(word, 'hex').reverse().values()
    ]);
    if (bytes.length === 4) {
        return bytes.join('.');
    }
    const groups = Array.from({ length: 8 }, (_unused, index) =>
        (((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0)).toString(16)
    );
    // The parser of URLs shortens an IPv6 address as RFC 5952 says.
    const short = new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
    const mapped = groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff';
    return mapped ? `::ffff:${bytes.slice(12).join('.')}` : short;
}

/** Finds the processes that hold sockets, by the numbers of the sockets. */
async function findOwners(machine: Machine, inodes: ReadonlySet<string>): Promise<Map<string, number[]>> {
    const owners = new Map<string, number[]>();
    const pids = machine.list('/proc').filter((name) => /^\d+$/.test(name));
    for (const [index, pid] of pids.entries()) {
        for (const inode of socketsOf(machine, pid)) {
            if (inodes.has(inode)) {
                owners.set(inode, [...(owners.get(inode) ?? []), Number(pid)]);
            }
        }
        if (index % batch === batch - 1) {
            await new Promise((resolve) => {
                setImmediate(resolve);
            });
        }
    }
    return owners;
}

function socketsOf(machine: Machine, pid: string): ReadonlySet<string> {
    const folder = `/proc/${pid}/fd`;
    return new Set(
        machine.list(folder).flatMap((fd) => {
            const inode = /^socket:\[(\d+)\]$/.exec(machine.link(`${folder}/${fd}`) ?? '')?.[1];
            return inode === undefined ? [] : [inode];
        })
    );
}

function nameOf(machine: Machine, pid: number): string | null {
    return machine.read(`/proc/${pid}/comm`)?.trimEnd() ?? null;
}
