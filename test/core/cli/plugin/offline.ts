import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    watch,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Sqlite from 'better-sqlite3';

import { openStorage } from '../../../../core/src/composition/storage.ts';
import { KeptPlugins } from '../../../../core/src/features/import-export/plugins/kept.ts';
import { systemClock } from '../../../../core/src/platform/clock.ts';
import { createKeyring } from '../../../../core/src/platform/keys/keyring.ts';
import {
    auditOf,
    command,
    contentOf,
    environmentOf,
    panelFolder,
    type Ran,
    removeFolder,
    shim,
    startPanel
} from '../../../support/panel/console.ts';
import { createPanelProcess, type PanelProcess } from '../../../support/panel/process.ts';
import {
    createPluginFolder,
    helloRoute,
    type PluginFolder,
    pluginModule
} from '../../../support/plugins/folder.ts';
import { publishVersion, versionedPackage } from '../../../support/plugins/versioned.ts';
import { packageArchive } from '../../../support/registry/archive.ts';
import { pluginPackage } from '../../../support/registry/packages.ts';
import { type NpmRegistry, startNpmRegistry } from '../../../support/servers/npm-registry.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { after, afterEach, before, beforeEach, describe, it } = lab;

const limitMs = 240_000;
let dataDir: string;
let folder: PluginFolder;
let npm: NpmRegistry;

const run = (...args: string[]): Promise<Ran> =>
    command(['plugin', ...args, '--data-dir', dataDir], {
        env: { PORTICO_PLUGIN_DIRS: folder.path, PORTICO_NPM_REGISTRY: npm.url }
    });

function query<T>(sql: string): T[] {
    const db = new Sqlite(join(dataDir, 'portico.db'), { readonly: true });
    try {
        return db.prepare(sql).all() as T[];
    } finally {
        db.close();
    }
}

function change(sql: string): void {
    const db = new Sqlite(join(dataDir, 'portico.db'));
    db.exec(sql);
    db.close();
}

/** All that a command could change. */
const stateOf = (): unknown => ({
    records: query('select * from plugins order by name, package'),
    data: query('select * from plugin_data order by name, n'),
    audit: auditOf(dataDir),
    lock: existsSync(join(dataDir, 'plugins.lock.json'))
        ? (JSON.parse(readFileSync(join(dataDir, 'plugins.lock.json'), 'utf8')) as { plugins: unknown })
              .plugins
        : {},
    folders: foldersOf()
});
const foldersOf = (): string[] =>
    (existsSync(join(dataDir, 'plugins'))
        ? readdirSync(join(dataDir, 'plugins')).filter((name) => !['node_modules', '.staging'].includes(name))
        : []
    ).flatMap((name) => readdirSync(join(dataDir, 'plugins', name)).map((each) => `${name}/${each}`));
const recordOf = (name: string): Record<string, unknown> =>
    query<Record<string, unknown>>(`select * from plugins where name = '${name}'`)[0] ?? {};
interface Listed {
    readonly isRunning: boolean;
    readonly safeMode: boolean;
    readonly message: string | null;
    readonly plugins: readonly {
        readonly name: string;
        readonly state: string;
        readonly enabled: boolean;
        readonly version: string;
        readonly failure: { readonly code: string } | null;
    }[];
}
const listed = async (): Promise<Listed> => JSON.parse((await run('list', '--json')).stdout) as Listed;
const statesOf = async (...names: string[]): Promise<unknown[]> =>
    (await listed()).plugins
        .filter(({ name }) => names.includes(name))
        .map(({ name, state, enabled, failure }) => [name, state, enabled, failure?.code ?? null]);
const lastOf = (count: number): unknown[] =>
    auditOf(dataDir)
        .slice(-count)
        .map(({ action, resource, resource_id: id, outcome, actor_id: actor }) => [
            action,
            resource,
            id,
            outcome,
            actor
        ]);

