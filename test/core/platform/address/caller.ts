import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { networkOf } from '../../../../core/src/platform/address/caller.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('networkOf', () => {
    it('takes 256 addresses of IPv4 and a /64 of IPv6 together, however they are written', () => {
        for (const [ip, network] of [
            ['192.0.2.7', '192.0.2.0/24'],
            ['192.0.2.255', '192.0.2.0/24'],
            ['::ffff:192.0.2.7', '192.0.2.0/24'],
            ['::ffff:c000:207', '192.0.2.0/24'],
            ['2001:db8::1', '2001:db8:0:0::/64'],
            ['2001:0db8:0000:0000:1:2:3:4', '2001:db8:0:0::/64'],
            ['2001:db8:0:1:ffff::', '2001:db8:0:1::/64'],
            ['::1', '0:0:0:0::/64'],
            ['fe80::1%eth0', 'fe80:0:0:0::/64'],
            ['::192.0.2.7', '0:0:0:0::/64'],
            ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
            ['nonsense', 'local'],
            [null, 'local']
        ] as const) {
            expect(networkOf(ip)).to.equal(network);
        }
    });
});
