import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { foreignWriter } from '../../../registry/src/discover/writable.ts';
import { discover } from '../../../registry/src/index.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let root: string;

const write = (folder: string, packageJson: unknown): string => {
    mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(
        join(root, folder, 'package.json'),
        typeof packageJson === 'string' ? packageJson : JSON.stringify(packageJson)
    );
    return join(root, folder);
};
const plugin = (name: string, more: object = {}): object => ({
    name: `@acme/${name}`,
    version: '1.0.0',
    portico: { name, sdk: '^1.0.0' },
    ...more
});

describe('discover', () => {
    beforeEach(() => {
        root = mkdtempSync(join(tmpdir(), 'portico-discover-'));
    });
    afterEach(() => rmSync(root, { recursive: true, force: true }));

    it('finds good and broken packages, and runs no code of either', async () => {
        write('own/hello', plugin('hello'));
        write('own/@acme/scoped', plugin('scoped'));
        write('own/broken', '{"name":');
        write('own/bare', { name: 'bare', version: '1.0.0' });
        mkdirSync(join(root, 'own/no-package'));
        writeFileSync(join(root, 'own/hello/index.js'), 'throw new Error("ran")');
        const { found, skipped } = await discover(
            [
                { origin: 'folder', path: join(root, 'own') },
                { origin: 'data', path: join(root, 'nowhere') }
            ],
            new Set()
        );
        expect(
            found.map(({ folder, result }) => [
                basename(folder),
                'plugin' in result ? result.plugin.manifest.name : result.fault.code
            ])
        ).to.equal([
            ['scoped', 'scoped'],
            ['bare', 'MANIFEST_MISSING'],
            ['broken', 'PACKAGE_INVALID'],
            ['hello', 'hello']
        ]);
        expect(skipped).to.equal([]);
    });

    it('finds a workspace once, and of node_modules only what calls itself a plugin', async () => {
        const hello = write('extensions/hello', plugin('hello', { keywords: ['portico-plugin'] }));
        write('node_modules/left-pad', { name: 'left-pad', version: '1.0.0' });
        write('node_modules/other', plugin('other', { keywords: ['portico-plugin'] }));
        symlinkSync(hello, join(root, 'node_modules/hello'));
        const { found } = await discover(
            [
                { origin: 'folder', path: join(root, 'extensions') },
                { origin: 'node_modules', path: join(root, 'node_modules') }
            ],
            new Set()
        );
        expect(found.map(({ origin, folder }) => [origin, basename(folder)])).to.equal([
            ['folder', 'hello'],
            ['node_modules', 'other']
        ]);
    });

    it('passes over a folder that others may write to, and says so', async () => {
        write('open/hello', plugin('hello'));
        chmodSync(join(root, 'open'), 0o777);
        const { found, skipped } = await discover(
            [{ origin: 'folder', path: join(root, 'open') }],
            new Set()
        );
        expect([found, skipped]).to.equal([
            [],
            [{ path: join(root, 'open'), reason: 'others may write to it' }]
        ]);
    });

    it('passes over a package that others may write to, also where a link leads to it', async () => {
        write('own/sound', plugin('sound'));
        chmodSync(write('own/open', plugin('open')), 0o757);
        chmodSync(write('elsewhere/linked', plugin('linked')), 0o777);
        symlinkSync(join(root, 'elsewhere/linked'), join(root, 'own/linked'));
        const { found, skipped } = await discover([{ origin: 'folder', path: join(root, 'own') }], new Set());
        expect(found.map(({ folder }) => basename(folder))).to.equal(['sound']);
        expect(skipped).to.equal(
            ['linked', 'open'].map((name) => ({
                path: join(root, 'own', name),
                reason: 'others may write to it'
            }))
        );
    });
});

describe('foreignWriter', () => {
    const self = process.getuid?.() ?? 0;

    beforeEach(() => {
        root = mkdtempSync(join(tmpdir(), 'portico-discover-'));
    });
    afterEach(() => rmSync(root, { recursive: true, force: true }));

    it("lets the group of the panel's own account write, and no group with another account in it", async () => {
        const folder = write('own', plugin('own'));
        chmodSync(folder, 0o775);
        const files = { group: join(root, 'group'), passwd: join(root, 'passwd') };
        const reason = async (group: string, passwd: string): Promise<string | null> => {
            writeFileSync(files.group, group);
            writeFileSync(files.passwd, passwd);
            return foreignWriter(folder, files);
        };
        const { gid } = statSync(folder);
        const own = `me:x:${self}:${gid}::/:/bin/sh\n`;
        const refused = 'its group may write to it';
        expect(await reason(`me:x:${gid}:\n`, own)).to.be.null();
        expect(await reason(`me:x:${gid}:me\n`, own)).to.be.null();
        expect(await reason(`me:x:${gid}:me,eve\n`, own)).to.equal(refused);
        expect(await reason(`me:x:${gid}:\n`, `${own}eve:x:4711:${gid}::/:/bin/sh\n`)).to.equal(refused);
        expect(await reason('', own)).to.equal(refused); // the accounts in that group are written down elsewhere
        chmodSync(folder, 0o755);
        expect(await reason(`me:x:${gid}:eve\n`, own)).to.be.null();
    });
});
