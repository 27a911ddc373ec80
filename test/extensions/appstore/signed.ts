import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Call } from '@portico/sdk';

import { itUnless } from '../../support/skip.ts';
import { appDocument, noMinisign, type Part, png, sha256 } from './publisher.ts';
import { AppstoreRig, publisherHost } from './rig.ts';

export const lab = Lab.script();
const { after, before, beforeEach, describe, it } = lab;
const signed = itUnless(noMinisign, it);

let rig: AppstoreRig;
let count = 0;
let source = '';

describe('Signed catalogues', { timeout: 120_000 }, () => {
    before(async () => {
        rig = await AppstoreRig.start();
    });

    after(() => rig?.close());

    // Each test has a source of its own: what one index did, the next must not see.
    beforeEach(() => {
        count += 1;
        source = `s${count}`;
    });

    const add = async (documents: readonly Part[] = [appDocument()], more: Part = {}): Promise<void> => {
        rig.publisher.publish(documents, more);
        expect((await rig.addSource(source)).status).to.equal(201);
    };
    const syncFails = async (code: number, words: string): Promise<void> => {
        const { state, error } = await rig.run(`/sources/${source}/sync`);
        expect([state, error?.code]).to.equal(['failed', code]);
        const { data } = await rig.get(`/sources/${source}`);
        expect(data.lastError).to.contain(words);
    };

    signed('are taken when they are signed, and shown by language, search and category', async () => {
        const icon = sha256(png);
        rig.publisher.write('icons/wiki.png', png);
        const wiki = appDocument();
        const shop = appDocument({
            id: 'shop',
            title: { en: 'Shop' },
            tagline: { en: 'Sells' },
            categories: [],
            architectures: ['s390x']
        });
        await add([wiki, shop]);
        const index = JSON.parse(
            await (await fetch(`http://127.0.0.1:${rig.publisher.port}/index.json`)).text()
        ) as Record<string, Part[]>;
        index['apps'] = (index['apps'] ?? []).map((app) =>
            app['id'] === 'wiki' ? { ...app, icon: { path: 'icons/wiki.png', sha256: icon } } : app
        );
        rig.publisher.write('index.json', JSON.stringify(index));
        rig.publisher.sign();
        expect(await rig.sync(source)).to.equal({ added: 2, changed: 0, removed: 0 });

        const { data: state } = await rig.get(`/sources/${source}`);
        expect([state.state, state.signed, state.apps, state.lastError]).to.equal(['ready', true, 2, null]);
        expect(state.keyId).to.match(/^[0-9A-F]{16}$/);
        const { data: apps } = await rig.get(`/apps?source=${source}&lang=de-AT`);
        expect(apps.map(({ id, title, available }: Part) => [id, title, available])).to.equal([
            ['shop', 'Shop', false],
            ['wiki', 'Das Wiki', true]
        ]);
        expect(apps[0].why).to.contain('amd64');
        const found = async (query: string): Promise<string[]> =>
            (await rig.get(`/apps?source=${source}&${query}`)).data.map(({ id }: Part) => id);
        expect(await found('q=everyone%20WIKI')).to.equal(['wiki']);
        expect(await found('category=office')).to.equal(['wiki']);
        expect(await found('limit=1')).to.equal(['shop']);
        const { data: categories } = await rig.get('/categories?lang=de');
        expect(categories.find(({ id }: Part) => id === 'office').title).to.equal('Büro');

        const { data: one } = await rig.ask('GET', `/apps/${source}/wiki`, undefined, 'viewer');
        expect(one.description.html).to.contain('<em>pages</em>');
        // No engine, no plan.
        expect([one.plan, one.changelog[0].version]).to.equal([null, '1.0.0']);
        const answer = await rig.host.as('viewer').fetch('GET', `/apps/${source}/wiki/icon`);
        expect([answer.status, answer.headers.get('content-type')]).to.equal([200, 'image/png']);
        expect(Buffer.from(await answer.arrayBuffer()).equals(png)).to.equal(true);
        expect((await rig.get(`/apps/${source}/shop/icon`)).code).to.equal(40400);
        expect((await rig.get('/apps/none/wiki')).code).to.equal(40400);
    });

    signed('are fetched by what changed alone', async () => {
        await add([appDocument(), appDocument({ id: 'shop' })]);
        await rig.sync(source);
        rig.publisher.requests.length = 0;
        expect(await rig.sync(source)).to.equal({ added: 0, changed: 0, removed: 0 });
        expect(rig.publisher.requests).to.equal(['index.json.minisig', 'index.json']);
        rig.publisher.publish([appDocument({ version: '1.0.1' }), appDocument({ id: 'blog' })]);
        rig.publisher.requests.length = 0;
        expect(await rig.sync(source)).to.equal({ added: 1, changed: 1, removed: 1 });
        expect(rig.publisher.requests.filter((path) => path.startsWith('apps/')).sort()).to.equal([
            'apps/blog.json',
            'apps/wiki.json'
        ]);
    });

    signed('are refused without the pinned key, and the one before stays', async () => {
        await add();
        await rig.sync(source);
        const { publisher } = rig;
        const still = async (): Promise<void> => {
            const { data } = await rig.get(`/apps?source=${source}`);
            expect(data.map(({ version }: Part) => version)).to.equal(['1.0.0']);
        };
        publisher.publish([appDocument({ version: '6.6.6' })], {}, 'other');
        await syncFails(42251, 'not pinned');
        await still();
        publisher.publish([appDocument({ version: '6.6.6' })]);
        publisher.sign('first', ['-l']);
        await syncFails(42251, 'without hashing');
        // Changed after it was signed: the file, the trusted comment, the form.
        publisher.publish([appDocument({ version: '6.6.6' })]);
        const text = await (await fetch(`http://127.0.0.1:${publisher.port}/index.json`)).text();
        const signature = await (await fetch(`http://127.0.0.1:${publisher.port}/index.json.minisig`)).text();
        publisher.write('index.json', `${text} `);
        await syncFails(42251, 'not what was signed');
        publisher.write('index.json', text);
        publisher.write('index.json.minisig', signature.replace(/timestamp:\d+/, 'timestamp:1'));
        await syncFails(42251, 'trusted comment');
        for (const bad of [
            '',
            'garbage',
            signature.split('\n').slice(0, 2).join('\n'),
            signature.replace(/\n(.)/, '\n!$1')
        ]) {
            publisher.write('index.json.minisig', bad);
            await syncFails(42251, 'no signature');
        }
        await still();
        const { data } = await rig.get(`/sources/${source}`);
        expect(data.state).to.equal('error');
        // A source that keeps failing is told of once.
        const told = rig.host.notifications.filter(
            ({ event, data: about }) =>
                event.endsWith('source-failed') && (about as Part)['source'] === source
        );
        expect(told.length).to.equal(1);
    });

    signed('follow a new key that the index before announced, and no other', async () => {
        const { publisher } = rig;
        const next = publisher.key('next');
        await add([appDocument()], { nextKey: next });
        await rig.sync(source);
        const before = (await rig.get(`/sources/${source}`)).data.keyId;
        publisher.publish([appDocument({ version: '1.1.0' })], {}, 'next');
        await rig.sync(source);
        const { data } = await rig.get(`/sources/${source}`);
        expect([data.publicKey, data.keyId === before]).to.equal([next, false]);
        // The old key is worth nothing any more.
        publisher.publish([appDocument({ version: '1.2.0' })], {}, 'first');
        await syncFails(42251, 'not pinned');
    });

    signed('are refused when they are older than one that was seen, or have expired', async () => {
        await add([appDocument()], { sequence: 1_000 });
        await rig.sync(source);
        rig.publisher.publish([appDocument({ version: '0.9.0' })], { sequence: 999 });
        await syncFails(42250, '999 after 1000');
        rig.publisher.publish([appDocument()], {
            sequence: 1_001,
            expiresAt: new Date(Date.now() - 1_000).toISOString()
        });
        await syncFails(42250, 'expired');
        rig.machine.offsetMs = 2 * 86_400_000;
        try {
            const { data } = await rig.get(`/sources/${source}`);
            expect(data.state).to.equal('expired');
            const { data: apps } = await rig.get(`/apps?source=${source}`);
            expect([apps[0].available, apps[0].why]).to.equal([
                false,
                'The catalogue of its source has expired'
            ]);
            expect((await rig.post('/plan', { source, app: 'wiki' })).code).to.equal(42250);
        } finally {
            rig.machine.offsetMs = 0;
        }
    });

    signed('hold each document and icon against its hash and its form', async () => {
        await add();
        await rig.sync(source);
        rig.publisher.publish([appDocument({ version: '1.0.7' })]);
        rig.publisher.write(
            'apps/wiki.json',
            JSON.stringify(appDocument({ version: '1.0.7', license: 'none' }))
        );
        await syncFails(42251, 'not what the index names');
        const bad: readonly (readonly [Part, string])[] = [
            [{ form: [{ name: 'lower', type: 'text' }] }, 'form'],
            [{ form: [{ name: 'APP_PORT', type: 'text' }] }, 'form'],
            [
                {
                    form: [
                        { name: 'A', type: 'text' },
                        { name: 'A', type: 'text' }
                    ]
                },
                'twice'
            ],
            [{ form: [{ name: 'A', type: 'text', regex: '(' }] }, 'pattern'],
            [{ form: [{ name: 'A', type: 'random', default: 'known' }] }, 'random'],
            [{ form: [{ name: 'A', type: 'shell' }] }, 'form'],
            [{ images: { 'a:1': 'sha256:abc' } }, 'images'],
            [{ main: { service: 'web', port: 0 } }, 'main'],
            [{ from: 'no range' }, 'range'],
            [{ website: 'javascript:alert(1)' }, 'website'],
            [{ description: { en: 'x'.repeat(100_001) } }, 'description']
        ];
        for (const [change, words] of bad) {
            rig.publisher.publish([appDocument({ version: '1.0.1', ...change })]);
            await syncFails(42250, words);
        }
        // A document is the one that the index means.
        rig.publisher.publish([appDocument({ version: '1.0.1' })]);
        const other = JSON.stringify(appDocument({ version: '9.9.9' }));
        rig.publisher.write('apps/wiki.json', other);
        rig.publisher.publish([], {
            apps: [{ ...appDocument({ version: '1.0.1' }), path: 'apps/wiki.json', sha256: sha256(other) }]
        });
        await syncFails(42250, 'that of wiki 9.9.9');
        const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>';
        rig.publisher.write('i.png', svg);
        rig.publisher.publish([], {
            apps: [
                {
                    ...appDocument(),
                    path: 'apps/wiki.json',
                    sha256: sha256(other),
                    icon: { path: 'i.png', sha256: sha256(svg) }
                }
            ]
        });
        await syncFails(42250, 'icon of wiki is no PNG');
        expect((await rig.get(`/apps?source=${source}`)).data[0].version).to.equal('1.0.0');
    });

    signed('are refused by size, by path and by form of the index', async () => {
        await add();
        const app = { ...appDocument(), sha256: 'a'.repeat(64) };
        const paths = [
            '../up.json',
            '/root.json',
            'a/../../b',
            'https://evil.example/x',
            '//evil/x',
            'a%2e%2e/b',
            'a\\b',
            './x',
            'a/./b',
            ''
        ];
        for (const path of paths) {
            rig.publisher.publish([], { apps: [{ ...app, path }] });
            await syncFails(42250, 'path');
        }
        for (const change of [
            { format: 'other' },
            { formatVersion: 2 },
            { sequence: -1 },
            { expiresAt: 'soon' },
            { nextKey: 'none' },
            { apps: null }
        ]) {
            rig.publisher.publish([], change);
            await syncFails(42250, Object.keys(change)[0] ?? '');
        }
        rig.publisher.publish([], {
            apps: [
                { ...app, path: 'a' },
                { ...app, path: 'b' }
            ]
        });
        await syncFails(42250, 'twice');
        rig.publisher.publish([], {
            apps: Array.from({ length: 5_001 }, (_, at) => ({ ...app, id: `a${at}`, path: 'a' }))
        });
        await syncFails(42250, '5000');
        rig.publisher.write('index.json', '[1, 2');
        rig.publisher.sign();
        await syncFails(42250, 'no JSON');
        rig.publisher.write('index.json', Buffer.alloc(16 * 1_048_576 + 1, 32));
        rig.publisher.sign();
        await syncFails(50250, 'more than');
        const large = JSON.stringify(appDocument({ version: '2.0.0', compose: 'x'.repeat(1_048_576) }));
        rig.publisher.publish([], {
            apps: [{ ...app, version: '2.0.0', path: 'large', sha256: sha256(large) }]
        });
        rig.publisher.write('large', large);
        await syncFails(50250, 'more than');
        expect((await rig.get(`/sources/${source}`)).data.apps).to.equal(0);
    });

    signed('come over https alone, also after a redirect', async () => {
        const refused = async (url: string): Promise<void> => {
            const { code, data } = await rig.addSource(source, { url });
            expect([url, code, data.errors[0].path]).to.equal([url, 40001, 'url']);
        };
        await refused('http://apps.example');
        await refused('http://8.8.8.8/apps');
        await refused('ftp://apps.example');
        await refused('https://user:pass@apps.example');
        await refused('https://apps.example/?x=1');
        // An address of one's own network is granted by name.
        rig.host.network.answer('127.0.0.1', ({ url }) => fetch(url));
        const own = await rig.addSource(`${source}-own`, { url: `http://127.0.0.1:${rig.publisher.port}` });
        expect(own.status).to.equal(201);
        await refused('http://127.0.0.2:8080');
        rig.publisher.publish([appDocument()]);
        await rig.sync(`${source}-own`);

        await add();
        const lead = (location: string): void => {
            rig.publisher.answers.set('index.json.minisig', (_request, response) =>
                response.writeHead(302, { location }).end()
            );
        };
        try {
            lead('http://apps.example/signature');
            await syncFails(50250, 'not https');
            lead('http://169.254.169.254/latest');
            await syncFails(50250, 'not granted');
            lead(`https://${publisherHost}/index.json.minisig`);
            await syncFails(50250, 'too often');
            rig.publisher.answers.set('index.json.minisig', (_request, response) =>
                response.socket?.destroy()
            );
            await syncFails(50250, 'no answer');
            lead(`https://${publisherHost}/moved`);
            rig.publisher.answers.set('moved', (_request, response) => {
                rig.publisher.answers.clear();
                void fetch(`http://127.0.0.1:${rig.publisher.port}/index.json.minisig`).then(async (answer) =>
                    response.end(await answer.text())
                );
            });
            await rig.sync(source);
        } finally {
            rig.publisher.answers.clear();
        }
    });

    signed('describe apps without anything that acts', async () => {
        const markdown = [
            '<script>alert(1)</script><img src=x onerror=alert(1)><iframe src="https://x"></iframe>',
            '[bad](javascript:alert(1)) [data](data:text/html,x) [rel](//evil.example) [good](https://good.example "t")',
            '![track](https://evil.example/pixel.png)',
            '<form action="/x"><input></form><style>*{}</style><a href="https://x" onclick="y" style="z">q</a>',
            '| a | b |\n|---|---|\n| 1 | 2 |',
            '`<b>code</b>`'
        ].join('\n\n');
        await add([
            appDocument({
                description: { en: markdown },
                changelog: [{ version: '1.0.0', text: { en: markdown } }]
            })
        ]);
        await rig.sync(source);
        const { data } = await rig.get(`/apps/${source}/wiki`);
        for (const html of [data.description.html, data.changelog[0].html]) {
            expect(html).to.match(/<table>[^]*<code>&lt;b&gt;code/);
            expect(html).to.contain(
                '<a href="https://good.example" rel="noopener noreferrer nofollow" target="_blank">good</a>'
            );
            const tags: string[] = html.match(/<[a-z][^>]*>/gi) ?? [];
            expect(
                tags.filter(
                    (tag) =>
                        /^<(script|img|iframe|form|input|style|link|svg)/i.test(tag) ||
                        /\son\w+=|style=|javascript:|data:|href="\/\//i.test(tag)
                )
            ).to.equal([]);
        }
    });

    signed(
        'are pinned: address, kind and key never change, and what is not signed needs a word',
        async () => {
            await add();
            const other = rig.publisher.key('other');
            for (const change of [
                { url: 'https://other.example' },
                { publicKey: other },
                { kind: 'casaos' }
            ]) {
                expect((await rig.put(`/sources/${source}`, change)).code).to.equal(40950);
            }
            const { data, headers } = await rig.get(`/sources/${source}`);
            expect((await rig.put(`/sources/${source}`, { enabled: false })).data.enabled).to.equal(false);
            expect(
                (
                    await rig.host
                        .as('admin')
                        .put(`/sources/${source}`, { enabled: true }, { ifMatch: String(data.version) })
                ).code
            ).to.equal(41200);
            expect(headers.get('etag')).to.equal('"1"');
            expect((await rig.addSource(source)).code).to.equal(40900);
            expect((await rig.addSource(`${source}x`, { publicKey: 'RWTnope' })).code).to.equal(40001);
            expect(
                (await rig.post('/sources', { name: 'nokey', kind: 'portico', url: 'https://a.example' }))
                    .code
            ).to.equal(40001);
            expect((await rig.addSource('local')).code).to.equal(40001);
            for (const who of ['viewer', 'operator'] as const) {
                expect((await rig.ask('PUT', `/sources/${source}`, { enabled: true }, who)).status).to.equal(
                    403
                );
            }
            expect((await rig.ask('POST', `/sources/${source}/sync`, {}, 'viewer')).status).to.equal(403);
            expect((await rig.ask('POST', `/sources/${source}/sync`, {}, 'operator')).status).to.equal(202);
            await rig.host.tasks.wait();
            expect((await rig.ask('DELETE', `/sources/${source}`)).status).to.equal(200);
            expect((await rig.get(`/apps?source=${source}`)).data).to.equal([]);
        }
    );

    signed('go into exports with their keys, and come back the same', async () => {
        await add([appDocument()], {
            templates: [
                {
                    id: 'site',
                    title: { en: 'A site' },
                    project: { source: { url: 'https://git.example/site' } }
                }
            ]
        });
        await rig.sync(source);
        const [given] = await rig.host.hooks.run('export.collect', { maxBytes: 1_000_000 });
        expect(given?.ok).to.equal(true);
        const items =
            given?.ok === true ? (given.result as { name: string; data: { sources: Part[] } }[]) : [];
        const kept = items[0]?.data.sources.find(({ name }) => name === source);
        expect(kept?.['publicKey']).to.equal(rig.publisher.key());
        const { data: templates } = await rig.get('/templates');
        expect(templates.find((each: Part) => each['source'] === source)?.title).to.equal('A site');
        // Without `deploy` there is no project.
        expect((await rig.post(`/templates/${source}/site`, { name: 'mine' })).code).to.equal(50307);
        const asked: unknown[] = [];
        await rig.host.partners.set('deploy', {
            createProject: (input: unknown, { actor }: Call) => {
                asked.push(input, actor?.username);
                return { id: 7 };
            }
        });
        const use = { name: 'mine', domain: 'mine.example' };
        const made = await rig.post(`/templates/${source}/site`, use);
        expect([made.status, made.data, made.headers.get('location')]).to.equal([
            201,
            { project: 7 },
            '/api/plugins/deploy/projects/7'
        ]);
        const project = {
            source: { url: 'https://git.example/site' },
            name: 'mine',
            host: { domain: use.domain }
        };
        expect(asked).to.equal([{ project }, 'admin']);
        expect((await rig.ask('POST', `/templates/${source}/site`, use, 'operator')).status).to.equal(403);
        expect((await rig.post(`/templates/${source}/other`, use)).status).to.equal(404);
        await rig.ask('DELETE', `/sources/${source}`);
        const restored = await rig.host.hooks.run('import.restore', {
            version: '1.0.0',
            mode: 'merge',
            items
        });
        expect(JSON.stringify(restored)).to.contain('"ok":true');
        expect((await rig.get(`/sources/${source}`)).data.publicKey).to.equal(rig.publisher.key());
    });
});
