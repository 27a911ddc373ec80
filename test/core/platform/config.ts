import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readConfig } from '../../../core/src/platform/config.ts';
import { lockDataDir, prepareDataDir } from '../../../core/src/platform/data-dir/data-dir.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('readConfig', () => {
    it('has the documented defaults', () => {
        expect(readConfig({}, '/srv')).to.include({
            host: '0.0.0.0',
            port: 39921,
            dataDir: '/srv/data',
            caddy: 'caddy',
            adminPassword: null,
            safeMode: false,
            logLevel: 'info'
        });
    });

    it('names the variable, its value and what is expected', () => {
        for (const [name, value] of [
            ['PORTICO_PORT', '70000'],
            ['PORTICO_PORT', '80x'],
            ['PORTICO_ENGINE_HTTP_PORT', '0'],
            ['PORTICO_LOG_LEVEL', 'loud'],
            ['PORTICO_SAFE_MODE', 'yes'],
            ['PORTICO_SERVICES', 'systemd']
        ] as const) {
            expect(() => readConfig({ [name]: value }, '/srv')).to.throw(
                Error,
                new RegExp(`^${name} is "${value}", but must be `)
            );
        }
    });
});

describe('lockDataDir', () => {
    it(
        'lets one process write, and lets go with the process however it ends',
        { timeout: 20_000 },
        async () => {
            const folder = mkdtempSync(join(tmpdir(), 'portico-lock-'));
            prepareDataDir(folder);
            expect(statSync(folder).mode & 0o777).to.equal(0o700);
            const source = `import { lockDataDir } from ${JSON.stringify(new URL('../../../core/src/platform/data-dir/data-dir.ts', import.meta.url).href)};
            globalThis.lock = lockDataDir(${JSON.stringify(folder)}); process.stdout.write(globalThis.lock === null ? 'no' : 'yes'); setInterval(() => undefined, 1000);`;
            const other = spawn(
                process.execPath,
                ['--conditions=portico-source', '--input-type=module', '--eval', source],
                { stdio: ['ignore', 'pipe', 'inherit'] }
            );
            try {
                expect(String((await once(other.stdout, 'data'))[0])).to.equal('yes');
                expect(lockDataDir(folder)).to.be.null();
                for (const name of readdirSync(folder)) {
                    rmSync(join(folder, name), { recursive: true });
                }
                expect(lockDataDir(folder)).to.be.null();
            } finally {
                other.kill('SIGKILL');
                await once(other, 'exit');
            }
            const lock = lockDataDir(folder);
            expect(lock).to.not.be.null();
            expect(lockDataDir(folder)).to.be.null();
            lock?.release();
            rmSync(folder, { recursive: true });
        }
    );
});
