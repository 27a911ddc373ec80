import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { pluginCode, pluginPackage, tryRegistry } from '../../support/registry/packages.ts';
import { type NpmRegistry, startNpmRegistry } from '../../support/servers/npm-registry.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

/** Installs in a process of its own and kills it once it has said `phase`; null lets it end. */
async function installKilled(dataDir: string, url: string, phase: string | null): Promise<void> {
    const child = spawn(
        process.execPath,
        [
            ...process.execArgv,
            join(import.meta.dirname, '../../support/registry/install-process.ts'),
            dataDir,
            url,
            '2.0.0',
            phase ?? ''
        ],
        { stdio: ['ignore', 'pipe', 'inherit'] }
    );
    const ended = new Promise<NodeJS.Signals | null>((resolve) =>
        child.once('close', (_code, signal) => resolve(signal))
    );
    for await (const line of createInterface({ input: child.stdout })) {
        if (line === phase) {
            child.kill('SIGKILL');
        }
    }
    expect(await ended).to.equal(phase === null ? null : 'SIGKILL');
}

describe('createRegistry: install, killed', { timeout: 120_000 }, () => {
    let npm: NpmRegistry;

    before(async () => {
        npm = await startNpmRegistry();
        await npm.publish(
            { name: 'left', version: '1.0.0' },
            Object.fromEntries(
                Array.from({ length: 200 }, (_, index) => [`file-${index}.js`, `// ${index}\n`])
            )
        );
        await npm.publish(pluginPackage('killed', '1.0.0'), { 'index.js': pluginCode('old') });
        await npm.publish(pluginPackage('killed', '2.0.0', { dependencies: { left: '1' } }), {
            'index.js': pluginCode('new')
        });
    });
    after(() => npm.stop());

    it('leaves either the old version or the new one, whole, and nothing that could be loaded by halves', async () => {
        const { registry, dataDir, reopen, remove } = await tryRegistry(npm.url);
        try {
            const old = await registry.install({ package: '@acme/portico-plugin-killed', version: '1.0.0' });
            await registry.lock.activate(old);
            for (const phase of [
                'resolve',
                'fetch',
                'verify',
                'unpack',
                'inspect',
                'commit',
                'activate',
                'activated',
                null
            ]) {
                await installKilled(dataDir, npm.url, phase);
                const next = await reopen();
                expect([phase, next.lock.trusted]).to.equal([phase, true]);
                const { found, skipped } = await next.discover([
                    { origin: 'data', path: join(dataDir, 'plugins') }
                ]);
                expect(skipped).to.equal([]);
                const versions = found.map(({ origin, result }) => [
                    origin,
                    'plugin' in result ? result.plugin.version : result.fault.code
                ]);
                const allowed =
                    phase === 'activated' || phase === null
                        ? ['2.0.0']
                        : phase === 'activate'
                          ? ['1.0.0', '2.0.0']
                          : ['1.0.0'];
                expect(versions.length).to.equal(1);
                expect([phase, versions[0]?.[0], allowed.includes(String(versions[0]?.[1]))]).to.equal([
                    phase,
                    'lock',
                    true
                ]);
                const [current] = next.lock.current();
                expect(current === undefined ? 'none' : await next.lock.verify(current)).to.be.null();
                // What the killed one left goes, and only that.
                const kept = [...next.lock.current(), ...next.lock.kept('killed')].map(({ folder }) =>
                    folder.replace('killed/', '')
                );
                await next.collect();
                expect([phase, readdirSync(join(dataDir, 'plugins/killed')).toSorted()]).to.equal([
                    phase,
                    kept.toSorted()
                ]);
                expect(readdirSync(join(dataDir, 'plugins/.staging'))).to.equal([]);
                if (current?.version === '2.0.0' && phase !== null) {
                    await next.lock.activate(old);
                }
            }
        } finally {
            remove();
        }
    });
});
