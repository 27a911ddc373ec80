import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { challengeValue, newAccountKey, thumbprintOf } from '../../../../core/src/platform/keys/acme.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('challengeValue', () => {
    it('is what RFC 7638 and RFC 8555 say', () => {
        // The example of RFC 7638 is RSA; the members of an EC key are ordered alike.
        expect(
            thumbprintOf({
                kty: 'EC',
                crv: 'P-256',
                x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
                y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM'
            })
        ).to.equal('cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s');
        expect(challengeValue('token', newAccountKey())).to.match(/^[A-Za-z0-9_-]{43}$/);
    });
});
