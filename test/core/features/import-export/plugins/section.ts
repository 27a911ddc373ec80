import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { seal } from '../../../../../core/src/features/import-export/document/vault.ts';
import type { Answer } from '../../../../support/panel/client.ts';
import { startPanel, type TestPanel } from '../../../../support/panel/panel.ts';
import {
    createPluginFolder,
    helloRoute,
    type PluginFolder,
    pluginModule
} from '../../../../support/plugins/folder.ts';
import {
    journalCapabilities,
    journalCode,
    type JournalFault,
    setJournalFault
} from '../../../../support/plugins/journal.ts';
import { type Ended, ended } from '../../../../support/plugins/panel.ts';
import { pluginPackage } from '../../../../support/registry/packages.ts';
import { type NpmRegistry, startNpmRegistry } from '../../../../support/servers/npm-registry.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after, afterEach } = lab;

const passphrase = 'a lantern in every window';
const base = '/api/import-export';
const secrets: readonly [string, string, string, string, string] = [
    't0ken-of-the-journal',
    'passw0rd-of-the-mail',
    'key-0f-ann',
    'key-0f-bob',
    'a note that nobody else may read'
];
const settings = {
    greeting: 'Ahoy',
    token: secrets[0],
    mail: { host: 'mail.test', password: secrets[1] },
    accounts: [
        { name: 'ann', key: secrets[2] },
        { name: 'bob', key: secrets[3] }
    ]
};
const bare = { greeting: 'Ahoy', mail: { host: 'mail.test' }, accounts: [{ name: 'ann' }, { name: 'bob' }] };
const journal = {
    name: 'journal',
    package: '@acme/portico-plugin-journal',
    version: '1.0.0',
    enabled: true,
    settings: bare
};

interface Place {
    readonly panel: TestPanel;
    readonly folder: PluginFolder;
    /** Of the journal. */
    readonly path: string;
}

let source: Place;
let target: Place;
let npm: NpmRegistry;

async function place(
    hasJournal: boolean,
    environment: Readonly<Record<string, string>> = {}
): Promise<Place> {
    const folder = createPluginFolder();
    const path = hasJournal
        ? folder.write('journal', journalCode, { manifest: { capabilities: journalCapabilities } })
        : join(folder.path, 'journal');
    const panel = await startPanel({
        environment: { PORTICO_PLUGIN_DIRS: folder.path, PORTICO_NPM_REGISTRY: npm.url, ...environment },
        hookTiming: { exportSeconds: 1, restoreSeconds: 1 }
    });
    await panel.panel.settled();
    return { panel, folder, path };
}

async function end(there: Place | undefined): Promise<void> {
    await there?.panel.close();
    there?.folder.remove();
}

const on = <T>(there: Place, work: (client: TestPanel['client']) => Promise<T>): Promise<T> =>
    work(there.panel.client);
const data = async (answer: Promise<Answer>): Promise<Answer['data']> => {
    const { status, text, data: got } = await answer;
    if (status >= 300) {
        throw new Error(text);
    }
    return got;
};
const notesOf = (there: Place): Promise<string[]> =>
    on(there, (client) => data(client.get('/api/plugins/journal/notes')));
const note = (there: Place, text: string): Promise<unknown> =>
    on(there, (client) => data(client.post('/api/plugins/journal/notes', { text })));
const settingsOf = (there: Place): Promise<unknown> =>
    on(there, (client) => data(client.get('/api/plugins/journal/settings')));
const exported = (there: Place, body: object = { passphrase }): Promise<Answer['data']> =>
    on(there, (client) => data(client.post(`${base}/export`, { sections: ['plugins'], ...body })));
const imported = async (there: Place, body: object): Promise<Ended> =>
    on(there, async (client) =>
        ended(client, await client.post(`${base}/import`, { mode: 'merge', dryRun: false, ...body }))
    );
const planned = (there: Place, body: object): Promise<Answer['data']> =>
    on(there, (client) => data(client.post(`${base}/import`, { mode: 'merge', dryRun: true, ...body })));
/** What is the same in a plan and in what came of it. */
const sections = (result: Answer['data']): unknown => result.sections;

before(async () => {
    npm = await startNpmRegistry();
    [source, target] = await Promise.all([place(true), place(true)]);
    await on(source, (client) => data(client.put('/api/plugins/journal', { settings })));
    await note(source, secrets[4]);
    await note(source, 'a second one');
});

after(async () => {
    await end(source);
    await end(target);
    await npm?.stop();
});

