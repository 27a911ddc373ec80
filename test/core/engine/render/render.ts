import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { engineFeatures } from '../../../../core/src/engine/render/features.ts';
import { explain, render } from '../../../../core/src/engine/render/render.ts';
import { parseEngineVersion } from '../../../../core/src/engine/render/version.ts';
import type { Site, SiteCertificate } from '../../../../core/src/engine/site.ts';
import { testContext, testSite } from '../../../support/engine/site.ts';

export const lab = Lab.script();
const { describe, it } = lab;

/** What is above the line of a golden file. */
interface Input {
    /** `site`: what `explain` says of the first site; `config`: all that `render` makes. */
    readonly show: 'site' | 'config';
    /** 2.6.2 by default. */
    readonly version?: string;
    readonly settings?: Readonly<Record<string, unknown>>;
    /** What differs from a site with everything off. */
    readonly sites: readonly Partial<Site>[];
    readonly certificates?: readonly SiteCertificate[];
}

const folder = new URL('../../../golden/', import.meta.url);
const files = readdirSync(folder)
    .filter((name) => name.startsWith('engine-') && name.endsWith('.txt'))
    .sort();
const line = '-'.repeat(40);

describe('the golden files of the engine', () => {
    for (const name of files) {
        it(`${name} is what the compiler says`, () => {
            const file = new URL(name, folder);
            const [above = '', below = ''] = readFileSync(file, 'utf8').split(`\n${line}\n`);
            const input = JSON.parse(above) as Input;
            const context = {
                ...testContext(),
                features: engineFeatures(parseEngineVersion(input.version ?? '2.6.2'))
            };
            const full = { ...context, settings: { ...context.settings, ...input.settings } };
            const sites = input.sites.map((site, index) => testSite({ id: index + 1, ...site }));
            const { config, table } = render({ ...full, sites, certificates: input.certificates ?? [] });
            const said = `${JSON.stringify(input.show === 'site' ? explain(sites[0] ?? testSite(), full) : { config, table: Object.fromEntries(table) }, null, 2)}\n`;

            // PORTICO_GOLDEN=write after a change that is meant; the difference is for a human to read.
            if (process.env['PORTICO_GOLDEN'] === 'write') {
                writeFileSync(file, `${above}\n${line}\n${said}`);
            } else {
                expect(said).to.equal(below);
            }
        });
    }
});

describe('render', () => {
    it('says the same for the same rows in another order and with keys in another order', () => {
        const sites = Array.from({ length: 40 }, (_, index) =>
            testSite({
                id: index,
                domain: `s${index}.test`,
                securityHeaders: index % 2 === 0,
                ssl: index % 3 === 0,
                sslMode: 'internal',
                advanced: index % 5 === 0 ? [{ handler: 'headers', request: {} }] : []
            })
        );
        const turned = sites.toReversed().map((site) => ({
            ...(Object.fromEntries(Object.entries(site).reverse()) as Site),
            advanced: site.advanced.map((handler) => Object.fromEntries(Object.entries(handler).reverse()))
        }));
        const one = render({ ...testContext(), sites, certificates: [] });
        const two = render({ ...testContext(), sites: turned, certificates: [] });
        expect([two.configHash, two.tableHash]).to.equal([one.configHash, one.tableHash]);
        expect(one.configHash).to.match(/^[0-9a-f]{64}$/);
    });

    it('refuses two sites of one name', () => {
        expect(() =>
            render({
                ...testContext(),
                sites: [testSite(), testSite({ id: 2, domain: 'b.test', aliases: ['a.test'] })],
                certificates: []
            })
        ).to.throw('two sites have the name a.test');
    });

    it('refuses a folder that the engine would read as a pattern', () => {
        const context = testContext();
        expect(() =>
            render({
                ...context,
                folders: { ...context.folders, table: '/srv/[x]/table' },
                sites: [],
                certificates: []
            })
        ).to.throw(/table/);
    });

    it('writes an explicit transport on every proxy', () => {
        const { config } = render({
            ...testContext(),
            certificates: [],
            sites: [
                testSite({
                    locations: [{ path: '/x', upstream: '127.0.0.1:2', stripPrefix: true }],
                    access: {
                        allow: [],
                        deny: [],
                        basicAuth: [],
                        forwardAuth: { url: 'http://auth.test/', copyHeaders: [] }
                    }
                }),
                testSite({
                    id: 2,
                    domain: 'b.test',
                    upstreams: [
                        { address: '127.0.0.1:1', weight: 1 },
                        { address: '127.0.0.1:2', weight: 1 }
                    ]
                }),
                testSite({
                    id: 3,
                    domain: 'c.test',
                    type: 'php',
                    php: { root: '/srv', fastcgi: '127.0.0.1:9000', index: [] }
                })
            ]
        });
        const found: unknown[] = [];
        JSON.stringify(config, (_, value: unknown) => {
            const { handler, transport } = (value ?? {}) as {
                readonly handler?: unknown;
                readonly transport?: { readonly protocol?: unknown };
            };
            if (handler === 'reverse_proxy') {
                found.push(transport?.protocol);
            }

            return value;
        });
        expect(found.sort()).to.equal(['fastcgi', 'http', 'http', 'http', 'http']);
    });

    it('names the same profile for sites that differ in names, state and the one upstream only', () => {
        const profileOf = (over: Partial<Site>): unknown =>
            (explain(testSite(over), testContext())['profile'] as { readonly id: string }).id;
        const plain = profileOf({});
        for (const over of [
            { domain: 'z.test', id: 9, aliases: ['y.test'] },
            { enabled: false },
            { maintenance: true },
            { upstreams: [{ address: 'http://[::1]:1', weight: 7 }] },
            { ssl: true, sslMode: 'internal' as const },
            { forceHttps: true }
        ]) {
            expect(profileOf(over)).to.equal(plain);
        }

        for (const over of [
            { upstreams: [{ address: 'https://a.b:1', weight: 1 }] },
            { ssl: true, forceHttps: true },
            { compression: true },
            { upstreams: [{ address: `${'a'.repeat(60)}.`.repeat(4) + 'test:1', weight: 1 }] }
        ]) {
            expect(profileOf(over)).to.not.equal(plain);
        }
    });
});
