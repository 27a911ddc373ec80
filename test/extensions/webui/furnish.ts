/** One of each thing that the extensions keep, as far as none of it needs more than the panel: what their pages show. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';

import type { Client } from '../../support/panel/client.ts';
import { until } from '../../support/until.ts';
import type { Instance } from '../database/instances.ts';

/** All extensions but the pages themselves. */
export const everyPlugin = [
    'ai',
    'appstore',
    'backup',
    'container',
    'cronjob',
    'database',
    'deploy',
    'filemanager',
    'firewall',
    'mcpserver',
    'monitoring',
    'php'
] as const;

const things: readonly (readonly [path: string, body: object])[] = [
    ['ai/conversations', { title: 'Why is shop.example slow?' }],
    ['ai/memories', { text: 'The shop is quiet on Sundays', tags: ['shop'] }],
    [
        'appstore/sources',
        { name: 'own-apps', kind: 'casaos', url: 'https://127.0.0.1:1/apps.git', acceptUnsigned: true }
    ],
    [
        'container/registries',
        { server: 'registry.example', username: 'shop', password: 'correct horse battery' }
    ],
    [
        'cronjob/tasks',
        {
            name: 'Wake the whole harbour in the morning',
            schedule: '0 3 * * *',
            command: ['/bin/echo', 'hello'],
            tags: ['harbour']
        }
    ],
    ['deploy/env-groups', { name: 'shared', vars: [{ name: 'NODE_ENV', value: 'production' }] }],
    [
        'deploy/connections',
        { name: 'forge', kind: 'token', host: 'git.example', token: 'a-token-of-the-forge' }
    ],
    ['filemanager/favourites', { root: 'main', path: 'site', title: 'The shop' }],
    [
        'firewall/rules',
        { direction: 'in', action: 'accept', protocol: 'tcp', ports: ['443'], comment: 'The shop' }
    ],
    ['firewall/zones', { name: 'office', interfaces: [], sources: ['198.51.100.0/24'] }],
    ['firewall/sets', { name: 'partners', family: 'ipv4', source: 'manual' }],
    [
        'monitoring/checks',
        { name: 'shop.example', kind: 'http', target: 'http://127.0.0.1:1/', intervalSeconds: 3_600 }
    ],
    [
        'monitoring/silences',
        { until: new Date(Date.now() + 86_400_000).toISOString(), reason: 'We move the shop' }
    ],
    ['monitoring/exports', { type: 'otlp', url: 'http://metrics.example/v1/metrics' }]
];

/** Makes them. @param folder - for what lies on the disk @param server - a server for `database`; null where none runs */
export async function furnish(client: Client, folder: string, server: Instance | null): Promise<void> {
    mkdirSync(join(folder, 'files/site'), { recursive: true });
    writeFileSync(join(folder, 'files/site/settings.json'), '{}');
    const set = await client.put('/api/plugins/filemanager', {
        settings: { roots: [{ name: 'main', path: join(folder, 'files'), roles: [] }], shares: true }
    });
    expect(set.status, set.text).to.equal(200);
    await until(
        async () => (await client.get('/api/plugins/filemanager/roots')).data?.length === 1,
        'the file manager to have its root'
    );
    const servers =
        server === null
            ? []
            : [
                  [
                      'database/servers',
                      {
                          name: 'orders',
                          kind: server.kind,
                          mode: 'registered',
                          host: '127.0.0.1',
                          port: server.port,
                          username: server.username,
                          password: server.password
                      }
                  ] as const
              ];
    for (const [path, body] of [...things, ...servers]) {
        const { status, text } = await client.post(`/api/plugins/${path}`, body);
        expect(status, `${path} ${text}`).to.equal(201);
    }
}
