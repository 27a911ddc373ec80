import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import fc from 'fast-check';

import { parseEntry } from '../../../../../core/src/engine/files/table/entry.ts';
import type { EngineConfig } from '../../../../../core/src/engine/port.ts';
import { coveringWildcard } from '../../../../../core/src/engine/render/certificate-choice.ts';
import { compiledProfiles } from '../../../../../core/src/engine/render/compile/dispatch.ts';
import { loadedNames } from '../../../../../core/src/engine/render/compile/tls.ts';
import {
    Projection,
    type ProjectionChange,
    type ProjectionStep
} from '../../../../../core/src/engine/render/projection/projection.ts';
import { render } from '../../../../../core/src/engine/render/render.ts';
import type { Site, SiteCertificate } from '../../../../../core/src/engine/site.ts';
import { testContext, testSite } from '../../../../support/engine/site.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const only = (site: Site): ProjectionChange => ({ sites: [{ id: site.id, site }] });

/** A projection whose engine runs what it says. */
const running = (...sites: readonly Site[]): Projection => {
    const projection = new Projection(testContext());
    projection.change({ sites: sites.map((site) => ({ id: site.id, site })) });
    projection.loaded();
    return projection;
};

/** Fingerprints of the certificates that an engine with this configuration may show for a name, as its rules go. */
const shownFor = (
    domain: string,
    config: EngineConfig,
    held: Readonly<Record<string, readonly string[]>>
): readonly string[] => {
    const { choices, certificates } = loadedNames(config);
    const below = coveringWildcard(domain);
    const choice = choices.find(({ name }) => name === domain) ?? choices.find(({ name }) => name === below);
    return choice === undefined
        ? [
              ...new Set(
                  certificates
                      .map(({ fingerprint }) => fingerprint)
                      .filter((each) => held[each]?.some((name) => name === domain || name === below))
              )
          ]
        : [choice.fingerprint];
};

const profilesOf = (projection: Projection): readonly string[] =>
    compiledProfiles(projection.config())
        .map(({ id }) => id)
        .sort();

