import { execFileSync } from 'node:child_process';
import {
    existsSync,
    linkSync,
    lstatSync,
    mkdirSync,
    readFileSync,
    readlinkSync,
    statfsSync,
    symlinkSync,
    truncateSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { definePlugin, type FailureError, type Files } from '@portico/sdk';

import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;
let folder: string;
let files: Files;

const codeOf = async (work: Promise<unknown>): Promise<number> =>
    ((await work.then(() => null).catch((error: unknown) => error)) as FailureError).code;

beforeEach(async () => {
    rig = await createPluginRig();
    folder = join(rig.root, 'root');
    mkdirSync(join(folder, 'sub'), { recursive: true });
    mkdirSync(join(rig.root, 'forbidden'), { recursive: true });
    writeFileSync(join(folder, 'a.txt'), 'inside');
    writeFileSync(join(rig.root, 'outside.txt'), 'outside');
    await rig.run(
        definePlugin({
            setup(ctx) {
                files = ctx.files(folder);
            }
        }),
        { capabilities: { files: ['*'] } }
    );
});
afterEach(() => rig.close());

describe('Files.link', () => {
    it('makes a symbolic link with just that text, whether its target is there or not', async () => {
        await files.link('sub/to-a', '../a.txt', 'symbolic');
        expect(readlinkSync(join(folder, 'sub/to-a'))).to.equal('../a.txt');
        expect(readFileSync(join(folder, 'sub/to-a'), 'utf8')).to.equal('inside');
        await files.link('later', './sub/none//x', 'symbolic');
        expect(await files.readLink('later')).to.equal('./sub/none//x');
        expect(await codeOf(files.link('later', 'a.txt', 'symbolic'))).to.equal(40900);
        // Still a link, and still not followed.
        expect((await files.stat('sub/to-a')).type).to.equal('link');
        expect(await codeOf(files.open('sub/to-a'))).to.equal(40400);
    });

    it('refuses a target outside of the root, and a place outside of it', async () => {
        for (const target of [
            '/etc/passwd',
            '../outside.txt',
            'sub/../../outside.txt',
            '',
            'a\0b',
            'x'.repeat(5000)
        ]) {
            expect(await codeOf(files.link('new', target, 'symbolic')), target).to.equal(40001);
        }
        expect(await codeOf(files.link('sub/new', '../../outside.txt', 'symbolic'))).to.equal(40001);
        symlinkSync(rig.root, join(folder, 'away'));
        for (const kind of ['symbolic', 'hard'] as const) {
            expect(await codeOf(files.link('away/new', 'a.txt', kind))).to.equal(40400);
            expect(await codeOf(files.link('../new', 'a.txt', kind))).to.equal(40400);
            expect(await codeOf(files.link('', 'a.txt', kind))).to.equal(40400);
        }
        expect(existsSync(join(rig.root, 'new'))).to.be.false();
        expect(existsSync(join(folder, 'new'))).to.be.false();
        await expect(files.link('new', 'a.txt', 'firm' as never)).to.reject(TypeError); // wrong on purpose
    });

    it('gives a file of the root a second name, and nothing else', async () => {
        await files.link('sub/b.txt', 'a.txt', 'hard');
        expect(lstatSync(join(folder, 'sub/b.txt')).ino).to.equal(lstatSync(join(folder, 'a.txt')).ino);
        expect((await files.stat('a.txt')).links).to.equal(2);
        symlinkSync('../outside.txt', join(folder, 'out'));
        symlinkSync(rig.root, join(folder, 'away'));
        for (const target of [
            '../outside.txt',
            'out',
            'away/outside.txt',
            '/etc/passwd',
            'sub',
            'none',
            ''
        ]) {
            expect(await codeOf(files.link('c.txt', target, 'hard')), target).to.equal(40400);
        }
        expect(await codeOf(files.link('sub/b.txt', 'a.txt', 'hard'))).to.equal(40900);
        expect(existsSync(join(folder, 'c.txt'))).to.be.false();
        expect(lstatSync(join(rig.root, 'outside.txt')).nlink).to.equal(1);
    });

    it("never links what no grant opens, such as the panel's own folder", async () => {
        writeFileSync(join(rig.root, 'forbidden/secret'), 'secret');
        let wide!: Files;
        await rig.run(
            definePlugin({
                setup(ctx) {
                    wide = ctx.files(rig.root);
                }
            }),
            { name: 'wide', capabilities: { files: ['*'] } }
        );
        expect(await codeOf(wide.link('stolen', 'forbidden/secret', 'hard'))).to.equal(40400);
        expect(await codeOf(wide.link('forbidden/new', 'outside.txt', 'hard'))).to.equal(40400);
        expect(await codeOf(wide.link('forbidden/new', 'x', 'symbolic'))).to.equal(40400);
        expect(existsSync(join(rig.root, 'stolen'))).to.be.false();
    });
});

describe('Files.space and FileEntry', () => {
    it('tell what the file system has, and what an entry takes of it', async () => {
        const { blocks, bsize } = statfsSync(folder);
        const { total, available } = await files.space();
        expect(total).to.equal(blocks * bsize);
        expect(available).to.be.between(0, total + 1);
        writeFileSync(join(folder, 'holes'), '');
        truncateSync(join(folder, 'holes'), 50 * 1024 * 1024);
        linkSync(join(folder, 'a.txt'), join(folder, 'sub/a2.txt'));
        const entries = new Map((await files.list('')).map((entry) => [entry.name, entry]));
        expect(entries.get('holes')).to.include({ size: 50 * 1024 * 1024, allocated: 0, links: 1 });
        const told = execFileSync('stat', ['-c', '%b %h %d', join(folder, 'a.txt')], { encoding: 'utf8' });
        const [used = '', links = '', device = ''] = told.trim().split(' ');
        expect(entries.get('a.txt')).to.include({
            allocated: Number(used) * 512,
            links: Number(links),
            device
        });
        expect((await files.stat('')).device).to.equal(device);
    });

    it('are refused with the grant', async () => {
        let none!: Files;
        await rig.run(
            definePlugin({
                setup(ctx) {
                    none = ctx.files(folder);
                }
            }),
            { name: 'none' }
        );
        expect(await codeOf(none.space())).to.equal(50305);
        expect(await codeOf(none.link('x', 'a.txt', 'hard'))).to.equal(50305);
        expect(existsSync(join(folder, 'x'))).to.be.false();
    });
});
