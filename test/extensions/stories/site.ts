/**
 * One machine as an admin has it: a site of PHP with its database, visitors over a network, backups in two places, and a closed firewall. The site is
 * lost and comes back, and its pool changes under traffic. Panel, engine and servers run in a network namespace of their own.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
    chmodSync,
    chownSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    rmSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { engineHome } from '../../../core/src/engine/files/home.ts';
import { solve } from '../../support/panel/client.ts';
import { panelArguments } from '../../support/panel/process.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { noMariadb } from '../database/instances.ts';
import { type HttpResult, Network, noNamespaces } from '../firewall/namespaces.ts';
import { hasAccount, withoutPhp } from '../php/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const missing = ['restic', 'rclone'].find(
    (name) => !['/usr/bin', '/usr/local/bin'].some((folder) => existsSync(join(folder, name)))
);
const lacks =
    noNamespaces ??
    withoutPhp ??
    noMariadb ??
    (missing === undefined ? undefined : `${missing} is not installed`);
const test = itUnless(lacks, it);
const patient = { timeout: 240_000 };

const root = fileURLToPath(new URL('../../../', import.meta.url));
const password = 'a quiet harbour at dawn';
const [host, panelPort, sitePort, restPort] = ['10.77.0.1', 7443, 7080, 8000];
const name = `t${randomBytes(4).toString('hex')}-shop`;
const domain = 'shop.test';
const extensions = ['backup', 'database', 'firewall', 'php'];

/** Shows the notes of a table, and adds one. */
const script = `<?php
$db = new mysqli(null, getenv('DB_USERNAME'), getenv('DB_PASSWORD'), getenv('DB_DATABASE'), 0, getenv('DB_SOCKET') ?: null);
$db->query('create table if not exists notes (id int auto_increment primary key, text varchar(100))');
if (isset($_GET['note'])) { $db->execute_query('insert into notes (text) values (?)', [$_GET['note']]); }
foreach ($db->query('select text from notes order by id') as $row) { echo $row['text'], "\\n"; }
`;

let network: Network;
let folder: string;
let panel: ChildProcess;
let rest: ChildProcess;
let token: string | undefined;

const call = (method: string, path: string, body?: object): Promise<HttpResult> =>
    network.visitor.http({ host, port: panelPort, method, path, body, token, timeoutMs: 30_000 });
const visit = (path = '/'): Promise<HttpResult> =>
    network.visitor.http({ host, port: sitePort, method: 'GET', path, headers: { host: domain } });

/** The data of an answer without a failure. */
async function ask(method: string, path: string, body?: object): Promise<NonNullable<HttpResult['data']>> {
    const answer = await call(method, `/api/plugins${path}`, body);
    expect(answer.code, `${method} ${path}: ${answer.text}`).to.equal(0);
    return answer.data;
}

/** The result of a task that succeeds. */
async function finish(
    method: string,
    path: string,
    body: object = {}
): Promise<NonNullable<HttpResult['data']>> {
    const { id } = await ask(method, path, body);
    const task = await until(async () => {
        const { data } = await call('GET', `/api/tasks/${id}`);
        return ['queued', 'running'].includes(data.state as string) ? null : data;
    }, `${path} to end`);
    expect(task.state, `${path}: ${JSON.stringify(task.error)}`).to.equal('succeeded');
    return task.result;
}

async function login(): Promise<void> {
    const { data } = await call('GET', '/api/auth/login');
    token = (await call('POST', '/api/auth/login', { username: 'admin', password, altcha: solve(data) })).data
        .token;
}

/** Starts a program in the namespace of the server. */
function startThere(file: string, args: readonly string[], environment: NodeJS.ProcessEnv): ChildProcess {
    return spawn('nsenter', [`--net=${network.server.path}`, file, ...args], {
        cwd: root,
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { PATH: process.env['PATH'], ...environment }
    });
}

async function ended(child: ChildProcess): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) {
        await new Promise((resolve) => child.once('exit', resolve));
    }
}

