/** The addresses of this machine, from its own network interfaces. No other machine is asked. */
import type { NetworkInterfaceInfo } from 'node:os';

import { parseIp } from '../../../platform/address/ip.ts';
import { forbids } from '../../../platform/outbound/addresses.ts';

/** An address of an interface. */
export interface AddressCandidate {
    readonly address: string;
    readonly family: 'ipv4' | 'ipv6';
    readonly interface: string;
    /** Whether addresses of its kind can be reached from the internet; a firewall may still prevent it. */
    readonly public: boolean;
}

/** All addresses but loopback and link-local ones, public ones first. */
export function addressCandidates(
    interfaces: NodeJS.Dict<readonly NetworkInterfaceInfo[]>
): AddressCandidate[] {
    const found: AddressCandidate[] = [];
    for (const [name, infos] of Object.entries(interfaces)) {
        for (const { address, family, internal } of infos ?? []) {
            const kind = family === 'IPv4' ? 'ipv4' : 'ipv6';
            if (!internal && !/^(fe[89ab][0-9a-f]:|169\.254\.)/i.test(address)) {
                found.push({ address, family: kind, interface: name, public: isPublic(address) });
            }
        }
    }
    return found.sort((a, b) => Number(b.public) - Number(a.public));
}

function isPublic(address: string): boolean {
    const ip = parseIp(address);
    return ip !== null && forbids(ip, [], []) === null;
}