afterEach(() => {
    for (const each of [source, target]) {
        setJournalFault(each.path, {});
    }
});

describe('the plugins of an export', () => {
    it('have their settings in it, and their secrets and their own data only sealed', async () => {
        const plain = await on(source, (client) => client.get(`${base}/export`));
        expect(plain.data.sections.plugins).to.equal([journal]);
        expect(plain.data.notes).to.equal([
            'journal: its own data is left out, since there is no passphrase to seal it under'
        ]);
        const sealed = await exported(source);
        expect([sealed.sections.plugins, sealed.notes]).to.equal([[journal], undefined]);
        for (const text of [plain.text, JSON.stringify(sealed)]) {
            secrets.forEach((secret) => expect(text).to.not.contain(secret));
        }
        expect((await exported(source, { passphrase, sections: ['roles'] })).notes).to.be.undefined();
    });

    it(
        'are named where they fail to give their data, which is refused only where all of it is wanted',
        { timeout: 30_000 },
        async () => {
            const faults: readonly (readonly [NonNullable<JournalFault['collect']>, string])[] = [
                ['throws', 'it failed; the log says why'],
                ['hangs', 'The tap took longer than 1 s'],
                ['big', 'it is larger than 8 MiB'],
                ['date', 'it is not plain JSON'],
                ['odd', 'it gave a leftOut that is no list of texts'],
                ['twice', 'it gave no list of at most 1000 items, each with a name of its own and data']
            ];
            for (const [collect, why] of faults) {
                setJournalFault(source.path, { collect });
                const document = await exported(source);
                expect([document.sections.plugins, document.notes]).to.equal([
                    [journal],
                    [`journal: its own data is left out: ${why}`]
                ]);
                const refused = await on(source, (client) =>
                    client.post(`${base}/export`, { sections: ['plugins'], passphrase, complete: true })
                );
                expect([refused.code, refused.data.plugin, refused.data.cause, refused.message]).to.equal([
                    50303,
                    'journal',
                    'EXPORT_FAILED',
                    `The export would not be complete: journal: its own data is left out: ${why}`
                ]);
            }
            expect((await notesOf(source)).length).to.equal(2);
            setJournalFault(source.path, { collect: 'nothing' });
            expect((await exported(source, { passphrase, complete: true })).notes).to.be.undefined();
            setJournalFault(source.path, {});
            expect((await exported(source, { passphrase, complete: true })).notes).to.be.undefined();
            const bareOne = await on(source, (client) => client.post(`${base}/export`, { complete: true }));
            expect([bareOne.code, bareOne.data.errors]).to.equal([
                40001,
                [
                    {
                        path: 'passphrase',
                        message:
                            'passphrase is required: journal has data of its own, which is only exported sealed'
                    }
                ]
            ]);
        }
    );

    it('name what is not part of their data, also where the plugin takes no part in exports', async () => {
        setJournalFault(source.path, { collect: 'partly' });
        const document = await exported(source, { passphrase, complete: true });
        expect(document.notes).to.equal(['journal: left out: the drafts', 'journal: left out: the pictures']);
        const { result } = await imported(target, { document, passphrase });
        expect([result.plugins[0].data, result.notes]).to.equal([
            'restored',
            document.notes.map((text: string) => `Of the document: ${text}`)
        ]);
        const folder = createPluginFolder();
        folder.write(
            'silent',
            pluginModule(
                `${helloRoute} ctx.route({ method: 'POST', path: '/notes', access: 'write', handler: async () => {
                    await ctx.db.write((em) => em.execute('insert into note (text) values (?)', ['x']));
                    return null;
                } });`,
                { more: `migrations: [{ name: '0001', up: ['create table note (text text not null)'] }],` }
            )
        );
        const panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        try {
            await panel.panel.settled();
            const notes = async (body: object) =>
                (await data(panel.client.post(`${base}/export`, body))).notes;
            expect(await notes({ passphrase })).to.be.undefined();
            await data(panel.client.post('/api/plugins/silent/notes', {}));
            const why = 'silent: its own data is left out, since it takes no part in exports';
            expect([await notes({ passphrase, complete: true }), await notes({})]).to.equal([[why], [why]]);
        } finally {
            await panel.close();
            folder.remove();
        }
    });

    it('that do not run are named as well', async () => {
        await on(source, (client) => data(client.put('/api/plugins/journal', { enabled: false })));
        const document = await exported(source);
        expect([document.sections.plugins, document.notes]).to.equal([
            [{ ...journal, enabled: false }],
            ['journal: its own data is left out, since it does not run']
        ]);
        await on(source, (client) => data(client.put('/api/plugins/journal', { enabled: true })));
    });
});

