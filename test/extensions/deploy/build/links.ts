import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { Inventory } from '../../../../extensions/deploy/src/build/links.ts';
import { TarBroken, TarReader } from '../../../../extensions/deploy/src/build/tar.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let folder: string;

/** What GNU tar packs of the folder, read in chunks of some bytes. */
function inventoryOf(bytes: number, ...options: readonly string[]): Inventory {
    const tar = execFileSync('tar', ['-C', folder, '-cf', '-', ...options, '.'], { maxBuffer: 2 ** 26 });
    const inventory = new Inventory();
    const reader = new TarReader((entry) => inventory.add(entry));
    for (let at = 0; at < tar.length; at += bytes) {
        reader.add(tar.subarray(at, at + bytes));
    }
    reader.end();
    return inventory;
}

beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'portico-links-'));
    mkdirSync(join(folder, 'a/b'), { recursive: true });
    writeFileSync(join(folder, 'a/b/file'), 'x'.repeat(1_000));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('Inventory', () => {
    it('takes links that stay, in every format and whatever the chunks', () => {
        symlinkSync('b/file', join(folder, 'a/inner'));
        symlinkSync('../a/b', join(folder, 'a/up'));
        const long = 'n'.repeat(120);
        writeFileSync(join(folder, long), 'long');
        symlinkSync(long, join(folder, 'l'.repeat(130)));
        for (const format of ['gnu', 'posix']) {
            for (const bytes of [7, 512, 100_000]) {
                const inventory = inventoryOf(bytes, `--format=${format}`);
                expect([inventory.outside(), inventory.files, inventory.bytes]).to.equal([null, 5, 1_004]);
                expect(inventory.isLink('l'.repeat(130))).to.be.true();
            }
        }
    });

    it('names a link that leads out: absolute, by climbing, and by way of another link', () => {
        symlinkSync('/etc/passwd', join(folder, 'absolute'));
        expect(inventoryOf(512).outside()).to.equal('absolute');
        rmSync(join(folder, 'absolute'));
        symlinkSync('../../../etc', join(folder, 'a/climbs'));
        expect(inventoryOf(512).outside()).to.equal('a/climbs');
        rmSync(join(folder, 'a/climbs'));
        // By its words `a/b/by/../..` is `a`; by what the kernel does it is the folder above the release.
        symlinkSync('../../top', join(folder, 'a/b/by'));
        mkdirSync(join(folder, 'top'));
        symlinkSync('by/../..', join(folder, 'a/b/out'));
        expect(inventoryOf(512).outside()).to.equal('a/b/out');
    });

    it('names a loop, a pipe and a device', () => {
        symlinkSync('two', join(folder, 'one'));
        symlinkSync('one', join(folder, 'two'));
        expect(['one', 'two']).to.include(inventoryOf(512).outside() ?? '');
        rmSync(join(folder, 'one'));
        rmSync(join(folder, 'two'));
        execFileSync('mkfifo', [join(folder, 'pipe')]);
        expect(inventoryOf(512).outside()).to.equal('./pipe');
    });
});

describe('TarReader', () => {
    it('refuses what is no archive, and one that was cut', () => {
        const add = (bytes: Buffer): void => new TarReader(() => undefined).add(bytes);
        expect(() => add(Buffer.alloc(512, 'x'))).to.throw(TarBroken);
        const tar = execFileSync('tar', ['-C', folder, '-cf', '-', '.']);
        const reader = new TarReader(() => undefined);
        reader.add(tar.subarray(0, 1_024));
        expect(() => reader.end()).to.throw(TarBroken);
    });
});
