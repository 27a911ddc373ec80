import {
    chmodSync,
    closeSync,
    existsSync,
    mkdirSync,
    openSync,
    realpathSync,
    rmSync,
    writeFileSync,
    writeSync
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Sqlite from 'better-sqlite3';

import { engineHome } from '../../../../core/src/engine/files/home.ts';
import { noteDataFolder } from '../../../../core/src/engine/files/outside-folders.ts';
import { panelFolder, portico, removeFolder } from '../../../support/panel/console.ts';
import { freePort } from '../../../support/ports.ts';
import { itUnless } from '../../../support/skip.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

interface Check {
    readonly id: string;
    readonly state: 'ok' | 'warn' | 'fail';
    readonly evidence: string;
    readonly remedy: string | null;
}

describe('portico doctor', () => {
    let dataDir: string;
    let ports: number[];

    beforeEach(async () => {
        dataDir = await panelFolder();
        ports = [await freePort(), await freePort(), await freePort()];
    });

    afterEach(() => removeFolder(dataDir));

    const environment = (): NodeJS.ProcessEnv => ({
        PORTICO_DATA_DIR: dataDir,
        PORTICO_HOST: '127.0.0.1',
        PORTICO_PORT: String(ports[0]),
        PORTICO_ENGINE_HTTP_PORT: String(ports[1]),
        PORTICO_ENGINE_HTTPS_PORT: String(ports[2])
    });

    async function diagnose(env: NodeJS.ProcessEnv = {}): Promise<{
        readonly code: number | null;
        readonly of: (id: string) => Check | undefined;
        readonly failed: string[];
    }> {
        const { code, stdout } = await portico(['doctor', '--json'], { env: { ...environment(), ...env } });
        const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Check[] };
        expect(ok).to.equal(code === 0);
        for (const check of checks) {
            expect(check.evidence, check.id).not.to.be.empty();
            expect(check.remedy === null, check.id).to.equal(check.state === 'ok');
        }
        return {
            code,
            of: (id) => checks.find((check) => check.id === id),
            failed: checks.filter(({ state }) => state === 'fail').map(({ id }) => id)
        };
    }

    itUnless(process.getuid?.() === 0 ? undefined : 'only root has folders of the engine elsewhere', it)(
        'removes folders of the engine whose data folder is gone, when that is asked for',
        async () => {
            const gone = join(dataDir, 'gone');
            mkdirSync(gone);
            const { persistent } = engineHome(gone, null);
            mkdirSync(persistent, { recursive: true });
            noteDataFolder(persistent, realpathSync(gone));
            rmSync(gone, { recursive: true });
            expect((await diagnose()).of('engine-folders')).to.include({ state: 'warn' });
            expect(existsSync(persistent)).to.be.true();
            const { stdout, stderr } = await portico(['doctor', '--clean'], { env: environment() });
            expect(`${stdout}${stderr}`).to.contain(`Removed ${persistent}`);
            expect(existsSync(persistent)).to.be.false();
        }
    );

    it('finds nothing wrong with a folder whose panel does not run, and changes nothing', async () => {
        const { code, of, failed } = await diagnose();
        expect({ code, failed }).to.equal({ code: 0, failed: [] });
        for (const id of [
            'node',
            'data-folder',
            'keys',
            'disk',
            'database',
            'migrations',
            'audit',
            'clock',
            'lock',
            'panel-port',
            'engine-user',
            'engine-http',
            'engine-https'
        ]) {
            expect(of(id)?.state, id).to.equal('ok');
        }
        expect(of('panel')).to.include({ state: 'warn', remedy: 'Start it: portico start' });
        expect(of('engine-process')?.state).to.equal('warn');
        expect((await portico(['audit', 'verify'], { env: environment() })).stdout).to.include('1 entries');
    });

    it('writes one line for each check, and the remedy below it', async () => {
        const { code, stdout, stderr } = await portico(['doctor'], { env: environment() });
        expect(code).to.equal(0);
        expect(stdout)
            .to.match(/^ok {4}node {12}Node \d+/)
            .and.include('\n                      → Start it: portico start\n');
        expect(stderr).to.match(/^\d+ ok, \d+ warnings, 0 failed\n$/);
    });

    it('finds what others may read', async () => {
        chmodSync(dataDir, 0o755);
        chmodSync(join(dataDir, 'keys', 'tokens'), 0o640);
        const { code, of, failed } = await diagnose();
        expect({ code, failed }).to.equal({ code: 1, failed: ['data-folder', 'keys'] });
        expect(of('data-folder')).to.include({
            remedy: `Other users can read the folder: chmod 700 ${dataDir}`
        });
        expect(of('keys')?.evidence).to.include('tokens (0640)');
    });

    it('finds a master key that was cut', async () => {
        writeFileSync(join(dataDir, 'keys', 'master'), 'short');
        const { of, failed } = await diagnose();
        expect(failed).to.include('keys');
        expect(of('keys')?.evidence).to.include('5 bytes instead of 32');
    });

    it('finds a damaged page', async () => {
        const file = openSync(join(dataDir, 'portico.db'), 'r+');
        for (let page = 3; page < 30; page += 1) {
            writeSync(file, Buffer.alloc(512, 0xa5), 0, 512, page * 4096);
        }
        closeSync(file);
        const { code, of } = await diagnose();
        expect(code).to.equal(1);
        expect(of('database')?.state).to.equal('fail');
        expect(of('database')?.remedy).to.include('put back a backup');
    });

    it('finds an audit log that does not go on where its head file says', async () => {
        rmSync(join(dataDir, 'audit.head'));
        expect((await diagnose()).of('audit')).to.include({ state: 'fail' });
        writeFileSync(join(dataDir, 'audit.head'), '{"sequence":9,"hash":"x","hmac":"x"}');
        expect((await diagnose()).of('audit')?.evidence).to.include('HEAD_INVALID');
    });

    it('finds a clock that was set back, and a database of another version', async () => {
        const db = new Sqlite(join(dataDir, 'portico.db'));
        db.exec(
            `update audit_entries set at = ${Date.now() + 3600_000}; insert into migrations (name, executed_at) values ('0099-of-tomorrow', '2026-01-01')`
        );
        db.close();
        const { of } = await diagnose();
        expect(of('clock')?.state).to.equal('fail');
        expect(of('migrations')?.evidence).to.equal('run by a newer version: 0099-of-tomorrow');
    });

    it('finds ports that another program holds', async () => {
        const servers: Server[] = [];
        for (const [index, host] of [
            [0, '127.0.0.1'],
            [1, '0.0.0.0']
        ] as const) {
            const server = createServer();
            await new Promise<void>((done) => server.listen(ports[index], host, done));
            servers.push(server);
        }
        const { failed, of } = await diagnose();
        await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
        expect(failed).to.equal(['panel-port', 'engine-http']);
        expect(of('engine-http')?.evidence).to.include(`process ${process.pid}`);
    });

    it('takes the ports that are stored, unless the environment names others', async () => {
        const db = new Sqlite(join(dataDir, 'portico.db'));
        db.exec(
            `insert into settings (key, value, version, updated_at) values ('engine.httpPort', '${ports[1]}', 1, 0)`
        );
        db.close();
        expect((await diagnose({ PORTICO_ENGINE_HTTP_PORT: '' })).of('engine-http')?.evidence).to.include(
            `port ${ports[1]} `
        );
        expect(
            (await diagnose({ PORTICO_ENGINE_HTTP_PORT: String(ports[2]) })).of('engine-http')?.evidence
        ).to.include(`port ${ports[2]} `);
    });

    it('finds that the engine is missing, is no engine, or has no user', async () => {
        expect((await diagnose({ PORTICO_CADDY: join(dataDir, 'none') })).of('engine-binary')).to.include({
            state: 'fail'
        });
        expect((await diagnose({ PORTICO_CADDY: '/bin/false' })).of('engine-binary')?.evidence).to.include(
            '/bin/false version failed'
        );
        expect(
            (await diagnose({ PORTICO_ENGINE_USER: 'no-such-user' })).of('engine-user')?.evidence
        ).to.include('there is no user no-such-user');
    });
});
