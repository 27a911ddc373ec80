import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { refusedTexts } from '../../../../core/src/engine/handlers/check.ts';
import { hostOf } from '../../../../core/src/engine/handlers/targets.ts';
import { testSite } from '../../../support/engine/site.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const pathsOf = (handler: object): readonly string[] =>
    refusedTexts(testSite({ advanced: [handler as Record<string, unknown>] })).map(({ path }) =>
        path.replace(/^advanced\.0\.?/, '')
    );
const proxied = (upstream: object): object => ({ handler: 'reverse_proxy', upstreams: [upstream] });

describe('the handlers that a host may have', () => {
    it('takes handlers as the engine writes them, with names of headers, variables and fields in any spelling', () => {
        for (const handler of [
            {
                handler: 'subroute',
                routes: [
                    {
                        match: [
                            { path: ['/API/*'], not: [{ header: { 'X-Skip': ['*'] } }] },
                            { vars: { '{http.request.method}': ['GET'] }, protocol: 'https' },
                            {
                                file: {
                                    root: '/srv/www',
                                    try_files: ['{http.request.uri.path}', '/index.html']
                                }
                            },
                            { expression: '{http.request.uri.path}.startsWith("/files") && path("/file/*")' }
                        ],
                        handle: [
                            { handler: 'vars', MyVar: '{http.request.host}', root: '/srv/www' },
                            {
                                handler: 'headers',
                                response: { set: { 'X-Path': ['{http.request.uri.path}'] } }
                            },
                            { handler: 'file_server', root: '/srv/www', hide: ['.git'] }
                        ]
                    }
                ]
            },
            {
                ...proxied({ dial: 'backend:8080' }),
                transport: {
                    protocol: 'http',
                    tls: { ca: { provider: 'file', pem_files: ['/etc/ssl/ca.pem'] } }
                },
                headers: { request: { set: { Host: ['{http.reverse_proxy.upstream.hostport}'] } } },
                handle_response: [
                    { match: { status_code: [404] }, routes: [{ handle: [{ handler: 'static_response' }] }] }
                ]
            },
            {
                ...proxied({ dial: '127.0.0.1:9000' }),
                transport: { protocol: 'fastcgi', env: { APP_ENV: 'x' } }
            }
        ]) {
            expect(pathsOf(handler), JSON.stringify(handler)).to.equal([]);
        }
    });

    it('refuses what leads the engine to a file or target that a visitor chooses, however it is spelled', () => {
        const files = { handler: 'file_server', root: '/srv/www' };
        const matched = (matcher: object): object => ({
            handler: 'subroute',
            routes: [{ match: [matcher] }]
        });
        for (const [path, handler] of [
            // Each of these served a file of the machine, or dialled what a request named.
            [
                '{http.request.header.K}',
                { handler: 'vars', '{http.request.header.K}': '{http.request.header.V}' }
            ],
            ['ROOT', { handler: 'vars', ROOT: '/etc' }],
            ['root', { ...files, root: null }],
            ['root', { handler: 'file_server' }],
            ['Root', { ...files, Root: '/etc' }],
            ['R\u00f6ot', { ...files, 'R\u00f6ot': '/etc' }],
            ['fs', { ...files, fs: '{http.request.header.F}' }],
            ['browse.template_file', { ...files, browse: { template_file: '/etc/passwd' } }],
            ['browse.TEMPLATE_FILE', { ...files, browse: { TEMPLATE_FILE: '/etc/passwd' } }],
            ['upstreams.0.DIAL', proxied({ DIAL: '10.0.0.1:80' })],
            ['upstreams.0.dial', proxied({ dial: '{http.request.header.D}' })],
            ['upstreams.0.dial', proxied({ dial: null })],
            ['up\u017Ftreams', { handler: 'reverse_proxy', 'up\u017Ftreams': [] }],
            [
                'dynamic_upstreams.name',
                { handler: 'reverse_proxy', dynamic_upstreams: { source: 'a', name: '{http.request.host}' } }
            ],
            ['dynamic_upstreams.source', { handler: 'reverse_proxy', dynamic_upstreams: { source: 'exec' } }],
            ['transport.protocol', { ...proxied({ dial: 'a:1' }), transport: { protocol: 'exec' } }],
            [
                'transport.tls.client_certificate_key_file',
                {
                    ...proxied({ dial: 'a:1' }),
                    transport: { protocol: 'http', tls: { client_certificate_key_file: 'key.pem' } }
                }
            ],
            ['handler', { handler: 'templates' }],
            ['handler', { handler: 'exec', command: 'id' }],
            ['handler', { handler: 'acme_server' }],
            ['handler', { handler: ['file_server'] }],
            ['HANDLER', { ...files, HANDLER: 'headers' }],
            ['routes.0.match.0.file.root', matched({ file: { try_files: ['/x'] } })],
            ['routes.0.match.0.file.ROOT', matched({ file: { root: '/srv', ROOT: '/' } })],
            ['routes.0.match.0.File', matched({ File: { root: '/' } })],
            [
                'routes.0.match.0.not.0.vars_regexp',
                matched({ not: [{ vars_regexp: { a: { pattern: 'x' } } }] })
            ],
            ['routes.0.match.0.expression', matched({ expression: 'file // x\n ({"root": "/"})' })],
            ['routes.0.match.0.expression.expr', matched({ expression: { expr: 'FILE({})' } })]
        ] as const) {
            expect(pathsOf(handler)[0], JSON.stringify(handler)).to.equal(path);
        }
    });
});

describe('hostOf', () => {
    it('finds the host in each form of an address, and none in other texts', () => {
        for (const [text, host] of [
            ['127.0.0.1:80', '127.0.0.1'],
            ['tcp/backend:80', 'backend'],
            ['udp6/[::1]:53', '::1'],
            ['http://[::1]:80/x', '::1'],
            ['https://api.example/path', 'api.example'],
            ['backend', 'backend'],
            ['unix//run/x', null],
            ['a b', null],
            ['user@host:1', null]
        ] as const) {
            expect(hostOf(text), text).to.equal(host);
        }
    });
});