describe('the plugins of an import', { timeout: 120_000 }, () => {
    it('take settings, secrets and data where they run, as the dry run said', async () => {
        const document = await exported(source);
        await note(target, 'one of here');
        const before = await on(target, (client) => data(client.get('/api/plugins/journal')));
        const plan = await planned(target, { document, passphrase, mode: 'replace' });
        expect(plan.plugins).to.equal([
            { name: 'journal', install: null, data: 'planned', state: null, notes: [] }
        ]);
        expect([
            await notesOf(target),
            (await on(target, (client) => client.get('/api/plugins/journal'))).data.settings
        ]).to.equal([['one of here'], before.settings]);
        const { state, result } = await imported(target, { document, passphrase, mode: 'replace' });
        expect(state).to.equal('succeeded');
        expect(sections(result)).to.equal(sections(plan));
        expect(result.plugins).to.equal([
            { name: 'journal', install: null, data: 'restored', state: 'running', notes: [] }
        ]);
        expect(await notesOf(target)).to.equal([secrets[4], 'a second one']);
        expect(await settingsOf(target)).to.equal(settings);
        const after = await on(target, (client) => data(client.get('/api/plugins/journal')));
        expect(after.capabilities).to.equal(before.capabilities);
        expect(JSON.stringify(after)).to.not.contain(secrets[0]).and.not.contain(secrets[3]);
        const entries = await on(target, (client) =>
            data(client.get('/api/audit?resource=plugins&action=import'))
        );
        expect([
            entries[0].resourceId,
            entries[0].outcome,
            entries[0].actor.username,
            entries[0].changes.after
        ]).to.equal(['journal', 'success', 'admin', { data: 'restored', version: '1.0.0', mode: 'replace' }]);
        expect((await exported(target)).sections).to.equal(document.sections);
        expect(
            (await planned(target, { document, passphrase, mode: 'replace' })).sections.plugins.counts
        ).to.equal({ create: 0, update: 0, delete: 0, unchanged: 1 });
    });

    it('keep their secrets and data where the document has none, but for a list that is another one', async () => {
        const document = await exported(source, {});
        const { result } = await imported(target, { document });
        expect([result.sections.plugins.unchanged, result.plugins, result.notes]).to.equal([
            ['journal'],
            [],
            [
                'Of the document: journal: its own data is left out, since there is no passphrase to seal it under'
            ]
        ]);
        const renamed = {
            ...document,
            sections: {
                plugins: [
                    { ...journal, settings: { ...bare, greeting: 'Moin', mail: { host: 'other.test' } } }
                ]
            }
        };
        expect((await imported(target, { document: renamed })).result.sections.plugins.update).to.equal([
            'journal'
        ]);
        expect(await settingsOf(target)).to.equal({
            ...settings,
            greeting: 'Moin',
            mail: { host: 'other.test', password: secrets[1] }
        });
        const swapped = {
            ...document,
            sections: {
                plugins: [{ ...journal, settings: { ...bare, accounts: [{ name: 'eve' }, { name: 'bob' }] } }]
            }
        };
        const kept = (await imported(target, { document: swapped })).result.sections.plugins;
        expect([kept.unchanged, kept.notes.map(({ message }: { message: string }) => message)]).to.equal([
            ['journal'],
            [
                'its settings are left as they are: accounts[0].key is required',
                'its settings are left as they are: accounts[1].key is required'
            ]
        ]);
        expect(await settingsOf(target)).to.equal({
            ...settings,
            greeting: 'Moin',
            mail: { host: 'other.test', password: secrets[1] }
        });
        expect(await notesOf(target)).to.equal([secrets[4], 'a second one']);
    });

    it('are told of where they do not take their data, and keep what they had', async () => {
        const document = await exported(source);
        const faults: readonly (readonly [NonNullable<JournalFault['restore']>, string])[] = [
            ['throws', 'it failed; the log says why'],
            ['hangs', 'The tap took longer than 1 s'],
            ['refuses', 'notes: written by 1.0.0, which is too old']
        ];
        for (const [restore, why] of faults) {
            setJournalFault(target.path, { restore });
            const { state, result } = await imported(target, { document, passphrase, mode: 'replace' });
            expect([state, result.plugins]).to.equal([
                'succeeded',
                [{ name: 'journal', install: null, data: 'failed', state: 'running', notes: [why] }]
            ]);
            const [entry] = await on(target, (client) =>
                data(client.get('/api/audit?resource=plugins&action=import'))
            );
            expect([entry.outcome, entry.changes.after.notes]).to.equal(['failure', [why]]);
        }
        setJournalFault(target.path, {});
        await note(target, 'written meanwhile');
        await target.panel.restart();
        await target.panel.panel.settled();
        expect(await notesOf(target)).to.equal([secrets[4], 'a second one', 'written meanwhile']);
        await imported(target, { document, passphrase, mode: 'merge' });
        expect((await notesOf(target)).length).to.equal(3);
    });

    it('get their data when they run the next time', async () => {
        await note(source, 'a third one');
        const document = await exported(source);
        await on(target, (client) => data(client.put('/api/plugins/journal', { enabled: false })));
        await on(target, (client) => data(client.put('/api/plugins/journal', { grants: {} })));
        const { result } = await imported(target, { document, passphrase, mode: 'replace' });
        expect(result.plugins).to.equal([
            {
                name: 'journal',
                install: null,
                data: 'waiting',
                state: 'failed',
                notes: [result.plugins[0].notes[0], 'its data is kept until it runs']
            }
        ]);
        expect(result.plugins[0].notes[0]).to.contain('export.collect');
        expect((await exported(target)).sections).to.equal(document.sections);
        await target.panel.restart();
        await target.panel.panel.settled();
        await on(target, (client) =>
            data(client.put('/api/plugins/journal', { grants: journalCapabilities, enabled: true }))
        );
        await until(
            async () => ((await notesOf(target)).includes('a third one') ? true : null),
            'the data is back'
        );
        expect([await notesOf(target), await settingsOf(target)]).to.equal([await notesOf(source), settings]);
        await note(target, 'written later');
        await target.panel.restart();
        await target.panel.panel.settled();
        expect((await notesOf(target)).length).to.equal(4);
    });

    it("take nothing that is damaged, sealed elsewhere, or another package's", async () => {
        const here = (plugin: object): object => ({
            format: 'portico-export',
            formatVersion: 1,
            createdAt: '2026-01-01T00:00:00.000Z',
            sections: { plugins: [{ ...journal, ...plugin }] }
        });
        const untouched = await settingsOf(target);
        const sealed = await imported(target, {
            document: here({ settings: { ...bare, token: { '~sealed': 'v1.abc' } } })
        });
        expect(sealed.result.sections.plugins).to.include({
            unchanged: ['journal'],
            notes: [
                {
                    name: 'journal',
                    message:
                        'its settings are left as they are: they have values that only this panel could have sealed'
                }
            ]
        });
        const other = await imported(target, { document: here({ package: '@evil/journal' }) });
        expect(other.result.sections.plugins).to.include({
            create: ['journal'],
            notes: [
                {
                    name: 'journal',
                    message:
                        'not installed: @evil/journal 1.0.0, since @acme/portico-plugin-journal has its name; its settings are kept until it is'
                }
            ]
        });
        expect(await settingsOf(target)).to.equal(untouched);
        expect(
            (await exported(target)).sections.plugins.map((each: { package: string }) => each.package)
        ).to.equal([journal.package]);
        await imported(target, { document: { ...here({}), sections: { plugins: [] } }, mode: 'replace' });
        const forged = async (entries: Readonly<Record<string, unknown>>): Promise<Answer> => {
            const plain = here({});
            const secrets = await seal(
                new Map([
                    [
                        'plugins',
                        new Map(Object.entries(entries).map(([path, value]) => [path, JSON.stringify(value)]))
                    ]
                ]),
                passphrase,
                plain
            );
            return on(target, (client) =>
                client.post(`${base}/import`, {
                    document: { ...plain, secrets },
                    passphrase,
                    mode: 'merge',
                    dryRun: false
                })
            );
        };
        const item = { name: 'notes', data: [] };
        const faults: readonly (readonly [Readonly<Record<string, unknown>>, string])[] = [
            [{ journal: ['x'] }, 'its secret settings are damaged'],
            [{ journal: { '/token': 7 } }, 'its secret settings are damaged'],
            [
                { 'journal/data': { package: '@evil/journal', version: '1.0.0', items: [item] } },
                'its own data is damaged'
            ],
            [
                { 'journal/data': { package: journal.package, version: '1.0.0', items: [item, item] } },
                'its own data is damaged'
            ],
            [{ 'journal/data': 'none' }, 'its own data is damaged']
        ];
        for (const [entries, message] of faults) {
            const refused = await forged(entries);
            expect([refused.code, refused.data.errors]).to.equal([
                40001,
                [{ path: 'document.sections.plugins.0', message }]
            ]);
        }
        const misplaced = await forged({ journal: { '/mail/host/x': 'S', '/token': 'an Unfit Secret' } });
        const { result } = await ended(target.panel.client, misplaced);
        expect(result.sections.plugins.notes).to.equal([
            {
                name: 'journal',
                message: 'its settings are left as they are: the secret /mail/host/x has no place in them'
            }
        ]);
        const unfit = await ended(
            target.panel.client,
            await forged({ journal: { '/token': 'an Unfit Secret' } })
        );
        expect(
            unfit.result.sections.plugins.notes.map(({ message }: { message: string }) => message)
        ).to.include('its settings are left as they are: token is not of the documented form');
        expect(await settingsOf(target)).to.equal(untouched);
    });
});