async function start(): Promise<void> {
    for (const extension of extensions) {
        symlinkSync(join(root, 'extensions', extension), join(folder, 'plugins', extension));
    }
    rest = startThere(
        'rclone',
        [
            'serve',
            'restic',
            '--addr',
            `127.0.0.1:${restPort}`,
            '--user',
            'backup',
            '--pass',
            password,
            join(folder, 'rest')
        ],
        { HOME: folder }
    );
    panel = startThere(process.execPath, panelArguments, {
        HOME: folder,
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        PORTICO_HOST: '0.0.0.0',
        PORTICO_PORT: String(panelPort),
        PORTICO_DATA_DIR: join(folder, 'data'),
        PORTICO_ADMIN_PASSWORD: password,
        PORTICO_ENGINE_HTTP_PORT: String(sitePort),
        PORTICO_ENGINE_HTTPS_PORT: '7081',
        PORTICO_LOG_LEVEL: 'warn',
        PORTICO_PLUGIN_DIRS: join(folder, 'plugins'),
        PORTICO_SERVICES: 'supervisor'
    });
    await until(async () => (await call('GET', '/readyz')).status === 200, 'the panel');
    await login();
    const states = async (): Promise<readonly string[]> =>
        (await call('GET', '/api/plugins')).data
            .filter((each: { name: string }) => extensions.includes(each.name))
            .map((each: { name: string; state: string }) => `${each.name} ${each.state}`);
    await until(async () => (await states()).every((each) => each.endsWith(' running')), 'the extensions');
    const settings = {
        php: { sitesFolder: join(folder, 'www'), runFolder: join(folder, 'run') },
        database: { dataFolder: join(folder, 'databases') }
    };
    for (const [plugin, set] of Object.entries(settings)) {
        await ask('PUT', `/${plugin}`, { settings: set });
    }
}

/** Writes the script as a program of the site would: owned by its account, for the group to read. */
function writeScript(): void {
    const public_ = join(folder, 'www', name, 'public');
    const { uid, gid } = statSync(public_);
    const file = join(public_, 'index.php');
    writeFileSync(file, script);
    chownSync(file, uid, gid);
    chmodSync(file, 0o640);
}

