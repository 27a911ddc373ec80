/** A panel whose data folder lost a part between two starts, or has it damaged. */
import {
    cpSync,
    mkdirSync,
    readFileSync,
    renameSync,
    rmSync,
    statSync,
    truncateSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Sqlite from 'better-sqlite3';

import { openFoundation } from '../../core/src/composition/foundation.ts';
import { systemClock } from '../../core/src/platform/clock.ts';
import { readConfig } from '../../core/src/platform/config.ts';
import { createLog } from '../../core/src/platform/log/log.ts';
import { Client } from '../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../support/panel/process.ts';
import { startUpstream, type TestUpstream } from '../support/servers/upstream.ts';

export const lab = Lab.script();
const { after, afterEach, before, describe, it } = lab;

describe('a panel whose data folder is damaged', { timeout: 60_000 }, () => {
    let panel: PanelProcess;
    let upstream: TestUpstream;
    let backup: string;
    let token: string;
    const at = (...names: string[]): string => join(panel.dataDir, ...names);
    const database = (): string => at('portico.db');
    const served = async (): Promise<string> =>
        (await new Client(panel.httpPort).call('GET', '/', { headers: { host: 'kept.test' } })).text;

    before(async () => {
        upstream = await startUpstream('kept');
        panel = await createPanelProcess();
        await panel.start();
        const client = await panel.login();
        const made = await client.post('/api/hosts', { domain: 'kept.test', upstream: upstream.address });
        expect(made.status).to.equal(201);
        expect((await client.get('/api/health')).data).to.equal({ status: 'ok', problems: [] });
        const issued = await client.post('/api/auth/tokens', {
            name: 'reader',
            permissions: ['settings:read']
        });
        token = issued.data.token as string;
        expect(await panel.end('SIGTERM')).to.equal(0);
        backup = `${panel.dataDir}.backup`;
        cpSync(panel.dataDir, backup, { recursive: true });
    });

    afterEach(async () => {
        await panel.end('SIGTERM');
        rmSync(panel.dataDir, { recursive: true });
        cpSync(backup, panel.dataDir, { recursive: true });
    });

    after(async () => {
        await panel.close();
        await upstream.close();
    });

    /** Opens the folder as a start does, which must refuse it, again and again. */
    const refuses = async (...words: string[]): Promise<void> => {
        const config = readConfig({ PORTICO_DATA_DIR: panel.dataDir }, '/');
        const log = createLog({ level: 'silent', write: () => undefined });
        for (let round = 0; round < 2; round += 1) {
            const error = await openFoundation({ config, log, clock: systemClock }).then(
                () => null,
                (thrown: unknown) => thrown as Error
            );
            for (const word of words) {
                expect(error?.message).to.contain(word);
            }
        }
    };

    it('does not start on it, says why, and leaves the engine as it is', async () => {
        rmSync(database());
        panel.launch();
        expect(await panel.ended()).to.equal(1);
        expect(panel.output).to.contain('The panel did not start').and.contain('portico.db is missing');
        expect(await served()).to.contain('kept');
    });

    it('refuses a missing database', async () => {
        rmSync(database());
        await refuses('portico.db is missing', 'backup');
    });

    it('refuses a missing database and missing keys beside the head of the audit log', async () => {
        rmSync(database());
        rmSync(at('keys'), { recursive: true });
        await refuses('portico.db is missing', 'audit.head');
    });

    it('refuses an empty database', async () => {
        truncateSync(database());
        await refuses('portico.db is empty', 'backup');
    });

    it('refuses a database that is cut', async () => {
        truncateSync(database(), 4_096);
        await refuses('portico.db is damaged', 'backup');
        truncateSync(database(), 700);
        await refuses('portico.db is damaged', 'backup');
    });

    it('refuses a database of another program', async () => {
        rmSync(database());
        const db = new Sqlite(database());
        db.exec('create table other (x int)');
        db.close();
        await refuses('portico.db has no table of a panel', 'backup');
    });

    it('refuses a database with a page of garbage', async () => {
        const db = new Sqlite(database());
        const { rootpage } = db
            .prepare<[], { rootpage: number }>("select rootpage from sqlite_master where name = 'host'")
            .get() as { rootpage: number };
        db.close();
        const bytes = readFileSync(database());
        bytes.fill(0x5a, (rootpage - 1) * 4_096, rootpage * 4_096);
        writeFileSync(database(), bytes);
        await refuses('portico.db is damaged', 'backup');
    });

    it('refuses the keys of another panel, and missing keys', async () => {
        const master = readFileSync(at('keys', 'master'));
        writeFileSync(at('keys', 'master'), Buffer.alloc(master.length, 7));
        await refuses('keys does not hold the keys', 'backup');
        rmSync(at('keys', 'master'));
        await refuses('master is missing', 'backup');
    });

    it('refuses a folder in the place of the head of the audit log', async () => {
        renameSync(at('audit.head'), at('audit.head.away'));
        mkdirSync(at('audit.head'));
        await refuses('audit.head must be a file', 'backup');
    });

    it('names a row that cannot be read and is needed', async () => {
        const db = new Sqlite(database());
        db.exec("update host set site = '{'");
        db.close();
        panel.launch();
        expect(await panel.ended()).to.equal(1);
        expect(panel.output).to.contain('Row 1 of the table host cannot be read').and.contain('backup');
        expect(await served()).to.contain('kept');
    });

    it('does without a token that cannot be read, and says so', async () => {
        const db = new Sqlite(database());
        const { id } = db.prepare<[], { id: number }>('select id from auth_tokens').get() as { id: number };
        db.exec("update auth_tokens set permissions = '['");
        db.close();
        await panel.start();
        const { data } = await (await panel.login()).get('/api/health');
        expect(data.status).to.equal('degraded');
        expect(data.problems).to.have.length(1);
        expect(data.problems[0]).to.contain(`Row ${id} of the table auth_tokens cannot be read`);
        expect((await new Client(panel.port).get('/api/health', { token })).code).to.equal(40101);
    });

    it('finishes a first start that was killed after it had made its keys', async () => {
        const { size } = statSync(database());
        expect(size).to.be.above(0);
        rmSync(database());
        writeFileSync(at('first-start'), '');
        await panel.start();
        expect((await panel.login()).token).to.be.a.string();
        expect(statSync(at('first-start'), { throwIfNoEntry: false })).to.be.undefined();
    });
});