describe('Projection', () => {
    it('needs a load at first, and none for what the loaded configuration can do', () => {
        const projection = new Projection(testContext());
        expect(projection.needsReload).to.be.true();
        const first = projection.change(only(testSite()));
        expect(first.needsReload).to.be.true();
        expect(first.table).to.equal([
            { name: 'a.test', from: null, to: projection.table.get('a.test') ?? null }
        ]);
        projection.loaded();

        const dial = parseEntry(projection.table.get('a.test') ?? '')?.dial;
        expect(dial).to.equal('127.0.0.1:9');
        for (const over of [
            { upstreams: [{ address: '10.0.0.1:80', weight: 1 }] },
            { enabled: false },
            { maintenance: true },
            { domain: 'b.test' },
            { aliases: ['*.c.test'] },
            { ssl: true }
        ]) {
            const step = projection.change(only(testSite(over)));
            expect(step.needsReload).to.be.false();
            expect(step.table.length).to.be.above(0);
        }

        expect(projection.change(only(testSite({ ssl: true }))).table).to.equal([]);
        expect(projection.change(only(testSite({ compression: true }))).needsReload).to.be.true();
    });

    it('keeps a dropped profile in the next configuration only, and never loads to drop one', () => {
        const projection = running(testSite(), testSite({ id: 2, domain: 'b.test', compression: true }));
        const both = profilesOf(projection);
        expect(both.length).to.equal(2);
        expect(projection.change({ sites: [{ id: 2, site: null }] }).needsReload).to.be.false();
        expect(profilesOf(projection)).to.equal(both);

        expect(projection.change(only(testSite({ securityHeaders: true }))).needsReload).to.be.true();
        expect(profilesOf(projection).length).to.equal(3);
        const hash = projection.configHash();
        projection.loaded();
        expect(projection.configHash()).to.equal(hash);

        projection.change(only(testSite({ securityHeaders: true, hsts: true, ssl: true })));
        expect(profilesOf(projection).length).to.equal(2);
    });

    it('takes a step back, newest first', () => {
        const projection = running(testSite());
        const before = { hash: projection.configHash(), table: projection.tableHash() };
        const one = projection.change(only(testSite({ compression: true })));
        const two = projection.change({
            sites: [
                { id: 1, site: null },
                { id: 2, site: testSite({ id: 2 }) }
            ],
            settings: { ...testContext().settings, httpPort: 81 }
        });
        expect(() => one.undo()).to.throw('only the newest step can be undone');
        two.undo();
        expect(projection.needsReload).to.be.true();
        one.undo();
        expect(() => one.undo()).to.throw();
        expect(projection.needsReload).to.be.false();
        expect({ hash: projection.configHash(), table: projection.tableHash() }).to.equal(before);
    });

    it('moves a name from one site to another in one step, and refuses one name twice without a trace', () => {
        const projection = running(testSite({ aliases: ['b.test'] }));
        const step = projection.change({
            sites: [
                { id: 2, site: testSite({ id: 2, domain: 'b.test', enabled: false }) },
                { id: 1, site: testSite() }
            ]
        });
        expect(step.table.map(({ name, to }) => [name, parseEntry(to ?? '')?.state])).to.equal([
            ['b.test', 'off']
        ]);
        const before = projection.tableHash();
        expect(() =>
            projection.change(only(testSite({ id: 3, domain: 'c.test', aliases: ['a.test'] })))
        ).to.throw('two sites have the name a.test');
        expect(() =>
            projection.change(only(testSite({ id: 3, domain: 'c.test', aliases: ['c.test'] })))
        ).to.throw('two sites have the name c.test');
        expect(() => projection.change(only(testSite({ id: 3, domain: 'C.test' })))).to.throw(/not a name/);
        expect(() =>
            projection.change(
                only(testSite({ id: 3, domain: 'c.test', upstreams: [{ address: 'nowhere', weight: 1 }] }))
            )
        ).to.throw(/not an upstream/);
        expect([projection.tableHash(), projection.needsReload]).to.equal([before, false]);
    });

    it('loads when a name would get a certificate from the wrong hand', () => {
        const internal = { ssl: true, sslMode: 'internal' as const };
        const auto = { ssl: true, sslMode: 'auto' as const };
        const certificate: SiteCertificate = { id: 5, fingerprint: 'aa', names: ['a.test', '*.b.test'] };
        const needs = (from: readonly Site[], change: ProjectionChange): boolean => {
            const projection = new Projection(testContext());
            projection.change({
                sites: from.map((site) => ({ id: site.id, site })),
                certificates: [{ id: 5, certificate }]
            });
            projection.loaded();
            return projection.change(change).needsReload;
        };
        const site = (over: Partial<Site>): Site => testSite(over);
        expect(needs([site(auto)], only(site(internal)))).to.be.true();
        expect(needs([site(internal)], only(site(auto)))).to.be.true();
        expect(needs([site(internal)], { sites: [{ id: 1, site: null }] })).to.be.false();
        expect(needs([site(internal)], only(site({ ...internal, enabled: false })))).to.be.false();
        const uploaded = { ssl: true, sslMode: 'certificate' as const, certificateId: 5 };
        expect(needs([site({})], only(site(uploaded)))).to.be.true();
        expect(needs([site(uploaded)], only(site({ ...uploaded, maintenance: true })))).to.be.false();
        expect(needs([site(uploaded)], only(site(auto)))).to.be.true();
        expect(needs([site(uploaded)], { sites: [{ id: 1, site: null }] })).to.be.false();
        expect(needs([site(uploaded)], only(site({ id: 2, domain: 'x.b.test', ...auto })))).to.be.false();
        expect(
            needs([site(uploaded), site({ id: 2, domain: 'x.b.test', ...auto })], {
                sites: [{ id: 1, site: null }]
            })
        ).to.be.true();
        expect(
            needs([site(uploaded)], {
                certificates: [{ id: 5, certificate: { ...certificate, fingerprint: 'bb' } }]
            })
        ).to.be.true();
        expect(needs([site({})], { certificates: [{ id: 5, certificate: null }] })).to.be.false();
        expect(
            needs([site(uploaded)], {
                sites: [{ id: 1, site: null }],
                certificates: [{ id: 5, certificate: null }]
            })
        ).to.be.true();
        expect(
            needs([site(uploaded)], {
                sites: [{ id: 1, site: null }],
                certificates: [{ id: 5, certificate: { ...certificate, fingerprint: 'bb' } }]
            })
        ).to.be.true();
        expect(
            needs(
                [site({ domain: '*.w.test', ...internal })],
                only(site({ id: 2, domain: 'x.w.test', ...auto }))
            )
        ).to.be.true();
        expect(
            needs(
                [site({ domain: '*.w.test', ...internal })],
                only(site({ id: 2, domain: 'x.w.test', ...internal }))
            )
        ).to.be.true();
        expect(
            needs([site({ domain: '*.w.test', ...internal })], only(site({ domain: '*.w.test' })))
        ).to.be.true();
    });

    it('takes a running engine over when all it has too much is what was left behind', () => {
        const before = running(
            testSite({ compression: true }),
            testSite({
                id: 2,
                domain: 'i.test',
                ssl: true,
                sslMode: 'internal',
                errorPages: [{ status: 503, body: 'pause' }]
            }),
            testSite({ id: 3, domain: 'b.test' })
        );
        before.change({
            sites: [
                { id: 1, site: null },
                { id: 2, site: null }
            ]
        });
        const config = JSON.parse(JSON.stringify(before.config())) as Record<string, unknown>;

        const after = new Projection(testContext());
        after.change(only(testSite({ id: 3, domain: 'b.test' })));
        expect(after.adopt(config)).to.be.true();
        expect(after.needsReload).to.be.false();
        expect(after.configHash()).to.equal(before.configHash());
        expect(after.change(only(testSite({ compression: true }))).needsReload).to.be.false();
        expect(
            after.change(only(testSite({ id: 2, domain: 'i.test', ssl: true, sslMode: 'auto' }))).needsReload
        ).to.be.true();

        const secured = running(testSite({ ssl: true, sslMode: 'certificate', certificateId: 5 }));
        const certificate: SiteCertificate = { id: 5, fingerprint: 'aa', names: ['a.test'] };
        secured.change({ certificates: [{ id: 5, certificate }] });
        secured.loaded();
        const loaded = JSON.parse(JSON.stringify(secured.config())) as Record<string, unknown>;
        for (const [present, isTaken] of [
            [certificate, true],
            [null, false],
            [{ ...certificate, fingerprint: 'bb' }, false]
        ] as const) {
            const next = new Projection(testContext());
            next.change({
                sites: [{ id: 1, site: testSite({}) }],
                certificates: [{ id: 5, certificate: present }]
            });
            expect([present?.fingerprint, next.adopt(loaded)]).to.equal([present?.fingerprint, isTaken]);
        }

        const other = new Projection(testContext());
        other.change(only(testSite({ securityHeaders: true })));
        expect(other.adopt(config)).to.be.false();
        expect(other.needsReload).to.be.true();
        expect(new Projection({ ...testContext(), address: '127.0.0.1' }).adopt(config)).to.be.false();
        expect(new Projection(testContext()).adopt({})).to.be.false();
        expect(new Projection(testContext()).adopt({ apps: null, admin: [] })).to.be.false();
    });

    it('says after any changes, loads and undos what a render from scratch says, and never leaves an entry without its profile', () => {
        const names = ['a.test', 'b.test', '*.b.test', 'x.b.test', 'c.test', '*.c.test', 'y.c.test'];
        const held: Readonly<Record<string, readonly string[]>> = {
            aa: ['a.test', '*.b.test'],
            bb: ['*.b.test', 'x.b.test', '*.c.test'],
            cc: names
        };
        const certificate = fc
            .record({ id: fc.constantFrom(1, 2, 3), fingerprint: fc.constantFrom('aa', 'bb', 'cc') })
            .map((each) => ({ ...each, names: held[each.fingerprint] ?? [] }));
        const site = fc.record({
            domain: fc.constantFrom(...names),
            enabled: fc.boolean(),
            maintenance: fc.boolean(),
            ssl: fc.constantFrom(true, true, true, false),
            sslMode: fc.constantFrom(
                'certificate' as const,
                'certificate' as const,
                'auto' as const,
                'internal' as const
            ),
            certificateId: fc.constantFrom(1, 2, 3),
            compression: fc.boolean(),
            forceHttps: fc.boolean(),
            upstreams: fc.constantFrom(
                [{ address: '127.0.0.1:1', weight: 1 }],
                [{ address: 'https://b:2', weight: 1 }],
                [{ address: 'unix//x', weight: 1 }]
            )
        });
        const command = fc.oneof(
            {
                weight: 6,
                arbitrary: fc.record({
                    kind: fc.constant('sites' as const),
                    sites: fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.option(site)), {
                        maxLength: 3,
                        selector: ([id]) => id
                    })
                })
            },
            {
                weight: 3,
                arbitrary: fc.record({
                    kind: fc.constant('certificate' as const),
                    certificate,
                    gone: fc.boolean()
                })
            },
            {
                weight: 1,
                arbitrary: fc.record({
                    kind: fc.constant('settings' as const),
                    port: fc.constantFrom(443, 8443)
                })
            },
            { weight: 4, arbitrary: fc.constant({ kind: 'load' as const }) },
            { weight: 2, arbitrary: fc.constant({ kind: 'undo' as const }) }
        );

        fc.assert(
            fc.property(fc.array(command, { maxLength: 40 }), (commands) => {
                const projection = new Projection(testContext());
                const states = [
                    {
                        sites: new Map<number, Site>(),
                        certificates: new Map<number, SiteCertificate>(),
                        settings: testContext().settings
                    }
                ];
                const steps: ProjectionStep[] = [];
                let loaded: string | null = null;
                let disk = new Map<string, string>();
                for (const each of commands) {
                    const state = states.at(-1);
                    if (state === undefined) {
                        throw new Error('no state');
                    }

                    const next = {
                        sites: new Map(state.sites),
                        certificates: new Map(state.certificates),
                        settings: state.settings
                    };
                    const change: { -readonly [K in keyof ProjectionChange]: ProjectionChange[K] } = {};
                    if (each.kind === 'load') {
                        // Between the load and the table's moves, every entry on disk must have its profile in the configuration.
                        const config = projection.config();
                        if (projection.needsReload) {
                            loaded = projection.configHash();
                            projection.loaded();
                        }

                        const known = new Set(compiledProfiles(config).map(({ id }) => id));
                        for (const entry of [...disk.values(), ...projection.table.values()]) {
                            expect(known.has(parseEntry(entry)?.profile ?? '')).to.be.true();
                        }

                        disk = new Map(projection.table);
                        continue;
                    }

                    if (each.kind === 'undo') {
                        if (steps.length > 0) {
                            steps.pop()?.undo();
                            states.pop();
                        }
                    } else {
                        if (each.kind === 'sites') {
                            for (const [id, over] of each.sites) {
                                over === null
                                    ? next.sites.delete(id)
                                    : next.sites.set(id, testSite({ id, ...over }));
                            }

                            change.sites = each.sites.map(([id]) => ({
                                id,
                                site: next.sites.get(id) ?? null
                            }));
                        } else if (each.kind === 'certificate') {
                            each.gone
                                ? next.certificates.delete(each.certificate.id)
                                : next.certificates.set(each.certificate.id, each.certificate);
                            change.certificates = [
                                { id: each.certificate.id, certificate: each.gone ? null : each.certificate }
                            ];
                        } else {
                            next.settings = { ...state.settings, httpsPort: each.port };
                            change.settings = next.settings;
                        }

                        const all = [...next.sites.values()].map(({ domain }) => domain);
                        if (new Set(all).size < all.length) {
                            expect(() => projection.change(change)).to.throw(/two sites/);
                        } else {
                            steps.push(projection.change(change));
                            states.push(next);
                        }
                    }

                    if (!projection.needsReload && steps.length > 0) {
                        disk = new Map(projection.table);
                    }

                    const now = states.at(-1) ?? state;
                    const fresh = render({
                        ...testContext(),
                        settings: now.settings,
                        sites: now.sites.values(),
                        certificates: now.certificates.values()
                    });
                    expect(projection.tableHash()).to.equal(fresh.tableHash);
                    expect(new Map([...projection.table].sort())).to.equal(new Map([...fresh.table].sort()));
                    const rendered = projection.rendered();
                    expect([rendered.configHash, rendered.tableHash]).to.equal([
                        fresh.configHash,
                        fresh.tableHash
                    ]);
                    const has = new Set(profilesOf(projection));
                    expect(compiledProfiles(fresh.config).every(({ id }) => has.has(id))).to.be.true();
                    if (!projection.needsReload) {
                        expect<string | null>(projection.configHash()).to.equal(loaded);
                        for (const { domain, ssl, sslMode, certificateId } of now.sites.values()) {
                            const wanted =
                                ssl && sslMode === 'certificate'
                                    ? now.certificates.get(certificateId ?? 0)
                                    : undefined;
                            if (
                                wanted?.names.some(
                                    (name) => name === domain || name === coveringWildcard(domain)
                                ) === true
                            ) {
                                expect(shownFor(domain, projection.config(), held)).to.equal([
                                    wanted.fingerprint
                                ]);
                            }
                        }
                    }
                }
            }),
            { numRuns: 300 }
        );
    });
});