describe('a panel that ends while a plugin takes its data back', { timeout: 60_000 }, () => {
    it('gives it to the plugin after the next start', async () => {
        const document = await exported(source);
        const folder = createPluginFolder();
        const path = folder.write('journal', journalCode, {
            manifest: { capabilities: journalCapabilities }
        });
        const panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        const there = { panel, folder, path };
        try {
            await panel.panel.settled();
            setJournalFault(path, { restore: 'hangs' });
            const accepted = await panel.client.post(`${base}/import`, {
                document,
                passphrase,
                mode: 'replace',
                dryRun: false
            });
            await until(
                async () => (JSON.stringify(await settingsOf(there)).includes(secrets[0]) ? true : null),
                'the settings are taken'
            );
            setJournalFault(path, {});
            await panel.restart();
            await panel.panel.settled();
            await until(async () => ((await notesOf(there)).length > 0 ? true : null), 'the data is back');
            expect(await notesOf(there)).to.equal(await notesOf(source));
            const { data: task } = await panel.client.get(`/api/tasks/${accepted.data.id}`);
            expect([task.state, task.result.plugins[0].data, task.result.plugins[0].notes]).to.equal([
                'succeeded',
                'waiting',
                ['its data is kept until it runs']
            ]);
        } finally {
            await end(there);
        }
    });
});

