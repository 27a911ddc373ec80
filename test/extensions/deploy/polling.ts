import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { GitServer } from './git-server.ts';
import { DeployRig, withoutSandbox } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 90_000;
let rig: DeployRig;
let hanging: GitServer;

const isAsk = ({ path }: { readonly path: string }): boolean => path.endsWith('/info/refs');

async function polled(name: string, server: GitServer): Promise<number> {
    server.create(name, { 'index.html': name });
    return rig.project({
        name,
        source: { url: server.url(name) },
        build: { kind: 'static' },
        host: { domain: `${name}.test` },
        triggers: { pollSeconds: 60 }
    });
}

describe('Projects that are polled', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox !== undefined) {
            return;
        }
        rig = await DeployRig.start();
        hanging = new GitServer(join(rig.top, 'hanging'));
        await hanging.start();
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
        await hanging?.close();
    });

    real('wait for no other host, and the projects of one host for each other', async () => {
        hanging.intercept = () => true;
        await polled('stuck-one', hanging);
        await polled('stuck-two', hanging);
        const ids = [await polled('one', rig.git), await polled('two', rig.git)];
        for (const id of ids) {
            await until(
                async () => (await rig.get(`/projects/${id}`)).data.state === 'live',
                `project ${id} to serve while another host hangs`
            );
        }
        expect((await rig.page('one.test')).text).to.equal('one');
        expect((await rig.page('two.test')).text).to.equal('two');
        expect(hanging.asked.filter(isAsk)).to.have.length(1);
        // Two ticks later nothing more was asked: no project is due, and the host that hangs is still being asked.
        const asked = rig.git.asked.filter(isAsk).length;
        await new Promise((resolve) => setTimeout(resolve, 21_000));
        expect(rig.git.asked.filter(isAsk)).to.have.length(asked);
        expect(hanging.asked.filter(isAsk)).to.have.length(1);
    });
});
