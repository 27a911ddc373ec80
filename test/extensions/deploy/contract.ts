import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { isFailure } from '@portico/sdk';
import { createTestHost } from '@portico/testing';

import type { DeployContract } from '../../../extensions/deploy/src/contract.ts';
import deploy from '../../../extensions/deploy/src/index.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('The contract of deployments', () => {
    it('makes a project for a person who may, and for no other', async () => {
        await using host = await createTestHost(deploy, {
            package: new URL('../../../extensions/deploy/package.json', import.meta.url)
        });
        const project = { name: 'site', source: { url: 'https://git.example/site.git' } };
        const codeOf = (error: unknown): number => (isFailure(error) ? error.code : 0);
        const own = host.contract<DeployContract>({ plugin: 'appstore' });
        expect(await own.createProject({ project }).catch(codeOf)).to.equal(40300);
        const viewer = host.contract<DeployContract>({ plugin: 'appstore', who: 'viewer' });
        expect(await viewer.createProject({ project }).catch(codeOf)).to.equal(40300);
        const admin = host.contract<DeployContract>({ plugin: 'appstore', who: 'admin' });
        const { id } = (await admin.createProject({ project })) as { id: number };
        const { data } = await host.as('admin').ask('GET', `/projects/${id}`);
        expect(data).to.include({ name: 'site', state: 'empty', keep: 5 });
        expect(await admin.createProject({ project }).catch(codeOf)).to.equal(40900);
        expect(await admin.createProject({ project: { name: '-' } }).catch(codeOf)).to.equal(40001);
        const bad = { ...project, name: 'bad', source: { url: 'file:///etc' } };
        expect(await admin.createProject({ project: bad }).catch(codeOf)).to.equal(42250);
    });
});
