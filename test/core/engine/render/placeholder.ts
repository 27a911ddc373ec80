import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { literal, unsupportedPlaceholders } from '../../../../core/src/engine/render/placeholder.ts';
import { shares } from '../../../../core/src/engine/render/profile/proxy.ts';
import { parseUpstream } from '../../../../core/src/engine/render/profile/upstream.ts';
import type { Site } from '../../../../core/src/engine/site.ts';
import { testSite } from '../../../support/engine/site.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('literal', () => {
    it('hides braces from the engine and leaves other text alone', () => {
        expect(literal('plain } \\ text')).to.equal('plain } \\ text');
        expect(literal('{env.X} \\{')).to.equal('\\{env.X\\} \\\\{');
    });
});

describe('unsupportedPlaceholders', () => {
    const paths = (over: Partial<Site>): readonly string[] =>
        unsupportedPlaceholders(testSite(over)).map(({ path }) => path);
    const access = { allow: [], deny: [], basicAuth: [], forwardAuth: null };

    it('finds nothing in a site that can be served as typed', () => {
        expect(
            paths({
                headers: { request: [{ op: 'set', name: 'X-A', value: '{env.X}' }], response: [] },
                errorPages: [{ status: 404, body: '{file./etc/passwd}' }],
                access: {
                    ...access,
                    allow: ['10.0.0.0/8', '::1', '2001:db8::/32'],
                    forwardAuth: { url: 'https://auth.test:9/x%20y?a={b}', copyHeaders: ['X-User'] }
                },
                cors: { origins: ['*'], methods: [], headers: [], credentials: false, maxAgeSeconds: 0 },
                advanced: [
                    { handler: 'headers', request: { set: { X: ['{http.request.host} {environment}'] } } }
                ],
                locations: [{ path: '/*', upstream: 'h2c://[::1]:1', stripPrefix: false }]
            })
        ).to.equal([]);
        expect(
            paths({
                type: 'static',
                static: { root: '/srv/[x]{y}', browse: false, index: ['a b{.html'], spaFallback: false }
            })
        ).to.equal([]);
    });

    it('finds secrets in advanced handlers at any depth, names included', () => {
        expect(
            paths({
                advanced: [
                    { handler: 'static_response', body: 'x {env.SECRET}' },
                    { a: [{ '{file./etc/passwd}': 1 }, 'the {system.hostname}'] },
                    { b: '{$SECRET}' }
                ]
            })
        ).to.equal([
            'advanced.0.body',
            'advanced.1.a.0.{file./etc/passwd}',
            'advanced.1.a.1',
            'advanced.2.b'
        ]);
    });

    it('finds what the engine would take for a pattern or could not dial', () => {
        expect(
            paths({
                headers: {
                    request: [{ op: 'delete', name: 'X-*', value: '' }],
                    response: [{ op: 'set', name: 'a{b}', value: '' }]
                }
            })
        ).to.equal(['headers.request.0.name', 'headers.response.0.name']);
        expect(
            paths({
                access: {
                    ...access,
                    allow: ['10.0.0.0/33', 'private_ranges'],
                    deny: ['fe80::1%eth0', '1.2.3.4/x'],
                    forwardAuth: { url: 'ftp://x', copyHeaders: ['*'] }
                }
            })
        ).to.equal([
            'access.forwardAuth.copyHeaders.0',
            'access.forwardAuth.url',
            'access.allow.0',
            'access.allow.1',
            'access.deny.0',
            'access.deny.1'
        ]);
        expect(
            paths({
                upstreams: [
                    { address: 'http://a:1', weight: 1 },
                    { address: 'https://a:1', weight: 1 }
                ]
            })
        ).to.equal(['upstreams']);
        expect(
            paths({
                upstreams: [{ address: '{env.X}:80', weight: 1 }],
                locations: [{ path: '/', upstream: 'a', stripPrefix: false }]
            })
        ).to.equal(['upstreams.0.address', 'locations.0.upstream']);
        expect(
            paths({
                type: 'static',
                static: { root: '/srv/[x]', browse: false, index: ['../x', '..', 'a*'], spaFallback: true }
            })
        ).to.equal(['static.root', 'static.index.0', 'static.index.1', 'static.index.2']);
        expect(paths({ type: 'php', php: { root: '/srv/*', fastcgi: 'php', index: ['a?.php'] } })).to.equal([
            'php.fastcgi',
            'php.root',
            'php.index.0'
        ]);
        expect(
            paths({
                type: 'php',
                php: {
                    root: '/srv',
                    upstreams: [
                        { address: 'php:9000', weight: 1 },
                        { address: '{env.X}:80', weight: 1 }
                    ],
                    index: []
                }
            })
        ).to.equal(['php.upstreams.1.address']);
        expect(
            paths({
                cors: {
                    origins: ['https://*.a.test'],
                    methods: [],
                    headers: [],
                    credentials: false,
                    maxAgeSeconds: 0
                }
            })
        ).to.equal(['cors.origins.0']);
        for (const url of [
            'http://user@a.test/',
            'http://a.test/#x',
            'http://a.test/%25',
            'http://a.test/%zz',
            'a.test'
        ]) {
            expect(paths({ access: { ...access, forwardAuth: { url, copyHeaders: [] } } })).to.equal([
                'access.forwardAuth.url'
            ]);
        }
    });
});

describe('parseUpstream', () => {
    it('reads each form and nothing else', () => {
        expect(parseUpstream('a.test:80')).to.equal({ scheme: 'http', dial: 'a.test:80', unix: false });
        expect(parseUpstream('https://[::1]:443')).to.equal({
            scheme: 'https',
            dial: '[::1]:443',
            unix: false
        });
        expect(parseUpstream('unix//run/x y.sock')).to.equal({
            scheme: 'http',
            dial: 'unix//run/x y.sock',
            unix: true
        });
        for (const address of [
            'a.test',
            'a.test:',
            ':80',
            'udp/a:1',
            'tcp/a:1',
            'a:1-3',
            'a:1/x',
            'unix/x',
            'ftp://a:1',
            '{x}:1',
            'a:123456',
            ''
        ]) {
            expect(parseUpstream(address)).to.be.null();
        }
    });
});

describe('shares', () => {
    const turns = (...weights: readonly number[]): readonly number[] =>
        shares(weights.map((weight) => ({ address: 'a:1', weight })));

    it('spreads turns by weight, with no more of them than need be', () => {
        expect(turns(10, 10)).to.equal([0, 1]);
        expect(turns(30, 10)).to.equal([0, 0, 1, 0]);
        expect(turns(5)).to.equal([0]);
        const many = turns(1000, 1, 999);
        expect(many.length).to.be.at.most(103);
        expect(many.filter((turn) => turn === 1)).to.have.length(1);
    });
});
