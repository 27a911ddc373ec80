/** The addresses of this machine, from its own network interfaces. No other machine is asked. */
import { BlockList } from 'node:net';
import type { NetworkInterfaceInfo } from 'node:os';

/** An address of an interface. */
export interface AddressCandidate {
    readonly address: string;
    readonly family: 'ipv4' | 'ipv6';
    readonly interface: string;
    /** Whether addresses of its kind can be reached from the internet; a firewall may still prevent it. */
    readonly public: boolean;
}

const notPublic = new BlockList();
for (const [network, prefix] of [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.0.2.0', 24],
    ['192.88.99.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['198.51.100.0', 24],
    ['203.0.113.0', 24],
    ['224.0.0.0', 3]
] as const) {
    notPublic.addSubnet(network, prefix, 'ipv4');
}
const global = new BlockList();
global.addSubnet('2000::', 3, 'ipv6');
const documentation = new BlockList();
documentation.addSubnet('2001:db8::', 32, 'ipv6');

/** All addresses but loopback and link-local ones, public ones first. */
export function addressCandidates(
    interfaces: NodeJS.Dict<readonly NetworkInterfaceInfo[]>
): AddressCandidate[] {
    const found: AddressCandidate[] = [];
    for (const [name, infos] of Object.entries(interfaces)) {
        for (const { address, family, internal } of infos ?? []) {
            const kind = family === 'IPv4' ? 'ipv4' : 'ipv6';
            if (!internal && !/^(fe[89ab][0-9a-f]:|169\.254\.)/i.test(address)) {
                found.push({ address, family: kind, interface: name, public: isPublic(address, kind) });
            }
        }
    }
    return found.sort((a, b) => Number(b.public) - Number(a.public));
}

function isPublic(address: string, family: 'ipv4' | 'ipv6'): boolean {
    return family === 'ipv4'
        ? !notPublic.check(address, family)
        : global.check(address, family) && !documentation.check(address, family);
}
