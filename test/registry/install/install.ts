import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Installed, Registry } from '../../../registry/src/index.ts';
import { packageArchive } from '../../support/registry/archive.ts';
import { pluginCode, pluginPackage, refusal, tryRegistry } from '../../support/registry/packages.ts';
import { type NpmRegistry, startNpmRegistry } from '../../support/servers/npm-registry.ts';

export const lab = Lab.script();
const { after, afterEach, before, beforeEach, describe, it } = lab;

describe('createRegistry: install', { timeout: 60_000 }, () => {
    let npm: NpmRegistry;
    let registry: Registry;
    let dataDir: string;
    let reopen: () => Promise<Registry>;
    let remove: () => void;

    before(async () => {
        npm = await startNpmRegistry();
        await npm.publish(
            {
                name: 'left',
                version: '1.2.0',
                type: 'module',
                exports: './index.js',
                dependencies: { right: '^2.0.0' }
            },
            { 'index.js': `export { default } from 'right';\n` }
        );
        await npm.publish(
            { name: 'right', version: '2.3.0' },
            { 'index.js': `module.exports = 'right 2.3';\n` }
        );
        await npm.publish({ name: 'elsewhere', version: '1.0.0', os: ['aix'] }, {});
        await npm.publish(pluginPackage('hello', '1.0.0'), { 'index.js': pluginCode('hello 1') });
        await npm.publish(
            pluginPackage('hello', '1.1.0', {
                dependencies: { left: '^1.0.0' },
                optionalDependencies: { elsewhere: '^1.0.0' },
                devDependencies: { nowhere: '^9.0.0' }
            }),
            { 'index.js': pluginCode('hello 1.1', `import right from 'left';\n`) }
        );
        await npm.publish(pluginPackage('hello', '2.0.0', { portico: { name: 'hello', sdk: '^2.0.0' } }), {
            'index.js': pluginCode('hello 2')
        });
        await npm.publish(pluginPackage('hello', '3.0.0', { engines: { node: '>=99' } }), {
            'index.js': pluginCode('hello 3')
        });
    });
    after(() => npm.stop());
    beforeEach(async () => {
        ({ registry, dataDir, reopen, remove } = await tryRegistry(npm.url));
    });
    afterEach(() => {
        npm.intercept = null;
        remove();
    });

    const contractOf = async (installed: Installed): Promise<unknown> => {
        const loaded = await registry.load(await registry.locate(installed));
        const contract =
            'definition' in loaded
                ? (loaded.definition.setup({} as never) as { say(): Promise<string> }) // it uses no context
                : loaded.failure;
        return 'say' in contract ? contract.say() : contract;
    };

    it('takes the newest version that works with this panel, with what it depends on, and runs no script of any', async () => {
        const canary = join(dataDir, 'canary');
        const touch = `node -e "require('fs').writeFileSync('${canary}', '')"`;
        const scripts = { preinstall: touch, install: touch, postinstall: touch, prepare: touch };
        await npm.publish(
            { name: 'noisy', version: '1.0.0', scripts, gypfile: true, bin: { noisy: 'index.js' } },
            { 'index.js': '', 'binding.gyp': '{}' }
        );
        await npm.publish(pluginPackage('scripted', '1.0.0', { scripts, dependencies: { noisy: '*' } }), {
            'index.js': pluginCode('scripted'),
            'binding.gyp': '{}'
        });
        const phases: string[] = [];
        const installed = await registry.install(
            { package: '@acme/portico-plugin-hello' },
            { onPhase: (phase) => phases.push(phase) }
        );
        expect(phases).to.equal(['resolve', 'fetch', 'verify', 'unpack', 'inspect', 'commit']);
        expect(installed).to.include({
            name: 'hello',
            version: '1.1.0',
            package: '@acme/portico-plugin-hello',
            signature: 'unsigned',
            provenance: null
        });
        expect(installed.folder).to.match(/^hello\/1\.1\.0-[0-9a-f]{8}-1$/);
        expect(installed.dependencies.map((each) => `${each.package} ${each.version}`).toSorted()).to.equal([
            'left 1.2.0',
            'right 2.3.0'
        ]);
        expect(await contractOf(installed)).to.equal('hello 1.1');
        await registry.install({ package: '@acme/portico-plugin-scripted' });
        expect(existsSync(canary)).to.be.false();
        expect(readdirSync(join(dataDir, 'plugins/.staging'))).to.equal([]);
    });

    it('takes the version, range or tag that it is told, and says why it does not fit', async () => {
        expect(
            (await registry.install({ package: '@acme/portico-plugin-hello', version: '1.0.0' })).version
        ).to.equal('1.0.0');
        expect(
            (await registry.install({ package: '@acme/portico-plugin-hello', version: '~1.0' })).version
        ).to.equal('1.0.0');
        expect(await refusal(registry, { package: '@acme/portico-plugin-hello', version: '2.0.0' })).to.equal(
            ['SDK_RANGE', 'hello 2.0.0 works with @portico/sdk ^2.0.0, but this panel has 1.0.0']
        );
        expect(
            (await refusal(registry, { package: '@acme/portico-plugin-hello', version: 'latest' }))[0]
        ).to.equal('NODE_RANGE');
        expect(
            (await refusal(registry, { package: '@acme/portico-plugin-hello', version: '7.0.0' }))[0]
        ).to.equal('PACKAGE_NOT_FOUND');
        expect((await refusal(registry, { package: '@acme/nobody' }))[0]).to.equal('PACKAGE_NOT_FOUND');
        expect(await refusal(registry, { package: 'left' })).to.equal([
            'MANIFEST_MISSING',
            'left has no "portico" field in its package.json'
        ]);
    });

    it('takes nothing but names and versions of the registry', async () => {
        for (const name of [
            '../evil',
            './left',
            '/etc',
            'left@1.0.0',
            'npm:left',
            'git+ssh://git@127.0.0.1/x.git',
            'acme/left',
            'http://127.0.0.1/x.tgz',
            'file:left',
            '',
            '-left',
            'a b',
            '@acme'
        ]) {
            expect([name, (await refusal(registry, { package: name }))[0]]).to.equal([name, 'SPEC_REFUSED']);
        }
        for (const version of [
            'file:../x',
            'npm:left@1',
            'git+https://127.0.0.1/x',
            'http://127.0.0.1/x.tgz',
            'acme/left',
            '../x'
        ]) {
            expect([version, (await refusal(registry, { package: 'left', version }))[0]]).to.equal([
                version,
                'SPEC_REFUSED'
            ]);
        }
        const specs = [
            'git+https://127.0.0.1:9/x.git',
            'http://127.0.0.1:9/x.tgz',
            'file:../x',
            'npm:left@1.2.0',
            'acme/left',
            'workspace:*'
        ];
        for (const [index, spec] of specs.entries()) {
            const field = index % 2 === 0 ? 'dependencies' : 'optionalDependencies';
            expect([
                spec,
                (
                    await refusal(registry, {
                        tarball: packageArchive(
                            pluginPackage('odd', '1.0.0', { [field]: { other: spec } }),
                            {}
                        )
                    })
                )[0]
            ]).to.equal([spec, 'DEPENDENCY_REFUSED']);
            // The same, one step further away.
            await npm.publish({ name: `odd-${index}`, version: '1.0.0', [field]: { other: spec } });
            expect([
                spec,
                field,
                (
                    await refusal(registry, {
                        tarball: packageArchive(
                            pluginPackage('odd', '1.0.0', { dependencies: { [`odd-${index}`]: '1.0.0' } }),
                            {}
                        )
                    })
                )[0]
            ]).to.equal([spec, field, 'DEPENDENCY_REFUSED']);
        }
        expect(readdirSync(join(dataDir, 'plugins')).toSorted()).to.equal(['.staging', 'node_modules']);
    });

    it('takes no copy of what the panel supplies, however deep it lies', async () => {
        await npm.publish({ name: '@portico/sdk', version: '1.0.0' });
        await npm.publish({ name: 'wrapper', version: '1.0.0', dependencies: { '@portico/sdk': '^1.0.0' } });
        await npm.publish(pluginPackage('copied', '1.0.0', { dependencies: { wrapper: '^1.0.0' } }), {
            'index.js': pluginCode('copied')
        });
        await npm.publish(pluginPackage('bundled', '1.0.0'), {
            'index.js': `const definePlugin = (x) => ({ '~portico': 'plugin', ...x });\nexport default definePlugin({ setup() {} });\n`
        });
        await npm.publish(
            { name: 'nester', version: '1.0.0', bundleDependencies: ['inner'], dependencies: { inner: '1' } },
            { 'node_modules/inner/package.json': '{"name":"inner","version":"1.0.0"}' }
        );
        await npm.publish(pluginPackage('nested', '1.0.0', { dependencies: { nester: '^1.0.0' } }), {
            'index.js': pluginCode('nested')
        });
        await npm.publish(pluginPackage('stowaway', '1.0.0'), {
            'index.js': pluginCode('x'),
            'node_modules/@portico/sdk/package.json': '{}'
        });
        expect(await refusal(registry, { package: '@acme/portico-plugin-copied' })).to.equal([
            'DEPENDENCY_REFUSED',
            'wrapper 1.0.0 depends on @portico/sdk, which the panel supplies: make it a peer dependency (SDK_BUNDLED)'
        ]);
        expect((await refusal(registry, { package: '@acme/portico-plugin-bundled' }))[0]).to.equal(
            'SDK_BUNDLED'
        );
        expect((await refusal(registry, { package: '@acme/portico-plugin-nested' }))[0]).to.match(
            /^(DEPENDENCY|PACKAGE_NOT)/
        );
        expect((await refusal(registry, { package: '@acme/portico-plugin-stowaway' }))[0]).to.equal(
            'ARCHIVE_REFUSED'
        );
    });

    it('takes an uploaded archive, with what it depends on from the registry', async () => {
        const packageJson = pluginPackage('upload', '1.0.0', { dependencies: { left: '^1.0.0' } });
        const installed = await registry.install({
            tarball: packageArchive(packageJson, { 'index.js': pluginCode('uploaded', `import 'left';\n`) })
        });
        expect(installed).to.include({ name: 'upload', version: '1.0.0', signature: 'uploaded' });
        expect(installed.dependencies.map((each) => each.package).toSorted()).to.equal(['left', 'right']);
        expect(await contractOf(installed)).to.equal('uploaded');
        // Without dependencies it needs no registry at all.
        npm.asked.length = 0;
        await registry.install({
            tarball: packageArchive(pluginPackage('alone', '1.0.0'), { 'index.js': pluginCode('alone') })
        });
        expect(npm.asked).to.equal([]);
        expect(
            (
                await refusal(registry, {
                    tarball: packageArchive(pluginPackage('alone', '1.0.0'), {}),
                    integrity: installed.integrity
                })
            )[0]
        ).to.equal('INTEGRITY_MISMATCH');
        expect((await refusal(registry, { tarball: Buffer.from('no archive') }))[0]).to.equal(
            'ARCHIVE_REFUSED'
        );
        expect((await refusal(registry, { tarball: packageArchive({ name: 'x' }, {}) }))[0]).to.equal(
            'ARCHIVE_REFUSED'
        );
    });

    it('gives a repaired package at the same version a folder of its own, and activates what the lock is told', async () => {
        const first = await registry.install({
            tarball: packageArchive(pluginPackage('again', '1.0.0'), {
                'index.js': `throw new Error('broken');\n`
            })
        });
        expect(await contractOf(first)).to.include({ code: 'IMPORT_FAILED' });
        const second = await registry.install({
            tarball: packageArchive(pluginPackage('again', '1.0.0'), { 'index.js': pluginCode('repaired') })
        });
        const third = await registry.install({
            tarball: packageArchive(pluginPackage('again', '1.0.0'), { 'index.js': pluginCode('repaired') })
        });
        expect(await contractOf(second)).to.equal('repaired');
        expect(new Set([first, second, third].map(({ folder }) => folder)).size).to.equal(3);
        expect(third.integrity).to.equal(second.integrity);
        expect(registry.lock.current()).to.equal([]); // an install alone changes nothing
        await registry.lock.activate(first);
        await registry.lock.activate(second);
        await registry.lock.activate(third);
        expect([
            registry.lock.current().map(({ folder }) => folder),
            registry.lock.kept('again').map(({ folder }) => folder)
        ]).to.equal([[third.folder], [second.folder]]);
        const next = await reopen();
        expect(
            (await next.discover([])).found.map(({ folder, origin, lock, result }) => [
                folder,
                origin,
                lock?.version,
                'plugin' in result
            ])
        ).to.equal([[third.path, 'lock', '1.0.0', true]]);
        expect(await next.collect()).to.equal([first.folder]);
        await next.lock.drop('again');
        expect((await next.collect()).toSorted()).to.equal([second.folder, third.folder].toSorted());
        expect(readdirSync(join(dataDir, 'plugins')).toSorted()).to.equal(['.staging', 'node_modules']);
        const fourth = await next.install({
            tarball: packageArchive(pluginPackage('again', '1.0.0'), { 'index.js': pluginCode('repaired') })
        });
        expect(fourth.folder).to.match(/-4$/); // a number is never used again
    });

    it('keeps the token of the registry out of everything that it leaves behind', async () => {
        const {
            registry: own,
            dataDir: folder,
            remove: end
        } = await tryRegistry(npm.url, { registryToken: 'token-of-this-test' });
        try {
            let authorization: string | undefined;
            npm.intercept = (request) => {
                authorization = request.headers.authorization ?? authorization;
                return false;
            };
            const { path } = await own.install({ package: '@acme/portico-plugin-hello' });
            expect(authorization).to.equal('Bearer token-of-this-test');
            const files = readdirSync(folder, { recursive: true, withFileTypes: true })
                .filter((each) => each.isFile())
                .map((each) => join(each.parentPath, each.name));
            expect(files.filter((each) => readFileSync(each).includes('token-of-this-test'))).to.equal([]);
            expect(files.some((each) => each.startsWith(path))).to.be.true();
        } finally {
            end();
        }
    });
});
