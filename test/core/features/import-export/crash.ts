import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createPanelProcess } from '../../../support/panel/process.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const count = 300;
const document = {
    format: 'portico-export',
    formatVersion: 1,
    createdAt: '2026-01-01T00:00:00.000Z',
    sections: {
        settings: { 'engine.acmeEmail': 'moved@example.com', 'dns.nameservers': ['192.0.2.53'] },
        roles: [
            {
                name: 'mover',
                description: '',
                permissions: ['hosts:read'],
                createdAt: '2026-01-01T00:00:00.000Z',
                updatedAt: '2026-01-01T00:00:00.000Z'
            }
        ],
        hosts: Array.from({ length: count }, (_, at) => ({
            domain: `crash${at}.test`,
            upstream: '127.0.0.1:9',
            compression: at % 2 === 0
        }))
    }
};

describe('an import that is killed', () => {
    it(
        'has happened or has not, whenever it was, and the engine serves what the rows say',
        { timeout: 240_000 },
        async () => {
            for (const delay of [20, 300, 700, 1_500]) {
                const panel = await createPanelProcess();
                try {
                    await panel.start();
                    const client = await panel.login();
                    const started = client
                        .post('/api/import-export/import', { document, mode: 'replace', dryRun: false })
                        .then(
                            ({ status }) => status,
                            () => 0
                        );
                    await wait(delay);
                    await panel.end('SIGKILL');
                    await started;
                    await panel.start();
                    const again = await panel.login();
                    const [hosts, { data: settings }, { data: roles }, { data: engine }] = [
                        await again.get('/api/hosts'),
                        await again.get('/api/settings/engine.acmeEmail'),
                        await again.get('/api/users/roles'),
                        await again.get('/api/proxyengine/drift')
                    ];
                    const happened = settings.value === 'moved@example.com';
                    expect([
                        delay,
                        hosts.data.length,
                        roles.some(({ name }: { name: string }) => name === 'mover')
                    ]).to.equal([delay, happened ? count : 0, happened]);
                    expect(
                        hosts.data.every(({ state }: { state: string }) => state === 'applied')
                    ).to.be.true();
                    expect(engine.drifted).to.be.false();
                    const { data: tasks } = await again.get('/api/tasks?kind=import');
                    expect(tasks.map(({ state }: { state: string }) => state)).to.equal(
                        happened ? ['succeeded'] : tasks.length === 0 ? [] : ['failed']
                    );
                    expect(tasks[0]?.result?.sections.hosts.counts.create ?? 0).to.equal(
                        happened ? count : 0
                    );
                } finally {
                    await panel.close();
                }
            }
        }
    );
});
