import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { boundaryErrors } from '@portico/sdk/host';

import { fail } from '../../../core/src/platform/errors.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('the failures of the panel and of the boundary to plugins', () => {
    it('have a code of their own each', () => {
        const all = Object.values({ ...fail, ...boundaryErrors }).map((make) => make());
        const shared = all
            .filter(({ code, reason }) => all.some((other) => other.code === code && other.reason !== reason))
            .map(({ reason }) => reason);
        expect(shared).to.equal([]);
    });
});
