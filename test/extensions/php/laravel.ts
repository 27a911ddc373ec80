/** Sites of Laravel: Composer and artisan themselves, with the framework and the interpreter of Debian. */
import { cpSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { BackupItem, Outcome, RestoredItem } from '@portico/sdk';

import { itUnless } from '../../support/skip.ts';
import { type Instance, noMariadb, startMariadb } from '../database/instances.ts';
import { makeRepository, noLaravel } from './laravel-project.ts';
import { hasAccount, PhpRig, withoutPhp } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const lacks = withoutPhp ?? noMariadb ?? noLaravel;
const real = itUnless(lacks, it);
const limitMs = 180_000;
const copied = { recursive: true, verbatimSymlinks: true } as const;

let rig: PhpRig;
let instance: Instance;
let serverId: number;
let siteId: number;
let folder: string;

const make = async (word: string, more: object = {}) =>
    rig.finish(
        await rig.post('/sites', {
            name: rig.name(word),
            domain: `${word}.test`,
            release: '8.2',
            template: 'laravel',
            ...more
        })
    );

/** Runs a tool to its end; `log` is what it printed. */
async function run(tool: string, command: string, ...args: readonly string[]) {
    const accepted = await rig.post(`/sites/${siteId}/tools/${tool}`, { command, arguments: args });
    const task = await rig.finish(accepted);
    const { text } = await rig.panel.client.get(`/api/tasks/${accepted.data.id}/events`);
    const lines = [...text.matchAll(/^data: (\{"line":.*\})$/gm)].map(
        ([, data = '']) => JSON.parse(data).line as string
    );
    return { state: task.state, code: task.error?.code, log: lines.join('\n') };
}

/** What a plugin answers to a hook of the core. */
async function ask<T>(plugin: string, hook: string, payload: unknown): Promise<readonly T[]> {
    const [outcome] = (await Array.fromAsync(
        rig.panel.panel.hooks.host.collect(hook, async () => payload, { only: [plugin] })
    )) as Outcome<readonly T[]>[];
    expect(outcome?.ok, JSON.stringify(outcome)).to.be.true();
    return outcome?.ok === true ? outcome.result : [];
}

describe('A site of Laravel', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (lacks !== undefined) {
            return;
        }
        instance = await startMariadb();
        try {
            rig = await PhpRig.start(
                async (started) => {
                    serverId = await started.registerServer(instance);
                    await started.configure({
                        composerRepository: makeRepository(join(started.top, 'repository'))
                    });
                },
                ['database']
            );
        } catch (error) {
            await instance.close();
            throw error;
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
        await instance?.close();
    });

    real(
        'is made by Composer, answers by its front controller, and shows no visitor its insides',
        async () => {
            const task = await make('app', { database: { serverId } });
            expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
            ({ siteId } = task.result as { siteId: number });
            const { data: site } = await rig.get(`/sites/${siteId}`);
            folder = site.folder;
            expect(site).to.include({ template: 'laravel', root: 'public', state: 'running' });
            expect((await rig.page('app.test')).text).to.equal(
                'Laravel 8.83.26 in production at http://app.test'
            );
            expect((await rig.page('app.test', '/robots.txt')).text).to.equal('User-agent: *\n');
            const broken = await rig.page('app.test', '/broken');
            expect([broken.status, broken.text.includes('a secret of the code')]).to.equal([500, false]);
            expect(readFileSync(join(folder, 'storage/logs/laravel.log'), 'utf8')).to.contain(
                'a secret of the code'
            );
            for (const path of [
                '/.env',
                '/../.env',
                '/artisan',
                '/composer.json',
                '/storage/logs/laravel.log'
            ]) {
                expect([path, (await rig.page('app.test', path)).status]).to.equal([path, 404]);
            }
        }
    );

    real(
        'has its key in a file of the account alone, outside of what is served, and no wrong owner',
        async () => {
            const { mode, uid } = statSync(join(folder, '.env'));
            expect([(mode & 0o777).toString(8), uid]).to.equal(['600', statSync(folder).uid]);
            const text = readFileSync(join(folder, '.env'), 'utf8');
            expect(text).to.match(/^APP_KEY=base64:[A-Za-z0-9+/]{43}=$/m);
            expect(text).to.match(/^APP_DEBUG=false$/m);
            expect(text).to.not.contain('DB_PASSWORD');
            expect((await rig.get(`/sites/${siteId}/files-owner`)).data).to.equal([]);
            expect(existsSync(join(folder, 'private/tmp/laravel'))).to.be.false();
            expect((await rig.get(`/sites/${siteId}/sandbox`)).data.score).to.equal(95);
        }
    );

    real('is migrated by artisan as its account, without the environment of the panel', async () => {
        expect((await rig.page('app.test', '/word/ada')).status).to.equal(500);
        const migrated = await run('artisan', 'migrate');
        expect(migrated.state, migrated.log).to.equal('succeeded');
        expect(migrated.log).to.contain('create_words_table');
        expect((await rig.page('app.test', '/word/ada')).text).to.equal('ada from the database');
        expect((await run('artisan', 'migrate:status')).log).to.contain('create_words_table');

        const who = await run('artisan', 'queue:who', 'x; id');
        const { uid } = statSync(folder);
        expect(who.log).to.contain(`who ["x; id",${uid},`);
        expect(who.log.replaceAll('\\', '')).to.contain(`"${folder}/private",false,"php8.2"]`);
        const cached = await run('artisan', 'config:cache');
        expect(cached.state, cached.log).to.equal('succeeded');
        expect((await rig.page('app.test', '/word/bo')).text).to.equal('bo from the database');
        expect((await run('artisan', 'config:clear')).state).to.equal('succeeded');
    });

    real('takes packages by Composer from the same repository', async () => {
        expect((await rig.page('app.test', '/extra')).text).to.equal('none');
        const required = await run('composer', 'require', 'acme/words');
        expect(required.state, required.log).to.equal('succeeded');
        expect(required.log).to.contain('acme/words');
        expect((await run('composer', 'validate')).state).to.equal('succeeded');
        await rig.post(`/sites/${siteId}/reload`);
        expect((await rig.page('app.test', '/extra')).text).to.equal('hello of acme');
        expect((await rig.get(`/sites/${siteId}/files-owner`)).data).to.equal([]);
        expect((await run('composer', 'remove', 'acme/words')).state).to.equal('succeeded');
    });

    real('comes back from a backup with its database, its key and the way to its uploads', async () => {
        expect((await run('artisan', 'storage:link')).state).to.equal('succeeded');
        rig.write('app', 'storage/app/public/a.txt', 'an upload');
        expect((await rig.page('app.test', '/storage/a.txt')).text).to.equal('an upload');
        const key = readFileSync(join(folder, '.env'), 'utf8');
        const { databaseName } = (await rig.get(`/sites/${siteId}`)).data;
        const lent = join(rig.top, 'lent');
        mkdirSync(lent);
        const given = new Map<string, readonly BackupItem[]>();
        for (const plugin of ['database', 'php']) {
            const at = join(lent, plugin);
            mkdirSync(at);
            const items = await ask<BackupItem>(plugin, 'backup.collect', { folder: at });
            items.forEach(({ path }, index) => cpSync(path, join(at, `item-${index}`), copied));
            given.set(
                plugin,
                items.map((item, index) => ({ ...item, path: join(at, `item-${index}`) }))
            );
        }

        await rig.delete(`/sites/${siteId}?deleteFiles=true`);
        await instance.sql(`drop database \`${databaseName}\``);
        expect(existsSync(folder)).to.be.false();
        for (const [plugin, items] of given) {
            const payload = { folder: join(lent, plugin), version: '1.0.0', items };
            const restored = await ask<RestoredItem>(plugin, 'backup.restore', payload);
            expect(restored.map(({ ok }) => ok)).to.equal(items.map(() => true));
        }
        const [site] = (await rig.get('/sites')).data;
        siteId = site.id;
        expect((await rig.page('app.test', '/word/ada')).text).to.equal('ada from the database');
        expect((await rig.page('app.test', '/storage/a.txt')).text).to.equal('an upload');
        expect(readFileSync(join(folder, '.env'), 'utf8')).to.equal(key);
        expect((await rig.get(`/sites/${siteId}/files-owner`)).data).to.equal([]);
        expect((await run('artisan', 'migrate:status')).log).to.contain('create_words_table');
    });

    real('tells of a tool that fails, and refuses other commands and options', async () => {
        const failed = await run('artisan', 'queue:fails');
        expect([failed.state, failed.code, failed.log.includes('it begins')]).to.equal([
            'failed',
            42253,
            true
        ]);
        const missing = await run('composer', 'require', 'acme/nothing');
        expect([missing.state, missing.code]).to.equal(['failed', 42253]);
        for (const [tool, body] of [
            ['composer', { command: 'config' }],
            ['composer', { command: 'require', arguments: ['--working-dir=/'] }],
            ['artisan', { command: 'tinker' }],
            ['artisan', { command: 'migrate', arguments: ['a\nb'] }]
        ] as const) {
            const answer = await rig.post(`/sites/${siteId}/tools/${tool}`, body);
            expect([tool, body, answer.code]).to.equal([tool, body, 40001]);
        }
        expect((await rig.post(`/sites/${siteId}/tools/bash`, { command: 'migrate' })).code).to.equal(40400);
    });

    real(
        'is taken back whole where Composer has no Laravel, and is not begun with another served folder',
        async () => {
            const other = await rig.post('/sites', {
                name: rig.name('other'),
                domain: 'other.test',
                template: 'laravel',
                root: 'web'
            });
            expect(other.code).to.equal(40001);
            await rig.configure({ composerRepository: join(rig.top, 'www') });
            const task = await make('none');
            expect([task.state, task.error.code]).to.equal(['failed', 42253]);
            expect([
                hasAccount(`php-${rig.name('none')}`),
                existsSync(join(rig.top, 'www', rig.name('none')))
            ]).to.equal([false, false]);
            expect((await rig.get('/sites')).data.length).to.equal(1);
        }
    );
});
