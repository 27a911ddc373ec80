/** A person with an account on the machine, but none on the panel. */
import { spawnSync } from 'node:child_process';
import {
    chmodSync,
    chownSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    rmSync,
    statSync,
    symlinkSync
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { engineHome } from '../../core/src/engine/files/home.ts';
import { prepareDataDir } from '../../core/src/platform/data-dir/data-dir.ts';
import { Client } from '../support/panel/client.ts';
import { startPanel } from '../support/panel/panel.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const isRoot = process.getuid?.() === 0;
const nobody = 65_534;

describe('a user of the machine', () => {
    let folder = '';

    before(() => {
        folder = mkdtempSync(join(tmpdir(), 'portico-local-'));
        chmodSync(folder, 0o755);
    });
    after(() => rmSync(folder, { recursive: true }));

    it(
        `does not lie in wait with a data folder of their own${isRoot ? '' : ' (skipped: only root can give a folder away)'}`,
        { skip: !isRoot },
        () => {
            for (const mode of [0o777, 0o700]) {
                const data = join(folder, `theirs-${mode}`);
                mkdirSync(data);
                chownSync(data, nobody, nobody);
                chmodSync(data, mode);
                expect(() => prepareDataDir(data)).to.throw(/belongs to another user \(65534\)/);
                expect([statSync(data).mode & 0o777, readdirSync(data)]).to.equal([mode, []]);
            }
        }
    );

    it('does not lead the data folder elsewhere by a link', () => {
        mkdirSync(join(folder, 'elsewhere'), { mode: 0o755 });
        symlinkSync('elsewhere', join(folder, 'link'));
        expect(() => prepareDataDir(join(folder, 'link'))).to.throw(/is not a folder/);
        expect(statSync(join(folder, 'elsewhere')).mode & 0o777).to.equal(0o755);
    });

    it(
        `does not have the engine publish its keys by links in a site's folder of theirs${isRoot ? '' : " (skipped: an engine of the panel's own user reads what the panel does)"}`,
        { skip: !isRoot, timeout: 60_000 },
        async () => {
            const at = await startPanel();
            try {
                const root = join(folder, 'www');
                mkdirSync(root);
                chmodSync(root, 0o777);
                await at.client.post('/api/hosts', {
                    domain: 'tls.test',
                    upstream: '127.0.0.1:9',
                    ssl: true,
                    sslMode: 'internal'
                });
                const { data: host } = await at.client.post('/api/hosts', {
                    domain: 'theirs.test',
                    type: 'static',
                    static: { root, browse: true }
                });
                await at.client.get(`/api/hosts/${Number(host.id) - 1}/check`);
                const { persistent, runtime, storage } = engineHome(at.config.dataDir, null);
                expect(existsSync(join(storage, 'certificates/local/tls.test/tls.test.key'))).to.be.true();
                const asThey = (...command: readonly string[]): string =>
                    spawnSync(
                        '/usr/bin/setpriv',
                        [`--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', ...command],
                        { encoding: 'utf8' }
                    ).stdout;
                const guesses = {
                    storage: join(persistent, 'storage'),
                    certificates: join(runtime, 'certificates'),
                    log: join(persistent, 'log'),
                    persistent,
                    runtime,
                    above: '/var/lib/portico',
                    folder: '/proc/self/cwd',
                    environment: '/proc/self/environ',
                    start: join(runtime, 'start.json'),
                    // Files that the engine has open: its logs name its folders.
                    ...Object.fromEntries(
                        Array.from({ length: 40 }, (_, fd) => [`fd${fd}`, `/proc/self/fd/${fd}`])
                    )
                };
                for (const [name, target] of Object.entries(guesses)) {
                    asThey('/bin/ln', '-s', target, join(root, name));
                }
                for (const path of [
                    'storage/certificates/local/tls.test/tls.test.key',
                    ...Object.keys(guesses).flatMap((name) => [
                        name,
                        `${name}/`,
                        `${name}/certificates/local/tls.test/tls.test.key`,
                        `${name}/storage/`
                    ])
                ]) {
                    const { text } = await new Client(at.httpPort).get(`/${path}`, {
                        headers: { host: 'theirs.test' }
                    });
                    expect(
                        text.includes('PRIVATE KEY') || text.includes('storage-') || text.includes('acme'),
                        `${path}: ${text.slice(0, 200)}`
                    ).to.be.false();
                }
                const secret = storage.split('/').at(-1) as string;
                expect(
                    asThey(
                        '/bin/sh',
                        '-c',
                        'cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ /proc/net/unix /proc/mounts 2>/dev/null'
                    )
                ).to.not.contain(secret);
            } finally {
                await at.close();
            }
        }
    );

    it("has no site of a folder that another user may write, where the engine runs as the panel's user", async () => {
        const at = await startPanel({ environment: { PORTICO_ENGINE_USER: userInfo().username } });
        try {
            const root = join(folder, 'shared');
            mkdirSync(root, { mode: 0o755 });
            const site = { type: 'static', static: { root } };
            const { data: host } = await at.client.post('/api/hosts', { domain: 'ours.test', ...site });
            expect(host.type).to.equal('static');
            chmodSync(root, 0o777);
            const refused = [
                await at.client.post('/api/hosts', { domain: 'theirs.test', ...site }),
                await at.client.post('/api/hosts', {
                    domain: 'theirs.test',
                    type: 'php',
                    php: { root, fastcgi: '127.0.0.1:9000' }
                }),
                await at.client.put(`/api/hosts/${host.id}`, {
                    notes: 'the rule holds for what is there, too'
                })
            ];
            for (const { code, text } of refused) {
                expect(code).to.equal(40001);
                expect(text).to.contain(`is not safe here: ${root}: others may write to it`);
            }
        } finally {
            await at.close();
        }
    });
});
