import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { oldNode, panelFolder, portico, removeFolder, startPanel } from '../../support/panel/console.ts';
import { freePort } from '../../support/ports.ts';
import { itUnless } from '../../support/skip.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const old = oldNode();

describe('portico start', () => {
    let folder: string;

    beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), 'portico-start-'));
    });

    afterEach(() => removeFolder(folder));

    itUnless(old === null ? 'there is no older Node on the PATH' : undefined, it)(
        'runs the panel from an older Node, hands it the signal, and exits with its code',
        async () => {
            const dataDir = await panelFolder();
            const panel = await startPanel(dataDir, { node: old ?? '' });
            expect(
                (await portico(['audit', 'verify', '--data-dir', dataDir], { node: old ?? '' })).code
            ).to.equal(0);
            await panel.stop();
            expect(panel.child.exitCode).to.equal(0);
            expect(existsSync(join(dataDir, 'panel.json'))).to.be.false();
            removeFolder(dataDir);
        }
    );

    it('says that the port is taken, and ends', async () => {
        const [port, http, https] = [await freePort(), await freePort(), await freePort()];
        const server = createServer();
        await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
        const { code, stderr } = await portico(['start', '--stop-engine', '--data-dir', folder], {
            env: {
                PORTICO_HOST: '127.0.0.1',
                PORTICO_PORT: String(port),
                PORTICO_ENGINE_HTTP_PORT: String(http),
                PORTICO_ENGINE_HTTPS_PORT: String(https),
                PORTICO_ADMIN_PASSWORD: 'a long first password'
            }
        });
        await new Promise((done) => server.close(done));
        expect({ code, stderr }).to.equal({
            code: 1,
            stderr: `portico: Another program listens on 127.0.0.1:${port}: end it, or set PORTICO_PORT\n`
        });
    });

    it('does not close a folder to others that belongs to another account', async () => {
        const other = join(folder, 'other');
        mkdirSync(other);
        chmodSync(other, 0o755);
        writeFileSync(join(other, 'theirs'), '');
        const { code, stderr } = await portico(['start', '--data-dir', other]);
        expect(code).to.equal(1);
        expect(stderr).to.include('has other files in it');
        expect(statSync(other).mode & 0o777).to.equal(0o755);
        expect(readdirSync(other)).to.equal(['theirs']);
    });

    it('refuses a second panel on one folder, and leaves the first alone', async () => {
        const dataDir = await panelFolder();
        const panel = await startPanel(dataDir);
        const { code, stderr } = await portico(['start', '--data-dir', dataDir]);
        expect(code).to.equal(1);
        expect(stderr).to.include('is in use by another panel');
        expect(await portico(['admin', 'create', 'anna', '--data-dir', dataDir])).to.include({ code: 0 });
        await panel.stop();
        removeFolder(dataDir);
    });
});