describe('A site of PHP on one machine', patient, () => {
    before(patient, async () => {
        if (lacks !== undefined) {
            return;
        }
        folder = mkdtempSync(join(tmpdir(), 'portico-story-'));
        chmodSync(folder, 0o755);
        ['plugins', 'rest', 'databases'].forEach((each) => mkdirSync(join(folder, each), { mode: 0o755 }));
        network = await Network.create();
        await network.server.listen(7001);
        await start();
    });

    after(patient, async () => {
        if (lacks !== undefined) {
            return;
        }
        await network.close(); // with all that runs there
        await Promise.all([panel, rest].map(ended));
        if (hasAccount(`php-${name}`)) {
            execFileSync('userdel', ['--', `php-${name}`], { stdio: 'ignore' });
        }
        const { persistent, runtime } = engineHome(join(folder, 'data'), null);
        for (const path of [folder, persistent, runtime]) {
            rmSync(path, { recursive: true, force: true });
        }
    });

    let serverId: number;
    let siteId: number;

    test('is made in one call with its database and its domain, and answers its visitors', async () => {
        ({ serverId } = await finish('POST', '/database/servers', {
            name: 'own',
            kind: 'mysql',
            mode: 'managed',
            preset: 'tiny'
        }));
        ({ siteId } = await finish('POST', '/php/sites', {
            name,
            domain,
            template: 'php',
            database: { serverId, name: 'shop' }
        }));
        writeScript();
        expect((await visit('/?note=first')).text).to.equal('first\n');
        expect((await visit('/?note=second')).text).to.equal('first\nsecond\n');
    });

    test('stays reachable behind a firewall that closes the rest, and the rest is open again without a confirmation', async () => {
        const reached = () => network.visitor.connect(host, 7001);
        expect(await reached()).to.equal('open');
        await ask('POST', '/firewall/rules', {
            direction: 'in',
            action: 'accept',
            protocol: 'tcp',
            ports: [String(panelPort), String(sitePort)]
        });
        await ask('PUT', '/firewall/policy', { input: 'drop' });
        await ask('POST', '/firewall/apply', { confirmSeconds: 5 });
        expect([await reached(), (await visit()).status]).to.equal(['timeout', 200]);
        await until(async () => (await reached()) === 'open', 'the rules of before');
        // The guard outside of the panel may be first; the panel says it a moment later.
        await until(
            async () => (await ask('GET', '/firewall/state')).lastOutcome === 'expired',
            'the outcome'
        );
        const { trialId } = await ask('POST', '/firewall/apply', { confirmSeconds: 60 });
        await ask('POST', '/firewall/confirm', { trialId });
        expect([await reached(), (await visit()).text]).to.equal(['timeout', 'first\nsecond\n']);
    });

    let copyId: number;

    test('is backed up to two places, with the panel and the database', async () => {
        const local = await finish('POST', '/backup/repositories', {
            name: 'disk',
            type: 'local',
            path: join(folder, 'disk')
        });
        const remote = await finish('POST', '/backup/repositories', {
            name: 'away',
            type: 'rest',
            url: `http://127.0.0.1:${restPort}/portico/`,
            username: 'backup',
            loginPassword: password,
            password: 'another quiet harbour'
        });
        copyId = remote.repositoryId;
        const plan = await ask('POST', '/backup/plans', {
            name: 'all',
            repositoryId: local.repositoryId,
            copyTo: [copyId],
            sources: [
                { type: 'panel' },
                { type: 'plugin', plugin: 'php' },
                { type: 'plugin', plugin: 'database' }
            ]
        });
        const { id } = await ask('POST', `/backup/plans/${plan.id}/run`, {});
        const run = await until(async () => {
            const found = await ask('GET', `/backup/runs/${id}`);
            return found.finishedAt === null ? null : found;
        }, 'the run');
        expect([run.state, run.message]).to.equal(['succeeded', null]);
        for (const repository of [local.repositoryId, copyId]) {
            expect((await ask('GET', `/backup/repositories/${repository}/snapshots`)).length).to.equal(1);
        }
    });

    test('comes back from the second place after site and database are gone', async () => {
        expect((await visit('/?note=lost')).text).to.equal('first\nsecond\nlost\n');
        await ask('DELETE', `/php/sites/${siteId}?deleteFiles=true`);
        await ask('DELETE', `/database/servers/${serverId}/databases/shop?confirm=shop`);
        expect((await visit()).status).to.not.equal(200);
        const [snapshot] = await ask('GET', `/backup/repositories/${copyId}/snapshots`);
        await finish('POST', `/backup/repositories/${copyId}/snapshots/${snapshot.id}/restore`, {
            items: [
                { plugin: 'database', item: 'own:shop' },
                { plugin: 'php', item: name }
            ],
            inPlace: true
        });
        expect(await visit()).to.include({ status: 200, text: 'first\nsecond\n' });
        const [site] = await ask('GET', '/php/sites');
        expect(site).to.include({ name, domain, state: 'running', databaseName: 'shop' });
        siteId = site.id;
    });

    test('changes its pool under traffic, and no request fails', async () => {
        const failures: HttpResult[] = [];
        let [asked, running] = [0, true];
        const visitors = Array.from({ length: 4 }, async () => {
            while (running) {
                const answer = await visit();
                asked += 1;
                if (answer.status !== 200 || answer.text !== 'first\nsecond\n') {
                    failures.push(answer);
                }
            }
        });
        for (const maxChildren of [8, 3, 6]) {
            await ask('PUT', `/php/sites/${siteId}/pool`, { maxChildren });
        }
        running = false;
        await Promise.all(visitors);
        expect(failures).to.equal([]);
        expect(asked).to.be.above(10);
    });
});
