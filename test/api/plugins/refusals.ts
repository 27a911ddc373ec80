/** What `GET /api/plugins/{name}` and the audit log show of capabilities that a plugin used without a grant. */
import { realpathSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel } from '../../support/panel/panel.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('GET /api/plugins/{name}', () => {
    it('shows what the plugin was refused', { timeout: 60_000 }, async () => {
        const panel = await startPanel({
            environment: {
                PORTICO_PLUGIN_DIRS: realpathSync(join(import.meta.dirname, '../../fixtures/puppets'))
            }
        });
        try {
            await panel.panel.settled();
            await panel.client.post('/api/plugins/puppet-nobody/do', { door: 'hosts.list' });
            await panel.client.post('/api/plugins/puppet-nobody/do', { door: 'hosts.list' });
            const { data } = await panel.client.get('/api/plugins/puppet-nobody');
            expect(
                data.refused.map(({ capability, count }: { capability: string; count: number }) => [
                    capability,
                    count
                ])
            ).to.equal([['hosts', 2]]);
            expect(Date.parse(data.refused[0].at) > 0).to.be.true();
            const {
                data: [entry]
            } = await panel.client.get('/api/audit?resource=puppet-nobody.capability');
            expect([entry.outcome, entry.code, entry.resourceId, entry.actor.plugin]).to.equal([
                'failure',
                50305,
                'hosts',
                'puppet-nobody'
            ]);
        } finally {
            await panel.close();
        }
    });
});
