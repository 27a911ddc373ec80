import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { HostChange } from '../../../../../core/src/features/hosts/schema/bodies.ts';
import type { HostView } from '../../../../../core/src/features/hosts/schema/view.ts';
import type { Call } from '../../../../../core/src/platform/call.ts';
import { admin, faults, operator, proxy, refused, rowsIn } from '../../../../support/core/host-calls.ts';
import { createHostKit, type HostKit } from '../../../../support/core/hosts.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

let kit: HostKit;

beforeEach(async () => {
    kit = await createHostKit();
});

afterEach(async () => {
    await kit.close();
});

async function create(body: HostChange, call: Call = admin()): Promise<HostView> {
    return (await kit.hosts.create(body, call)).data;
}

const storedRows = (): unknown[] => rowsIn(kit);

describe('hosts:unsafe', () => {
    const root = (): string => {
        const folder = join(kit.store.folder, 'www');
        mkdirSync(folder, { recursive: true });
        return folder;
    };

    it('is needed to set what reaches the machine', async () => {
        const bodies: HostChange[] = [
            proxy('a.test', { advanced: [{ handler: 'headers' }] }),
            { domain: 'a.test', type: 'static', static: { root: root() } },
            { domain: 'a.test', type: 'php', php: { root: root(), fastcgi: '10.0.0.1:9000' } },
            {
                domain: 'a.test',
                type: 'php',
                php: { root: root(), upstreams: [{ address: '10.0.0.1:9000' }] }
            },
            { domain: 'a.test', upstream: 'unix//run/app.sock' },
            proxy('a.test', { locations: [{ path: '/a', upstream: 'unix//run/app.sock' }] }),
            proxy('a.test', { headers: { request: [{ op: 'set', name: 'hOST', value: 'b.test' }] } }),
            ...[
                '169.254.169.254:80',
                'http://[::ffff:169.254.169.254]:80',
                '[64:ff9b::a9fe:a9fe]:80',
                '[fe80::1]:80',
                'http://metadata.google.internal'
            ].map((address): HostChange => ({ domain: 'a.test', upstream: address })),
            proxy('a.test', { locations: [{ path: '/a', upstream: '100.100.100.200:80' }] }),
            proxy('a.test', { access: { forwardAuth: { url: 'http://169.254.169.254/latest' } } })
        ];
        for (const body of bodies) {
            for (const work of [kit.hosts.create(body, operator()), kit.hosts.validate(body, operator())]) {
                const failure = await refused(work);
                expect([failure.code, failure.data?.['permission']], JSON.stringify(body)).to.equal([
                    40300,
                    'hosts:unsafe'
                ]);
            }
            const { id } = await create(body);
            await kit.hosts.remove(id, admin());
        }
    });

    it('is not needed to change anything else of such a host, but to change or take away the part itself', async () => {
        await create(
            proxy('a.test', {
                advanced: [{ handler: 'headers' }],
                headers: { request: [{ op: 'set', name: 'Host', value: 'x' }] }
            })
        );
        await kit.hosts.update(
            1,
            { notes: 'mine', upstream: '10.0.0.2:80', advanced: [{ handler: 'headers' }] },
            operator()
        );
        await kit.hosts.batch({ ids: [1], action: 'disable' }, operator());
        for (const body of [
            { advanced: null },
            { headers: null },
            { headers: { request: [{ op: 'set', name: 'Host', value: 'y' }] } },
            { upstream: 'unix//run/x' }
        ] as HostChange[]) {
            expect((await refused(kit.hosts.update(1, body, operator()))).code).to.equal(40300);
        }
        expect((await refused(kit.hosts.clone(1, 'b.test', operator()))).code).to.equal(40300);
        expect(kit.hosts.get(1).version).to.equal(3);

        const php = (weight: number): HostChange => ({
            php: {
                root: root(),
                upstreams: [{ address: '10.0.0.1:9000' }, { address: '10.0.0.2:9000', weight }]
            }
        });
        const { id } = await create({ domain: 'php.test', type: 'php', ...php(1) });
        await kit.hosts.update(id, { notes: 'mine', ...php(1) }, operator());
        expect((await refused(kit.hosts.update(id, php(2), operator()))).code).to.equal(40300);
    });

    it('is needed to open a host that has such a part to more visitors', async () => {
        const { id } = await create(
            proxy('a.test', {
                advanced: [{ handler: 'headers' }],
                ssl: true,
                sslMode: 'internal',
                forceHttps: true,
                access: {
                    allow: ['10.0.0.0/8'],
                    basicAuth: [{ username: 'ann', password: 'a long password' }]
                }
            })
        );
        for (const body of [
            { aliases: ['b.test'] },
            { forceHttps: false },
            { access: null },
            { access: { allow: ['0.0.0.0/0'], basicAuth: [{ username: 'ann' }] } },
            {
                access: {
                    allow: ['10.0.0.0/8'],
                    basicAuth: [{ username: 'ann', password: 'their own word' }]
                }
            },
            { cors: { origins: ['https://evil.test'] } }
        ] as HostChange[]) {
            expect(
                (await refused(kit.hosts.update(id, body, operator()))).code,
                JSON.stringify(body)
            ).to.equal(40300);
        }
        await kit.hosts.update(
            id,
            { tags: ['x'], access: { allow: ['10.0.0.0/8'], basicAuth: [{ username: 'ann' }] } },
            operator()
        );
        const plain = await create(proxy('plain.test', { access: { allow: ['10.0.0.0/8'] } }));
        await kit.hosts.update(plain.id, { aliases: ['c.test'], access: null }, operator());
    });

    it("does not open the panel's and the engine's own places to any user", async () => {
        const link = join(root(), 'link');
        symlinkSync(kit.folders.runtime, link);
        for (const [body, path] of [
            [
                { domain: 'a.test', type: 'static', static: { root: join(kit.store.folder, 'data') } },
                'static.root'
            ],
            [{ domain: 'a.test', type: 'static', static: { root: link } }, 'static.root'],
            [{ domain: 'a.test', type: 'static', static: { root: `${link}/` } }, 'static.root'],
            [{ domain: 'a.test', type: 'static', static: { root: '/' } }, 'static.root'],
            [{ domain: 'a.test', type: 'static', static: { root: `${root()}/../data` } }, 'static.root'],
            [
                { domain: 'a.test', type: 'php', php: { root: kit.folders.persistent, fastcgi: 'a:1' } },
                'php.root'
            ],
            [
                {
                    domain: 'a.test',
                    type: 'php',
                    php: { root: root(), fastcgi: `unix/${kit.folders.adminSocket}` }
                },
                'php.fastcgi'
            ],
            [
                {
                    domain: 'a.test',
                    type: 'php',
                    php: {
                        root: root(),
                        upstreams: [
                            { address: 'unix//run/php.sock' },
                            { address: `unix/${kit.folders.adminSocket}` }
                        ]
                    }
                },
                'php.upstreams.1.address'
            ],
            [{ domain: 'a.test', upstream: `unix/${kit.folders.adminSocket}` }, 'upstreams.0.address'],
            [{ domain: 'a.test', upstream: `unix/${link}/admin/admin.sock` }, 'upstreams.0.address'],
            [{ domain: 'a.test', upstream: 'unix//proc/self/cwd/x' }, 'upstreams.0.address'],
            [
                proxy('a.test', { locations: [{ path: '/x', upstream: `unix/${kit.folders.adminSocket}` }] }),
                'locations.0.upstream'
            ],
            [
                proxy('a.test', {
                    advanced: [
                        {
                            handler: 'subroute',
                            routes: [{ handle: [{ handler: 'file_server', root: kit.folders.storage }] }]
                        }
                    ]
                }),
                'advanced.0.routes.0.handle.0.root'
            ],
            [
                proxy('a.test', {
                    advanced: [
                        { handler: 'reverse_proxy', upstreams: [{ dial: `unix/${kit.folders.adminSocket}` }] }
                    ]
                }),
                'advanced.0.upstreams.0.dial'
            ],
            [
                proxy('a.test', {
                    advanced: [{ handler: 'reverse_proxy', upstreams: [{ dial: 'localhost:18080' }] }]
                }),
                'advanced.0.upstreams.0.dial'
            ]
        ] as [HostChange, string][]) {
            expect(await faults(kit.hosts.create(body, admin())), JSON.stringify(body)).to.include(path);
        }
        expect(storedRows()).to.equal([]);
        rmSync(link);
    });

    it("does not let a host send to the engine's own listeners", async () => {
        for (const host of [
            '127.0.0.1',
            'localhost',
            '[::1]',
            '0.0.0.0',
            '[::]',
            '127.9.9.9',
            '[::ffff:127.0.0.1]',
            'LOCALHOST',
            'x.localhost',
            '192.0.2.1',
            'a.test'
        ]) {
            expect(
                await faults(kit.hosts.create({ domain: 'a.test', upstream: `${host}:18080` }, admin())),
                host
            ).to.equal(['upstreams.0.address']);
            expect(
                await faults(
                    kit.hosts.create(
                        proxy('a.test', { access: { forwardAuth: { url: `http://${host}:18443/x` } } }),
                        admin()
                    )
                ),
                host
            ).to.equal(['access.forwardAuth.url']);
        }
        await create({ domain: 'a.test', upstream: '127.0.0.1:18081' });
    });

    it('says why a folder cannot be served', async () => {
        const failure = await refused(
            kit.hosts.create(
                { domain: 'a.test', type: 'static', static: { root: '/srv/absent-folder' } },
                admin()
            )
        );
        expect(JSON.stringify(failure.data)).to.contain('static.root').and.contain("engine's user (tester)");
    });
});