describe('the plugins of an import that are not installed', { timeout: 180_000 }, () => {
    before(async () => {
        await npm.publish(
            pluginPackage('journal', '1.0.0', {
                portico: { name: 'journal', sdk: '^1.0.0', capabilities: journalCapabilities }
            }),
            { 'index.js': journalCode }
        );
        await npm.publish(pluginPackage('hello', '1.0.0'), { 'index.js': pluginModule(helloRoute) });
    });

    it('wait with their settings and their data, and have both when they are installed', async () => {
        const document = await exported(source);
        const there = await place(false);
        try {
            const { result } = await imported(there, { document, passphrase, mode: 'replace' });
            expect(result.sections.plugins).to.include({
                create: ['journal'],
                notes: [
                    {
                        name: 'journal',
                        message:
                            'not installed: @acme/portico-plugin-journal 1.0.0; its settings are kept until it is'
                    }
                ]
            });
            expect(result.plugins).to.equal([
                {
                    name: 'journal',
                    install: null,
                    data: 'waiting',
                    state: null,
                    notes: ['its data is kept until it runs']
                }
            ]);
            const again = await exported(there);
            expect([again.sections, again.notes]).to.equal([document.sections, undefined]);
            expect((await exported(there, {})).notes).to.equal([
                'journal: its own data is left out, since there is no passphrase to seal it under'
            ]);
            await there.panel.restart();
            await there.panel.panel.settled();
            const { client } = there.panel;
            const installed = await ended(
                client,
                await client.post('/api/plugins', {
                    package: journal.package,
                    version: '1.0.0',
                    grants: journalCapabilities
                })
            );
            expect([installed.state, installed.result.state]).to.equal(['succeeded', 'running']);
            await until(async () => ((await notesOf(there)).length > 0 ? true : null), 'the data is back');
            expect(await notesOf(there)).to.equal(await notesOf(source));
            expect(await settingsOf(there)).to.equal(settings);
            expect(
                (await planned(there, { document, passphrase, mode: 'replace' })).sections.plugins.counts
            ).to.equal({ create: 0, update: 0, delete: 0, unchanged: 1 });
        } finally {
            await end(there);
        }
    });

    it('have their settings when their package comes by itself', async () => {
        const there = await place(false);
        try {
            await imported(there, { document: await exported(source), passphrase });
            there.folder.write('journal', journalCode, { manifest: { capabilities: journalCapabilities } });
            await there.panel.restart();
            await there.panel.panel.settled();
            await until(async () => ((await notesOf(there)).length > 0 ? true : null), 'the data is back');
            expect([await notesOf(there), await settingsOf(there)]).to.equal([
                await notesOf(source),
                settings
            ]);
        } finally {
            await end(there);
        }
    });

    it('are installed without those settings that their code does not take', async () => {
        const there = await place(false);
        try {
            const { client } = there.panel;
            const document = {
                format: 'portico-export',
                formatVersion: 1,
                createdAt: '2026-01-01T00:00:00.000Z',
                sections: {
                    plugins: [{ ...journal, settings: { greeting: 'much longer than twenty letters' } }]
                }
            };
            await imported(there, { document });
            const installed = await ended(
                client,
                await client.post('/api/plugins', { package: journal.package, grants: journalCapabilities })
            );
            expect([installed.state, installed.result.state, installed.result.settingsLeftOut]).to.equal([
                'succeeded',
                'running',
                'greeting length must be less than or equal to 20 characters long'
            ]);
            expect(await settingsOf(there)).to.equal({ greeting: 'Hello', accounts: [] });
        } finally {
            await end(there);
        }
    });

    it('are installed on demand without any grant, each for itself', async () => {
        const moved = await exported(source);
        const there = await place(false);
        try {
            const { client } = there.panel;
            // What is sealed cannot be edited, so the others come by a document of their own.
            const others = {
                format: 'portico-export',
                formatVersion: 1,
                createdAt: '2026-01-01T00:00:00.000Z',
                sections: {
                    plugins: [
                        {
                            name: 'hello',
                            package: '@acme/portico-plugin-hello',
                            version: '1.0.0',
                            enabled: true,
                            settings: {}
                        },
                        {
                            name: 'nowhere',
                            package: '@acme/portico-plugin-nowhere',
                            version: '9.9.9',
                            enabled: true,
                            settings: {}
                        }
                    ]
                }
            };
            const plan = await planned(there, { document: others, installPlugins: true });
            expect(
                plan.plugins.map(({ name, install }: { name: string; install: string }) => [name, install])
            ).to.equal([
                ['hello', 'planned'],
                ['nowhere', 'planned']
            ]);
            expect((await client.get('/api/plugins/hello')).code).to.equal(40410);
            const { state, result } = await imported(there, { document: others, installPlugins: true });
            expect([state, sections(result)]).to.equal(['succeeded', sections(plan)]);
            expect(result.plugins[0]).to.equal({
                name: 'hello',
                install: 'installed',
                data: null,
                state: 'running',
                notes: []
            });
            expect([result.plugins[1].install, result.plugins[1].state, result.plugins[1].notes[0]]).to.equal(
                ['failed', null, result.plugins[1].notes[0]]
            );
            expect(result.plugins[1].notes[0]).to.match(/^it was not installed: .*portico-plugin-nowhere/);
            expect((await data(client.get('/api/plugins/hello/hello'))).text).to.equal('Hello');

            const second = await imported(there, { document: moved, passphrase, installPlugins: true });
            expect(second.result.plugins).to.equal([
                {
                    name: 'journal',
                    install: 'installed',
                    data: 'waiting',
                    state: 'disabled',
                    notes: ['its data is kept until it runs']
                }
            ]);
            const view = await data(client.get('/api/plugins/journal'));
            expect([view.state, view.enabled, view.capabilities.granted, view.capabilities.missing]).to.equal(
                ['disabled', false, {}, journalCapabilities]
            );
            expect(JSON.stringify(view)).to.not.contain(secrets[0]);
            const third = await imported(there, { document: moved, passphrase, installPlugins: true });
            expect([third.result.sections.plugins.unchanged, third.result.sections.plugins.notes]).to.equal([
                ['journal'],
                [{ name: 'journal', message: 'it stays disabled: it asks for more than it was granted here' }]
            ]);
            await data(client.put('/api/plugins/journal', { grants: journalCapabilities, enabled: true }));
            await until(async () => ((await notesOf(there)).length > 0 ? true : null), 'the data is back');
            expect([await notesOf(there), await settingsOf(there)]).to.equal([
                await notesOf(source),
                settings
            ]);
        } finally {
            await end(there);
        }
    });
});