describe('portico plugin without a panel', { timeout: limitMs }, () => {
    before(async () => {
        npm = await startNpmRegistry();
    });
    after(() => npm?.stop());
    beforeEach(async () => {
        dataDir = await panelFolder();
        folder = createPluginFolder();
    });
    afterEach(() => {
        npm.intercept = null;
        folder.remove();
        removeFolder(dataDir);
    });

    it('lists what the next start finds, with why not, and runs and decides nothing', async () => {
        const mark = join(folder.path, 'mark');
        folder.write(
            'hello',
            pluginModule(helloRoute, {
                head: `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(mark)}, '');`
            })
        );
        folder.write('future', pluginModule(helloRoute), { manifest: { sdk: '^99.0.0' } });
        folder.write('lonely', pluginModule(helloRoute), { manifest: { requires: { nobody: '^1.0.0' } } });
        const state = stateOf();
        const { code, stdout, stderr } = await run('list');
        expect(code, stderr).to.equal(0);
        expect(stderr).to.equal('No panel runs: this is what the next start finds\n');
        expect(stdout)
            .to.match(/^NAME +VERSION +STATE +ENABLED +PACKAGE\n/)
            .and.match(/\nhello +1\.0\.0 +resolved +yes +@acme\/portico-plugin-hello\n/);
        expect(stdout)
            .to.match(
                /\nfuture +1\.0\.0 +failed +yes .*\n {4}Failed: it cannot start here \(SDK_RANGE\): .*\^99\.0\.0/
            )
            .and.match(/\nlonely .*\n {4}Failed: .*\(REQUIREMENT_MISSING\): .*nobody/);
        expect(stateOf()).to.equal(state);
        expect(existsSync(mark)).to.be.false();
        expect(await listed()).to.include({ isRunning: false, safeMode: false });
        expect(
            await command(['plugin', 'list', '--data-dir', dataDir], {
                env: { PORTICO_PLUGIN_DIRS: folder.path, PORTICO_SAFE_MODE: '1' }
            }).then((each) => each.stderr)
        ).to.include('The next start is in safe mode, because PORTICO_SAFE_MODE is set');
    });

    it('disables and enables with what depends on it, refuses what would break that, and puts each on record', async () => {
        folder.write('base', pluginModule(helloRoute));
        folder.write('middle', pluginModule(helloRoute), { manifest: { requires: { base: '^1.0.0' } } });
        folder.write('top', pluginModule(helloRoute), { manifest: { requires: { middle: '^1.0.0' } } });
        const state = stateOf();
        expect(await run('disable', 'base')).to.equal({
            code: 1,
            stdout: '',
            stderr: 'portico: base is required by top, middle. With --cascade those are disabled first\n'
        });
        expect(await run('disable', 'nobody')).to.equal({
            code: 1,
            stdout: '',
            stderr: 'portico: There is no plugin named nobody\n'
        });
        expect(stateOf()).to.equal(state);
        expect(await run('disable', 'base', '--cascade')).to.equal({
            code: 0,
            stdout: '',
            stderr: 'base is disabled. Also disabled, since they require it: top, middle.\n'
        });
        expect(await statesOf('base', 'middle', 'top')).to.equal([
            ['base', 'disabled', false, null],
            ['middle', 'disabled', false, null],
            ['top', 'disabled', false, null]
        ]);
        expect(lastOf(1)).to.equal([['disable', 'plugins', 'base', 'success', null]]);
        expect(auditOf(dataDir).at(-1)?.['user_agent']).to.match(/^portico-console \(/);
        const without = await run('enable', 'top', '--json');
        expect([without.code, without.stderr]).to.equal([1, '']);
        expect(JSON.parse(without.stdout)).to.include({ name: 'top', state: 'failed', enabled: true });
        expect((JSON.parse(without.stdout) as { failure: object }).failure).to.include({
            stage: 'resolved',
            code: 'REQUIREMENT_FAILED',
            message: 'top requires middle ^1.0.0, which is disabled'
        });
        const whole = await run('enable', 'top', '--cascade');
        expect([whole.code, whole.stderr]).to.equal([
            0,
            ['base', 'middle', 'top']
                .map((name) => `${name} is enabled, and starts with the next start of the panel.\n`)
                .join('')
        ]);
        expect(lastOf(3).map((each) => (each as unknown[]).slice(0, 3))).to.equal([
            ['enable', 'plugins', 'base'],
            ['enable', 'plugins', 'middle'],
            ['update', 'plugins', 'top']
        ]);
        expect((await command(['audit', 'verify', '--data-dir', dataDir])).code).to.equal(0);
    });

    it('lets a plugin out of quarantine', async () => {
        folder.write('shaky', pluginModule(helloRoute));
        await run('enable', 'shaky');
        change(
            `update plugins set quarantined_at = 1700000000000, failures = '[1,2,3]', failure = '{"stage":"running","code":"START_FAILED","message":"no luck","at":1700000000000}' where name = 'shaky'`
        );
        expect((await run('list')).stdout).to.match(
            /\nshaky +1\.0\.0 +quarantined +yes .*\n {4}Failed: it did not run \(START_FAILED\): no luck\n {4}In quarantine since 2023-11-14T22:13:20\.000Z/
        );
        expect((await run('enable', 'shaky')).code).to.equal(0);
        expect(recordOf('shaky')).to.include({
            enabled: 1,
            quarantined_at: null,
            failures: '[]',
            failure: null
        });
    });

    it('shows what a plugin asks for in plain words, and grants it', async () => {
        const place = join(dataDir, 'extensions', 'greedy');
        mkdirSync(place, { recursive: true, mode: 0o700 });
        writeFileSync(
            join(place, 'package.json'),
            JSON.stringify(
                pluginPackage('greedy', '1.0.0', {
                    portico: {
                        name: 'greedy',
                        sdk: '^1.0.0',
                        capabilities: {
                            exec: ['git', "it's"],
                            network: ['*'],
                            hosts: 'own',
                            direct: ['native'],
                            api: { read: ['*'], write: ['hosts.create'] }
                        }
                    }
                })
            )
        );
        writeFileSync(join(place, 'index.js'), pluginModule(helloRoute));
        const state = stateOf();
        const { code, stdout, stderr } = await run('enable', 'greedy');
        expect([code, stdout]).to.equal([1, '']);
        expect(stderr.split('\n').slice(0, 8)).to.equal([
            'portico: The plugin asks for more than was granted. The plugin asks for this, and no admin has agreed to it yet:',
            "  exec         Programs that it runs, and gives secrets to as files; inside a name, `*` is any text without a slash: git, it's",
            '  network      Hosts that it connects to, or has programs connect to: anything',
            '  direct       What it reaches past the SDK; this cannot be limited, only isolated: native',
            '  api          Routes that it calls as the asking user, by id: read whatever the user may. Later, without the user, only those that the user gave it a mandate for; write hosts.create',
            '  hosts        Hosts that it may see and make, and whose upstreams it may ask for their health: own',
            'To agree to everything: portico plugin enable greedy --grant-all',
            `To agree to these capabilities, or to fewer: portico plugin enable greedy --grants '${JSON.stringify({ exec: ['git', "it's"], network: ['*'], direct: ['native'], api: { read: ['*'], write: ['hosts.create'] }, hosts: 'own' }).replace("it's", "it'\\''s")}'`
        ]);
        for (const [grants, message] of [
            ['{"hosts":"all"}', 'hosts must be one of'],
            ['[]', 'neither a JSON object nor a file'],
            ['{"sudo":true}', 'sudo is not allowed'],
            ['{', 'is not JSON'],
            [join(place, 'absent'), 'neither a JSON object nor a file']
        ] as const) {
            const refused = await run('enable', 'greedy', '--grants', grants);
            expect([refused.code, refused.stdout], grants).to.equal([2, '']);
            expect(refused.stderr).to.include(message);
        }
        expect((await run('enable', 'greedy', '--grants', '{}', '--grant-all')).code).to.equal(2);
        expect(stateOf()).to.equal(state);
        writeFileSync(join(place, 'grants.json'), '{"hosts":"own"}');
        expect((await run('enable', 'greedy', '--grants', join(place, 'grants.json'))).code).to.equal(0);
        expect([recordOf('greedy')['enabled'], recordOf('greedy')['grants']]).to.equal([
            1,
            '{"hosts":"own"}'
        ]);
        expect((await run('enable', 'greedy', '--grant-all')).code).to.equal(0);
        expect(JSON.parse(String(recordOf('greedy')['grants']))).to.include({
            network: ['*'],
            direct: ['native']
        });
    });

    it('shows nothing of an author that would steer a terminal, or pass for words of the panel', async () => {
        folder.write('hostile', pluginModule(helloRoute), {
            manifest: { capabilities: { exec: ['git\n  pages        harmless\u001b[2J\u202e'] } }
        });
        for (const { stdout, stderr } of [await run('list'), await run('enable', 'hostile')]) {
            expect(stdout + stderr)
                .to.include('MANIFEST_INVALID')
                .and.not.match(/[\u001b\u202e]|^ {2}pages/m);
        }
    });

    it('installs a version from the registry, upgrades it, and removes it; the next start runs it', async () => {
        await publishVersion(npm, '1.0.0');
        await publishVersion(npm, '1.1.0', { migrations: 2 });
        const first = await run('install', '@acme/portico-plugin-rows@1.0.0');
        expect(first.code, first.stderr).to.equal(0);
        expect(first.stderr)
            .to.include('  fetching\n')
            .and.include(
                '@acme/portico-plugin-rows 1.0.0 is installed. rows is enabled, and starts with the next start of the panel.\n'
            );
        expect(lastOf(1)).to.equal([['install', 'plugins', 'rows', 'success', null]]);
        const env = { PORTICO_PLUGIN_DIRS: '', PORTICO_NPM_REGISTRY: npm.url };
        const panel = await startPanel(dataDir, { env });
        await until(
            async () => (await statesOf('rows'))[0]?.toString() === 'rows,running,true,',
            'rows to run'
        );
        await panel.stop();
        const second = await run('install', '@acme/portico-plugin-rows', '--json');
        expect([second.code, second.stderr]).to.equal([0, '']);
        expect(JSON.parse(second.stdout)).to.include({
            name: 'rows',
            version: '1.1.0',
            from: '1.0.0',
            state: 'resolved',
            enabled: true,
            origin: 'lock'
        });
        expect(query('select n, version, current, pending from plugin_data')).to.equal([
            { n: 1, version: '1.0.0', current: 0, pending: 0 },
            { n: 2, version: '1.1.0', current: 1, pending: 0 }
        ]);
        const again = await startPanel(dataDir, { env });
        await until(
            async () => (await statesOf('rows'))[0]?.toString() === 'rows,running,true,',
            'the new version to run'
        );
        await again.stop();
        change('update plugin_data set accepted = 1 where current = 1'); // as the first change of a row does
        npm.intercept = (_request, response) => response.destroy() !== null;
        const state = stateOf() as { audit: unknown };
        const ahead = await run('install', '@acme/portico-plugin-rows@1.0.0');
        expect([
            ahead.code,
            ahead.stderr.includes('rows 1.1.0 has migrated its data (0002) and accepted changes since'),
            ahead.stderr.includes('--restore-data goes back')
        ]).to.equal([1, true, true]);
        expect({ ...(stateOf() as object), audit: state.audit }).to.equal(state);
        expect((await run('install', '@acme/portico-plugin-rows@0.9.0', '--restore-data')).stderr).to.include(
            'There is nothing to go back to'
        );
        const back = await run('install', '@acme/portico-plugin-rows@1.0.0', '--restore-data');
        expect([back.code, back.stderr]).to.equal([
            0,
            '@acme/portico-plugin-rows 1.0.0 is installed and replaces 1.1.0. rows is enabled, and starts with the next start of the panel.\n'
        ]);
        expect(query('select n, version, current from plugin_data order by n')).to.equal([
            { n: 2, version: '1.1.0', current: 0 },
            { n: 3, version: '1.0.0', current: 1 }
        ]);
        npm.intercept = null;
        await run('install', '@acme/portico-plugin-rows@1.1.0');
        expect(await run('remove', 'rows')).to.equal({
            code: 0,
            stdout: '',
            stderr: 'rows is uninstalled; its data stay.\n'
        });
        expect([
            query("select * from plugins where name = 'rows'"),
            query('select version, current from plugin_data')
        ]).to.equal([[], [{ version: '1.1.0', current: 1 }]]);
        expect(await run('remove', 'rows')).to.include({
            code: 1,
            stderr: 'portico: There is no plugin named rows\n'
        });
        await run('install', '@acme/portico-plugin-rows@1.1.0', '--disabled');
        expect(recordOf('rows')).to.include({ enabled: 0 });
        expect(JSON.parse((await run('remove', 'rows', '--purge', '--json')).stdout)).to.equal({
            name: 'rows',
            purged: true,
            message: null
        });
        expect([
            query('select * from plugin_data'),
            readdirSync(join(dataDir, 'plugin-data', 'rows'))
        ]).to.equal([[], []]);
        expect(foldersOf()).not.to.be.empty();
        await (await startPanel(dataDir, { env })).stop();
        expect(foldersOf()).to.equal([]);
    });

    it('refuses a package as the panel does, and leaves nothing of it', async () => {
        await publishVersion(npm, '1.0.0', { name: 'mild' });
        await publishVersion(npm, '2.0.0', {
            name: 'mild',
            manifest: { capabilities: { network: ['api.example.org'] } }
        });
        folder.write('user', pluginModule(helloRoute), { manifest: { requires: { mild: '^1.0.0' } } });
        await run('install', '@acme/portico-plugin-mild@1.0.0');
        await run('enable', 'user');
        const { audit: _before, ...state } = stateOf() as { audit: unknown };
        const consent = await run('install', '@acme/portico-plugin-mild@2.0.0');
        expect([consent.code, consent.stdout]).to.equal([1, '']);
        expect(consent.stderr)
            .to.include(
                '  network      Hosts that it connects to, or has programs connect to: api.example.org\n'
            )
            .and.include(
                'To agree to everything: portico plugin install @acme/portico-plugin-mild@2.0.0 --grant-all\n'
            );
        expect(lastOf(1)).to.equal([['install', 'plugins', 'mild', 'failure', null]]);
        const misfit = await run('install', '@acme/portico-plugin-mild@2.0.0', '--grant-all');
        expect([misfit.code, misfit.stdout]).to.equal([1, '']);
        expect(misfit.stderr).to.include('user').and.include('^1.0.0');
        for (const [args, message] of [
            [['@acme/portico-plugin-mild@1.0.0', '--integrity', 'sha512-AAAA'], 'integrity'],
            [['@acme/portico-plugin-nothing'], 'has no @acme/portico-plugin-nothing'],
            [['@acme/portico-plugin-mild@9.9.9'], '9.9.9'],
            [['git+https://example.org/x.git'], 'not the name of a package']
        ] as const) {
            const refused = await run('install', ...args);
            expect([refused.code, refused.stdout], args.join(' ')).to.equal([1, '']);
            expect(refused.stderr.toLowerCase(), args.join(' ')).to.include(message);
        }
        for (const [args, message] of [
            [['./somewhere'], 'neither an archive'],
            [['mild@'], 'no version after its @'],
            [[], 'the argument <package> is missing'],
            [['mild', '--integrity='], '--integrity is empty']
        ] as const) {
            const misuse = await run('install', ...args);
            expect([misuse.code, misuse.stdout], args.join(' ')).to.equal([2, '']);
            expect(misuse.stderr).to.include(message);
        }
        const { audit: _after, ...now } = stateOf() as { audit: unknown };
        expect(now).to.equal(state);
        expect((await command(['audit', 'verify', '--data-dir', dataDir])).code).to.equal(0);
    });

    it('installs an archive, which waits for consent unless it has it, and the settings that waited for it', async () => {
        const path = join(mkdtempSync(join(tmpdir(), 'portico-archive-')), 'sent.tgz');
        writeFileSync(
            path,
            packageArchive(
                ...versionedPackage('3.0.0', { name: 'sent', manifest: { capabilities: { hosts: 'read' } } })
            )
        );
        const keyring = createKeyring(dataDir);
        const db = await openStorage(dataDir);
        await db.write((tx) =>
            new KeptPlugins({ db, clock: systemClock, keyring }).keep(tx, {
                name: 'sent',
                package: '@acme/portico-plugin-sent',
                version: '1.0.0',
                enabled: true,
                settings: { greeting: 'Ahoy' },
                secrets: { '/token': 'a very secret token' }
            })
        );
        await db.close();
        try {
            const waits = await run('install', path);
            expect(waits.code, waits.stderr).to.equal(0);
            expect(waits.stderr)
                .to.include('sent is disabled.\n')
                .and.include('portico plugin enable sent --grant-all');
            expect(recordOf('sent')).to.include({ enabled: 0, grants: '{}' });
            expect(JSON.parse(String(recordOf('sent')['settings']))).to.include({ greeting: 'Ahoy' });
            expect(contentOf(dataDir)).not.to.include('a very secret token');
            expect(query('select * from kept_plugins')).to.equal([]);
            await run('remove', 'sent', '--purge');
            expect((await run('install', path, '--grants', '{"hosts":"read"}')).code).to.equal(0);
            expect(recordOf('sent')).to.include({ enabled: 1, grants: '{"hosts":"read"}' });
        } finally {
            rmSync(join(path, '..'), { recursive: true });
        }
    });

    it('keeps to the folder that it lies in, and to the lock of the data folder', async () => {
        folder.write('hello', pluginModule(helloRoute));
        const state = stateOf();
        const own = await run('remove', 'hello');
        expect([own.code, own.stderr]).to.equal([
            1,
            `portico: hello was not installed by the panel: it lies in ${join(folder.path, 'hello')}, and is found again as long as that folder exists. Disable it, or delete that folder\n`
        ]);
        expect(stateOf()).to.equal(state);
        await publishVersion(npm, '1.0.0', { name: 'slow' });
        let asked: () => void = () => undefined;
        const reached = new Promise<void>((resolve) => {
            asked = resolve;
        });
        npm.intercept = () => {
            asked();
            return true;
        };
        const child = spawn(
            process.execPath,
            [shim, 'plugin', 'install', '@acme/portico-plugin-slow', '--data-dir', dataDir],
            {
                env: environmentOf({ PORTICO_NPM_REGISTRY: npm.url, PORTICO_PLUGIN_DIRS: '' }),
                stdio: ['ignore', 'ignore', 'pipe']
            }
        );
        let said = '';
        child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
        const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
        await reached;
        const other = await run('disable', 'hello');
        expect([other.code, other.stdout]).to.equal([1, '']);
        expect(other.stderr).to.include('Another process holds');
        child.kill('SIGINT');
        expect(await ended).to.equal(1);
        expect(said).to.include('The install was cancelled; nothing was changed');
        expect([query("select * from plugins where name = 'slow'"), foldersOf()]).to.equal([[], []]);
        expect((await run('disable', 'hello')).code).to.equal(0);
    });

    it('is never half done when it is killed', async () => {
        await publishVersion(npm, '1.0.0', { name: 'cut' });
        // At a step that can be seen from outside, be it a request or a change of a file, which is where it matters at any speed of the machine.
        let kills = 0;
        for (const last of [3, 9, 14, 19, 24]) {
            const child = spawn(
                process.execPath,
                [shim, 'plugin', 'install', '@acme/portico-plugin-cut', '--data-dir', dataDir],
                {
                    env: environmentOf({ PORTICO_NPM_REGISTRY: npm.url, PORTICO_PLUGIN_DIRS: '' }),
                    stdio: 'ignore'
                }
            );
            let steps = 0;
            const step = (): boolean => {
                steps += 1;
                if (steps === last) {
                    child.kill('SIGKILL');
                }
                return false;
            };
            npm.intercept = step;
            // A folder that vanishes while its watch begins is an error of the watcher, and nothing else.
            const watcher = watch(dataDir, { recursive: true }, step).on('error', () => undefined);
            const [, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
            kills += signal === 'SIGKILL' ? 1 : 0;
            watcher.close();
            npm.intercept = null;
            const { plugins } = await listed();
            const cut = plugins.find(({ name }) => name === 'cut');
            expect([undefined, 'resolved', 'disabled'], JSON.stringify(cut)).to.include(cut?.state);
        }
        expect(kills).to.be.above(0);
        expect((await run('install', '@acme/portico-plugin-cut')).code).to.equal(0);
        await run('enable', 'cut');
        expect(await statesOf('cut')).to.equal([['cut', 'resolved', true, null]]);
        expect((await command(['audit', 'verify', '--data-dir', dataDir])).code).to.equal(0);
    });
});

describe('a panel that a plugin keeps from starting', { timeout: limitMs }, () => {
    let panel: PanelProcess;

    beforeEach(async () => {
        folder = createPluginFolder();
        panel = await createPanelProcess({ environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        dataDir = panel.dataDir;
    });
    afterEach(async () => {
        await panel.close();
        folder.remove();
    });

    it('starts again, and not in safe mode, when that is disabled from the command line', async () => {
        // An end that no code of the panel sees: a plugin that calls `process.exit` is named, and no safe mode is needed.
        folder.write('bad', pluginModule('', { head: "process.kill(process.pid, 'SIGKILL');" }));
        folder.write('good', pluginModule(helloRoute));
        for (let attempt = 0; attempt < 3; attempt += 1) {
            panel.launch();
            await until(() => !panel.running, 'its end', 60_000);
        }
        const env = { PORTICO_PLUGIN_DIRS: folder.path };
        const list = await command(['plugin', 'list', '--data-dir', dataDir], { env });
        expect(list.stderr).to.include(
            'The next start is in safe mode, because the last three starts with plugins failed'
        );
        expect(list.stdout).to.match(/\nbad +1\.0\.0 +resolved +yes /);
        const disabled = await command(['plugin', 'disable', 'bad', '--data-dir', dataDir], { env });
        expect(disabled).to.equal({ code: 0, stdout: '', stderr: 'bad is disabled.\n' });
        await panel.start();
        const client = await panel.login();
        await until(
            async () => (await client.get('/api/plugins/good')).data.state === 'running',
            'the other one to run'
        );
        expect((await client.get('/api/plugins')).headers['x-portico-safe-mode']).to.be.undefined();
        expect((await client.get('/api/plugins/bad')).data).to.include({ state: 'disabled', enabled: false });
        expect((await client.get('/api/plugins/good/hello')).data).to.equal({ text: 'Hello' });
        expect((await client.get('/api/audit?resource=plugins&action=disable')).data[0]).to.include({
            resourceId: 'bad',
            outcome: 'success'
        });
    });
});
