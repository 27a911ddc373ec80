import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type ConformanceOptions, type ConformanceReport, runConformance } from '@portico/testing';

import { root as repository } from '../../../support/docs/markdown.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const sound = {
    package: {
        name: '@acme/portico-plugin-try',
        version: '1.0.0',
        description: 'Tries',
        type: 'module',
        keywords: ['portico-plugin'],
        exports: './index.js',
        files: ['index.js'],
        peerDependencies: { '@portico/sdk': '^1.0.0' },
        portico: { name: 'try', sdk: '^1.0.0' }
    },
    setup: "ctx.route({ method: 'GET', path: '/things', access: 'read', summary: 'List things', returns: joi.array(), handler: () => [1] });",
    head: '',
    readme: '# Try\n'
};

describe('runConformance', { timeout: 120_000 }, () => {
    let root: string;
    let made = 0;

    before(() => {
        root = mkdtempSync(join(tmpdir(), 'portico-conformance-'));
        mkdirSync(join(root, 'node_modules/@portico'), { recursive: true });
        symlinkSync(join(repository, 'sdk'), join(root, 'node_modules/@portico/sdk'));
    });

    after(() => rmSync(root, { recursive: true, force: true }));

    const check = async (
        change: {
            readonly package?: object;
            readonly setup?: string;
            readonly settings?: string;
            readonly head?: string;
            readonly readme?: string;
            readonly conformance?: object;
        },
        options: ConformanceOptions = {}
    ): Promise<ConformanceReport> => {
        made += 1;
        const folder = join(root, `plugin-${made}`);
        const {
            package: packageJson,
            setup,
            settings,
            head,
            readme,
            conformance
        } = { ...sound, ...change, package: { ...sound.package, ...change.package } } as typeof sound & {
            readonly settings?: string;
            readonly conformance?: object;
        };
        mkdirSync(folder);
        writeFileSync(join(folder, 'package.json'), JSON.stringify(packageJson));
        writeFileSync(join(folder, 'README.md'), readme);
        writeFileSync(
            join(folder, 'index.js'),
            `import { definePlugin, joi } from '@portico/sdk';\n${head}\nexport default definePlugin({ settings: ${settings ?? `joi.object({ greeting: joi.string().label('Greeting'), token: joi.secret()${conformance === undefined ? '' : '.required()'}.label('Token') })`}, setup(ctx) { ${setup} } });\n`
        );
        if (conformance !== undefined) {
            writeFileSync(join(folder, 'conformance.json'), JSON.stringify(conformance));
        }
        return runConformance(folder, { cycles: 3, ...options });
    };
    const found = async (...input: Parameters<typeof check>): Promise<readonly string[]> => {
        const { findings, passed } = await check(...input);
        expect(passed, JSON.stringify(findings)).to.equal(findings.length === 0);
        expect(findings.every(({ mend }) => mend.length > 10)).to.equal(true);
        return findings.map(({ rule, message }) => `${rule}: ${message}`);
    };

    it('finds nothing wrong with a sound plugin, a hundred times off and on', async () => {
        const report = await check({}, { cycles: 100 });
        expect(report).to.equal({
            plugin: 'try',
            checked: [
                'package',
                'manifest',
                'import',
                'start',
                'routes',
                'labels',
                'places',
                'readme',
                'database',
                'requests',
                'cycles',
                'threads'
            ],
            findings: [],
            passed: true
        });
    });

    it('asks routes for OAuth clients as such clients, and compares what they get in both threads', async () => {
        const route =
            "methods: ['POST'], access: 'read', raw: 'JSON-RPC 2.0, as clients speak it', maxBytes: 1024";
        const setupWith = (answer: string): string =>
            ['/rpc', '/other']
                .map(
                    (path) =>
                        `ctx.http({ ${route}, path: '${path}', ${path === '/rpc' ? 'oauth: true, ' : ''}summary: 'For agents', handler: async (_request, { actor }) => Response.json(${answer}) });`
                )
                .join('\n');
        const client = { username: 'robot', permissions: ['read'], oauth: '/rpc' } as const;
        const post = { method: 'POST', body: {} } as const;
        const requests = [
            { ...post, path: '/rpc', as: client },
            // Refused before the plugin gets them: without the permission, at another path, and without a token.
            { ...post, path: '/rpc', as: { ...client, permissions: [] } },
            { ...post, path: '/other', as: client },
            { ...post, path: '/rpc', as: 'anonymous' }
        ] as const;
        const sound = await check({ setup: setupWith('{ kind: actor.kind }') }, { requests });
        expect(sound).to.include({ findings: [], passed: true });
        const { findings } = await check(
            {
                head: "import { isMainThread } from 'node:worker_threads';",
                setup: setupWith('{ kind: actor.kind, isMainThread }')
            },
            { requests }
        );
        expect(findings.map(({ rule, message }) => `${rule}: ${message}`)).to.equal([
            'threads: In a thread of its own it answers 200 {"kind":"token","isMainThread":false}, else 200 {"kind":"token","isMainThread":true}'
        ]);
    });

    it('finds what is wrong with a package', async () => {
        expect(
            await found({
                package: {
                    keywords: [],
                    peerDependencies: {},
                    dependencies: { '@portico/sdk': '1' },
                    scripts: { postinstall: 'x' }
                }
            })
        ).to.include([
            'package: It lacks the keyword portico-plugin',
            'package: It does not name the SDK as a peer',
            'package: @portico/sdk is among its dependencies',
            'package: It has a script postinstall'
        ]);
        expect((await found({ package: { portico: {} } }))[0]).to.match(
            /^manifest: @acme\/portico-plugin-try does not say which versions of @portico\/sdk it works with/
        );
        expect(await found({ package: { exports: './dist/none.js' } })).to.equal([
            'import: @acme/portico-plugin-try has no file to import: "exports" in its package.json must name one that is there'
        ]);
    });

    it('finds work at import, and what fails there', async () => {
        const [timer = ''] = await found({ head: 'setInterval(() => {}, 1000);' });
        expect(timer).to.match(
            /^import: Importing @acme\/portico-plugin-try started a timer at plugin-\d+\/index\.js:\d+; work begins in onStart$/
        );
        expect(await found({ head: "throw new Error('no');" })).to.equal([
            'import: Importing @acme/portico-plugin-try failed: no'
        ]);
        expect(await found({ head: 'ctx.x();' })).to.equal([
            'import: Importing @acme/portico-plugin-try failed: ctx is not defined'
        ]);
    });

    it('finds what does not start, and takes settings from conformance.json', async () => {
        expect(await found({ setup: "throw new Error('no');" })).to.equal(['start: SETUP_FAILED: no']);
        expect(await found({ conformance: {} })).to.equal(['start: SETTINGS_REQUIRED: Token is required']);
        expect(await found({ conformance: { settings: { token: 'x' } } })).to.equal([]);
    });

    it('finds routes that do not say what they do and answer', async () => {
        expect(
            await found({
                setup: "ctx.route({ method: 'GET', path: '/x', access: 'read', handler: () => ({}) });"
            })
        ).to.equal(['routes: It has no summary', 'routes: It does not say what it answers']);
    });

    it('warns of settings and of fields of requests that have no label, and passes', async () => {
        const { findings, passed } = await check({
            settings:
                "joi.object({ bare: joi.string(), places: joi.array().label('Places').items(joi.object({ path: joi.string(), kind: joi.string().label('Kind') })) })",
            setup: `${sound.setup}
            ctx.route({ method: 'PUT', path: '/things/{id}', id: 'change', access: 'write', summary: 'Change', returns: joi.any(), validate: {
                params: joi.object({ id: joi.number() }),
                query: joi.object({ told: joi.boolean().label('Told') }),
                payload: joi.object({
                    version: joi.readOnly(joi.number()),
                    kind: joi.valid('thing'),
                    key: joi.string().meta({ ui: { widget: 'hidden' } }),
                    either: joi.alternatives(joi.string(), joi.object({ or: joi.string() })).label('Either'),
                    any: joi.record(joi.object({ value: joi.string() })).label('Any')
                })
            }, handler: () => null });
            ctx.route({ method: 'POST', path: '/unseen', access: 'write', summary: 'Unseen', returns: joi.any(), ui: { role: 'hidden' }, validate: { payload: joi.object({ bare: joi.string() }) }, handler: () => null });`
        });
        expect(
            findings.map(({ rule, level, where, message }) => `${level} ${rule} ${where}: ${message}`)
        ).to.equal([
            'warning labels PUT /things/{id} (change): Without a label: id, either.or, any.*.value',
            'warning labels settings: Without a label: bare, places.*.path'
        ]);
        expect(passed).to.equal(true);
    });

    it('warns of routes that no list, card or action of the generated page shows, and says what to add', async () => {
        const route = (method: string, path: string, rest: string) =>
            `ctx.route({ method: '${method}', path: '${path}', access: 'read', summary: 'Do', ${rest}, handler: () => ${rest.includes('array') ? '[]' : '({})'} });`;
        const list = 'returns: joi.array().items(joi.object({ id: joi.number() }))';
        const way =
            "validate: { params: joi.object({ id: joi.string().label('Id'), way: joi.valid('left', 'right').label('Way') }) }";
        const { findings, passed } = await check({
            setup: [
                sound.setup,
                route('GET', '/jobs', list),
                route('PUT', '/jobs/{id}', 'returns: joi.any()'),
                route('GET', '/jobs/{id}/runs', list),
                route('POST', '/jobs/{id}/runs/{run}/stop', 'returns: joi.any()'),
                route('POST', '/clear', 'returns: joi.any()'),
                route('GET', '/status', 'returns: joi.object({})'),
                route(
                    'GET',
                    '/found',
                    `${list}, validate: { query: joi.object({ q: joi.string().label('Text').required() }) }`
                ),
                route('DELETE', '/lost/{id}', 'returns: joi.any()'),
                route('POST', '/lost/{id}/turn/{way}', `returns: joi.any(), ${way}`),
                route('POST', '/jobs/{id}/turn/{way}', `returns: joi.any(), ${way}`),
                route('GET', '/jobs/{id}/notes', list),
                route('DELETE', '/notes/{note}', 'returns: joi.any()'),
                route('DELETE', '/found/{id}', "returns: joi.any(), ui: { role: 'hidden' }"),
                "ctx.upload({ method: 'POST', path: '/files', id: 'send', access: 'read', summary: 'Send', accepts: ['*/*'], maxBytes: 9, returns: joi.any(), handler: () => null });"
            ].join('\n')
        });
        const places = findings.filter(({ rule }) => rule === 'places');
        expect(
            places.map(
                ({ where, message, mend }) => `${where}${message.split(':')[1]} → ${mend.split(';')[0]}`
            )
        ).to.equal([
            'DELETE /lost/{id} (delete.lost.id) no list leads to what its path names → Add a list, GET /lost with `returns` an array, whose rows it works on',
            'POST /lost/{id}/turn/{way} (post.lost.id.turn.way) no list leads to what its path names → Add lists that lead to it: GET /lost with `returns` an array, and one below its rows for each further parameter'
        ]);
        expect(
            places.every(({ level, mend }) => level === 'warning' && mend.includes("role: 'hidden'"))
        ).to.equal(true);
        expect(passed).to.equal(true);
    });

    it('leaves routes to a page that the plugin brings into the menu, which is where a page stands by default', async () => {
        const pages = [{ id: 'main', title: 'Things', access: 'read', entry: 'index.js' }];
        const lost =
            "ctx.route({ method: 'DELETE', path: '/lost/{id}', access: 'read', summary: 'Remove', returns: joi.any(), handler: () => null });";
        const placesOf = async (more: object): Promise<number> => {
            const { findings } = await check({
                setup: `ctx.assets({ folder: '.' }); ${lost}`,
                package: {
                    portico: { ...sound.package.portico, contributes: { pages: [{ ...pages[0], ...more }] } }
                }
            });
            return findings.filter(({ rule }) => rule === 'places').length;
        };
        expect([await placesOf({}), await placesOf({ place: 'host' })]).to.equal([0, 1]);
    });

    it('finds tables of the README that the code does not bear out', async () => {
        const readme = [
            '| Route | Permission | What |',
            '|---|---|---|',
            '| GET `/things?limit` | write | things |',
            '| POST `/gone` | write | gone |',
            '',
            '| Setting | Default |',
            '|---|---|',
            '| `greeting` | none |',
            '',
            '| Permission | Who |',
            '|---|---|',
            '| `read` | all |',
            '| `fly` | none |',
            ''
        ].join('\n');
        expect(await found({ readme })).to.equal([
            'readme: The table has the route POST /gone, which is not in setup',
            'readme: It says write, the code asks for read',
            'readme: The setting token is not in the table',
            'readme: The table has the permission fly, which is not in the manifest (permissions)'
        ]);
        expect(
            await found({
                readme: '| Route | Permission |\n|---|---|\n| GET `/api/plugins/try/things` | read |\n'
            })
        ).to.equal([]);
    });

    it('finds sample requests that are answered with 500 and above, unless that is expected', async () => {
        const setup =
            "ctx.route({ method: 'GET', path: '/broken', access: 'read', summary: 'Breaks', returns: joi.object({}), handler: () => { throw new Error('it broke'); } });";
        const found500 = await found({ setup });
        expect(found500.filter((each) => each.startsWith('requests'))).to.have.length(1);
        expect(found500.join()).to.match(/requests: It is answered with 500: .*50000/);
        const conformance = { settings: { token: 't' }, requests: [{ path: '/broken', status: 500 }] };
        expect((await found({ setup, conformance })).join()).not.to.contain('requests');
    });

    it('finds entities that are not what the migrations make', async () => {
        const head = "import { defineEntity, p } from '@portico/sdk/db';";
        const settingsWith = (properties: string, ...sql: readonly string[]): string =>
            `joi.object({ greeting: joi.string().label('Greeting'), token: joi.secret().label('Token') }), entities: [defineEntity({ name: 'Note', tableName: 'try_notes', properties: { id: p.integer().primary(), ${properties} } })], migrations: [{ name: '1', up: ${JSON.stringify(sql)} }]`;
        const differences = async (...input: Parameters<typeof settingsWith>): Promise<readonly string[]> =>
            (await found({ head, settings: settingsWith(...input) })).filter((each) =>
                each.startsWith('database')
            );
        const text = 'create table try_notes (id integer primary key, text text not null, done_at text)';
        expect(await differences('text: p.string(), doneAt: p.string().nullable()', text)).to.equal([]);
        expect(
            await differences('text: p.string().nullable(), doneAt: p.string(), more: p.string()', text)
        ).to.equal([
            'database: The property Note.text is nullable, and the column text is not null',
            'database: The column done_at may be null, and the property Note.doneAt is not nullable',
            'database: The property Note.more has no column more'
        ]);
        expect(await differences('doneAt: p.string().nullable()', text)).to.equal([
            'database: The column text is not null and has no default, and no property of Note fills it'
        ]);
        expect(await differences('text: p.string()', 'create table try_other (id integer)')).to.equal([
            'database: No migration makes this table of the entity Note'
        ]);
    });

    it('finds what is left when the plugin is disabled', async () => {
        expect(
            (await found({ setup: `ctx.onStart(() => { setInterval(() => {}, 1000); }); ${sound.setup}` }))[0]
        ).to.match(/^cycles: When it was disabled, it left timer .*index\.js:\d+: /);
        expect(
            await found({ setup: `ctx.onStop(() => { throw new Error('stuck'); }); ${sound.setup}` })
        ).to.equal(['cycles: When it was disabled, it left onStop failed: stuck']);
        const [files] = await found(
            {
                head: "import { openSync } from 'node:fs';",
                setup: `ctx.onStart(() => { openSync('/dev/null'); }); ${sound.setup}`
            },
            { cycles: 12 }
        );
        expect(files).to.match(
            /^cycles: There are \d+ open files and sockets, and there were \d+ after 5 cycles/
        );
    });

    it('finds answers that another thread would not give', async () => {
        const differs = await found({
            head: "import { isMainThread } from 'node:worker_threads';",
            setup: "ctx.route({ method: 'GET', path: '/where', access: 'read', summary: 'Where', returns: joi.array(), handler: () => [isMainThread] });"
        });
        expect(differs).to.have.length(1);
        expect(differs[0]).to.match(
            /^threads: In a thread of its own it answers 200 .*"data":\[false\]}, else 200 .*"data":\[true\]}$/
        );
        expect(
            await found({
                setup: "ctx.route({ method: 'GET', path: '/now', access: 'read', summary: 'Now', returns: joi.array(), handler: () => [performance.now()] });"
            })
        ).to.equal([]);
    });
});
