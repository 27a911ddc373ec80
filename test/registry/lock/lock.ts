import {
    appendFileSync,
    chmodSync,
    copyFileSync,
    existsSync,
    mkdirSync,
    readFileSync,
    renameSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Installed, Registry } from '../../../registry/src/index.ts';
import { packageArchive } from '../../support/registry/archive.ts';
import { outcomesOf } from '../../support/registry/outcomes.ts';
import { pluginCode, pluginPackage, tryRegistry } from '../../support/registry/packages.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

describe('createRegistry: lock', { timeout: 30_000 }, () => {
    let registry: Registry;
    let dataDir: string;
    let reopen: () => Promise<Registry>;
    let remove: () => void;
    let installed: Installed;

    beforeEach(async () => {
        ({ registry, dataDir, reopen, remove } = await tryRegistry('http://127.0.0.1:9/'));
        installed = await registry.install({
            tarball: packageArchive(pluginPackage('hello', '1.0.0'), {
                'index.js': pluginCode('hello'),
                'lib/more.js': ''
            })
        });
        await registry.lock.activate(installed);
    });
    afterEach(() => remove());

    const faultNow = async (own: Registry): Promise<unknown> => {
        const {
            found: [found]
        } = await own.discover([]);
        return found === undefined
            ? 'nothing'
            : 'fault' in found.result
              ? [found.lock?.name, found.result.fault.code]
              : found.result.plugin.manifest.name;
    };

    it('notices every way in which an installed folder can differ from what was installed', async () => {
        const { path } = installed;
        expect(await faultNow(registry)).to.equal('hello');
        const changes: readonly (readonly [() => void, () => void])[] = [
            [
                () => appendFileSync(join(path, 'index.js'), '\n'),
                () => writeFileSync(join(path, 'index.js'), pluginCode('hello'))
            ],
            [() => writeFileSync(join(path, 'added.js'), ''), () => rmSync(join(path, 'added.js'))],
            [
                () => renameSync(join(path, 'lib/more.js'), join(path, 'lib/other.js')),
                () => renameSync(join(path, 'lib/other.js'), join(path, 'lib/more.js'))
            ],
            [() => chmodSync(join(path, 'index.js'), 0o755), () => chmodSync(join(path, 'index.js'), 0o644)],
            [() => symlinkSync('/etc/hostname', join(path, 'link')), () => rmSync(join(path, 'link'))],
            [
                () =>
                    writeFileSync(
                        join(path, 'package.json'),
                        readFileSync(join(path, 'package.json'), 'utf8').replace('"hello"', '"other"')
                    ),
                () =>
                    writeFileSync(join(path, 'package.json'), JSON.stringify(pluginPackage('hello', '1.0.0')))
            ]
        ];
        for (const [change, undo] of changes) {
            change();
            expect(await faultNow(registry)).to.equal(['hello', 'TREE_CHANGED']);
            undo();
            expect(await faultNow(registry)).to.equal('hello');
        }
        const outcomes = await outcomesOf(registry, []);
        expect(outcomes.map(({ name, stage }) => [name, stage])).to.equal([['hello', 'loaded']]);
        rmSync(path, { recursive: true });
        expect(await faultNow(registry)).to.equal(['hello', 'TREE_MISSING']);
        const [gone] = await outcomesOf(registry, []);
        expect(gone).to.include({
            name: 'hello',
            stage: null,
            failure: {
                stage: 'discovered',
                code: 'TREE_MISSING',
                message: 'The folder of @acme/portico-plugin-hello 1.0.0 is gone; install it again'
            }
        });
    });

    it('believes no lock that it has not written, deletes nothing then, and starts anew with the next change', async () => {
        const path = join(dataDir, 'plugins.lock.json');
        const text = readFileSync(path, 'utf8');
        for (const wrong of [
            text.replace('"1.0.0"', '"9.0.0"'),
            text.replace(/hello\/1/, '../../etc/1'),
            text.slice(0, 100),
            '',
            '[]',
            '{}',
            text.replace(/"hmac": "../, '"hmac": "xx')
        ]) {
            writeFileSync(path, wrong);
            const own = await reopen();
            expect([own.lock.trusted, own.lock.current()]).to.equal([false, []]);
            expect((await own.discover([])).skipped.map((each) => each.path)).to.equal([path]);
            expect(await own.collect()).to.equal([]);
            expect(existsSync(installed.path)).to.be.true();
        }
        const own = await reopen();
        await own.lock.activate(installed);
        expect([own.lock.trusted, existsSync(`${path}.untrusted`), await faultNow(await reopen())]).to.equal([
            true,
            true,
            'hello'
        ]);
        // Formatted anew it still counts; in another data folder, under another key, it does not.
        writeFileSync(path, JSON.stringify(JSON.parse(readFileSync(path, 'utf8'))));
        expect((await reopen()).lock.trusted).to.be.true();
        const stranger = await tryRegistry('http://127.0.0.1:9/', { hmacKey: new Uint8Array(32).fill(8) });
        copyFileSync(path, join(stranger.dataDir, 'plugins.lock.json'));
        expect((await stranger.reopen()).lock.trusted).to.be.false();
        stranger.remove();
    });

    it('removes a version only when nothing names it, and supplies the SDK by one link', async () => {
        await expect(registry.remove(installed.folder)).to.reject(/in use/);
        await registry.remove('../../..');
        await registry.remove('hello/nothing');
        expect(existsSync(installed.path)).to.be.true();
        await registry.lock.drop('hello');
        await registry.remove(installed.folder);
        expect(existsSync(join(dataDir, 'plugins/hello'))).to.be.false();
        // Whatever stands in its place is put right at the next start.
        const link = join(dataDir, 'plugins/node_modules/@portico/sdk');
        rmSync(link);
        mkdirSync(link);
        const { sdkFolder } = await reopen();
        expect(JSON.parse(readFileSync(join(link, 'package.json'), 'utf8')).name).to.equal('@portico/sdk');
        expect(JSON.parse(readFileSync(join(sdkFolder, 'package.json'), 'utf8')).name).to.equal(
            '@portico/sdk'
        );
    });

    it('keeps every change when many come at once', async () => {
        await Promise.all(
            Array.from({ length: 20 }, (_, index) =>
                registry.lock.activate({ ...installed, name: `many-${index}` })
            )
        );
        await Promise.all([
            registry.lock.drop('many-3'),
            registry.lock.drop('many-4'),
            registry.lock.drop('nobody')
        ]);
        expect(
            (await reopen()).lock
                .current()
                .map(({ name }) => name)
                .toSorted()
        ).to.equal(
            [
                'hello',
                ...Array.from({ length: 20 }, (_, index) => `many-${index}`).filter(
                    (name) => name !== 'many-3' && name !== 'many-4'
                )
            ].toSorted()
        );
    });
});
