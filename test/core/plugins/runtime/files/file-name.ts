import {
    existsSync,
    linkSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    renameSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Manifest } from '@portico/registry';
import { type Context, definePlugin, type FailureError, type Files } from '@portico/sdk';

import { bytesOf, nameOf } from '../../../../../core/src/plugins/runtime/files/file-name.ts';
import filemanager from '../../../../../extensions/filemanager/src/index.ts';
import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;
let folder: string;
let files: Files;

const raw = (...parts: (string | number)[]): Buffer =>
    Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part))));
const below = (name: Buffer): Buffer => Buffer.concat([Buffer.from(`${folder}/`), name]);
const codeOf = (work: Promise<unknown>): Promise<number> =>
    work.then(
        () => 0,
        (error: FailureError) => error.code
    );

beforeEach(async () => {
    rig = await createPluginRig();
    folder = join(rig.root, 'root');
    mkdirSync(folder);
    let found!: Context;
    await rig.run(
        definePlugin({
            setup(ctx) {
                found = ctx;
            }
        }),
        { capabilities: { files: [folder] } }
    );
    files = found.files(folder);
});
afterEach(() => rig.close());

describe('nameOf and bytesOf', () => {
    it('give back every name as it was, and one text only for each', () => {
        const names = [
            raw('plain'),
            raw('é ☃ 😀'),
            raw('caf', 0xe9),
            raw(0xff),
            raw(0xc3),
            raw(0xe2, 0x98),
            raw(0xf0, 0x9f, 0x98),
            raw(0xed, 0xa0, 0x80),
            raw(0xc0, 0xaf),
            raw(0xf5, 0x80, 0x80, 0x80),
            raw('\uef80'),
            raw('a\uefffb', 0xff),
            raw('\ufffd'),
            raw('\ufeffbom')
        ];
        const texts = names.map(nameOf);
        expect(new Set(texts).size).to.equal(names.length);
        expect(texts.map((text) => bytesOf(text)?.toString('hex'))).to.equal(
            names.map((name) => name.toString('hex'))
        );
        expect(
            texts.every(
                (text) => text.isWellFormed() && decodeURIComponent(encodeURIComponent(text)) === text
            )
        ).to.be.true();
        for (let tries = 0; tries < 20_000; tries += 1) {
            const name = Buffer.from(
                Array.from({ length: 1 + (tries % 7) }, () => Math.floor(Math.random() * 256))
            );
            expect(bytesOf(nameOf(name))?.equals(name)).to.be.true();
        }
    });

    it('know no text that would be another name in disguise', () => {
        for (const text of [
            '\uefc3\uefa9',
            'x\ud800',
            '\udcff',
            '\uefee\uefbe\uef85'.replace('\uef85', '\uef85\uef80').slice(0, 2) + '\u0085'
        ]) {
            const bytes = bytesOf(text);
            expect(bytes === null || nameOf(bytes) === text).to.be.true();
        }
        expect(bytesOf('\uefc3\uefa9')).to.be.null();
        expect(bytesOf('x\ud800')).to.be.null();
    });
});

describe('ctx.files with names that are no UTF-8', () => {
    const odd = raw('caf', 0xe9, '.txt');

    it('lists, reads, writes, moves and removes them', async () => {
        writeFileSync(below(odd), 'coffee');
        mkdirSync(below(raw('dir', 0xff)));
        writeFileSync(Buffer.concat([below(raw('dir', 0xff)), raw('/', 0xfe)]), 'deep');
        symlinkSync(raw('to', 0xfd), below(raw('link')));
        const names = (await files.list('')).map(({ name, type }) => [name, type]).sort();
        expect(names).to.equal([
            ['caf\uefe9.txt', 'file'],
            ['dir\uefff', 'folder'],
            ['link', 'link']
        ]);
        expect(await files.readLink('link')).to.equal('to\ueffd');
        const handle = await files.open('caf\uefe9.txt');
        expect(await handle.readFile('utf8')).to.equal('coffee');
        await handle.close();
        expect((await files.stat('dir\uefff/\ueffe')).size).to.equal(4);
        await files.move('caf\uefe9.txt', 'dir\uefff/moved\uef80');
        expect(existsSync(Buffer.concat([below(raw('dir', 0xff)), raw('/moved', 0x80)]))).to.be.true();
        const made = await files.open('new\uefc0', 'wx');
        await made.close();
        expect(
            readdirSync(folder, { encoding: 'buffer' }).some((name) => name.equals(raw('new', 0xc0)))
        ).to.be.true();
        await files.remove('dir\uefff', { recursive: true });
        await files.remove('new\uefc0');
        expect(readdirSync(folder)).to.equal(['link']);
    });

    it('refuses a text that stands for another name, and a name that is too long in bytes', async () => {
        writeFileSync(join(folder, 'é'), 'kept');
        expect(await codeOf(files.open('\uefc3\uefa9'))).to.equal(40400);
        expect(await codeOf(files.remove('\uefc3\uefa9'))).to.equal(40400);
        expect(await codeOf(files.open('é'.repeat(128), 'w'))).to.equal(40400);
        expect(await codeOf(files.open('\uefff'.repeat(255), 'w'))).to.equal(0);
        expect(await codeOf(files.open('\uefff'.repeat(256), 'w'))).to.equal(40400);
        expect(readFileSync(join(folder, 'é'), 'utf8')).to.equal('kept');
    });

    it('can be seen and deleted in the file manager', async () => {
        writeFileSync(below(odd), 'coffee');
        rig.user(
            'root',
            ['read', 'content', 'write'].map((verb) => `filemanager:${verb}`),
            { role: 'admin' }
        );
        const { portico } = JSON.parse(
            readFileSync(
                new URL('../../../../../extensions/filemanager/package.json', import.meta.url),
                'utf8'
            )
        ) as { portico: Manifest };
        mkdirSync(join(rig.root, 'assets')); // where its built pages would lie
        await rig.run(filemanager, {
            name: 'filemanager',
            capabilities: portico.capabilities ?? {},
            manifest: portico,
            settings: { roots: [{ name: 'main', path: folder, roles: [] }] }
        });
        const base = '/api/plugins/filemanager';
        const list = await rig.ask('root', 'GET', `${base}/files?root=main`);
        expect(list.data.map(({ path }: { path: string }) => path)).to.equal(['caf\uefe9.txt']);
        const path = encodeURIComponent('caf\uefe9.txt');
        expect((await rig.ask('root', 'GET', `${base}/content?root=main&path=${path}`)).text).to.equal(
            'coffee'
        );
        const removed = await rig.ask('root', 'DELETE', `${base}/files?root=main&path=${path}`);
        expect(removed.code, removed.message).to.equal(0);
        expect(readdirSync(folder).filter((name) => !name.startsWith('.'))).to.equal([]);
    });
});

describe("ctx.files of the plugin's own folder", () => {
    it("opens all of it where a link leads to the panel's folder, and nothing beside it", async () => {
        mkdirSync(join(rig.root, 'forbidden', 'own', 'sub'), { recursive: true });
        mkdirSync(join(rig.root, 'forbidden', 'keys'));
        symlinkSync(join(rig.root, 'forbidden'), join(rig.root, 'alias'));
        let ctx!: Context;
        await rig.run(
            definePlugin({
                setup(own) {
                    ctx = own;
                }
            }),
            { name: 'other', capabilities: { files: ['*'] }, dataDir: join(rig.root, 'alias', 'own') }
        );
        await ctx.files(ctx.dataDir).createFolder('sub/deeper/still', { parents: true });
        expect((await ctx.files(ctx.dataDir).list('sub')).map(({ name }) => name)).to.equal(['deeper']);
        expect(await codeOf(ctx.files(rig.root).list('forbidden/keys'))).to.equal(40400);
        expect(await codeOf(ctx.files(join(rig.root, 'alias')).list(''))).to.equal(50305);
    });
});

describe('ctx.files with many at once, and very deep', () => {
    it('lets one of many moves to a free name win, and keeps what the others wanted to move', async () => {
        const count = 40;
        for (let number = 0; number < count; number += 1) {
            writeFileSync(join(folder, `from-${number}`), String(number));
        }
        const codes = await Promise.all(
            Array.from({ length: count }, (_each, number) => codeOf(files.move(`from-${number}`, 'to')))
        );
        expect(codes.filter((code) => code === 0).length).to.equal(1);
        expect(codes.filter((code) => code === 40900).length).to.equal(count - 1);
        expect(readFileSync(join(folder, 'to'), 'utf8')).to.equal(String(codes.indexOf(0)));
        expect(readdirSync(folder).length).to.equal(count);
    });

    it('moves no folder over another, nor a file over itself', async () => {
        ['a', 'b', 'c'].forEach((name) => mkdirSync(join(folder, name)));
        writeFileSync(join(folder, 'b', 'kept'), '');
        writeFileSync(join(folder, 'file'), 'file');
        linkSync(join(folder, 'file'), join(folder, 'same'));
        expect(
            await Promise.all(
                [
                    files.move('a', 'b'),
                    files.move('a', 'c'),
                    files.move('a', 'file'),
                    files.move('file', 'a'),
                    files.move('file', 'file'),
                    files.move('file', 'same'),
                    files.move('a', 'a')
                ].map(codeOf)
            )
        ).to.equal([40900, 40900, 40900, 40900, 40900, 40900, 40900]);
        expect(readdirSync(folder).sort()).to.equal(['a', 'b', 'c', 'file', 'same']);
        expect(readdirSync(join(folder, 'b'))).to.equal(['kept']);
    });

    it('removes a tree deeper than any path can say, with few descriptors', { timeout: 60_000 }, async () => {
        // Built from the inside out, since no call takes so long a path.
        mkdirSync(join(folder, 'd'));
        writeFileSync(join(folder, 'd', 'bottom'), '');
        for (let level = 0; level < 3000; level += 1) {
            mkdirSync(join(folder, 'next'));
            writeFileSync(join(folder, 'next', 'file'), '');
            renameSync(join(folder, 'd'), join(folder, 'next', 'd'));
            renameSync(join(folder, 'next'), join(folder, 'd'));
        }
        let most = 0;
        const watch = setInterval(() => {
            most = Math.max(most, readdirSync('/proc/self/fd').length);
        }, 5);
        const before = readdirSync('/proc/self/fd').length;
        await files.remove('d', { recursive: true });
        clearInterval(watch);
        expect(readdirSync(folder)).to.equal([]);
        expect(most - before).to.be.below(60);
        expect(readdirSync('/proc/self/fd').length).to.be.at.most(before);
    });

    it('refuses a path that is deeper than the machine takes', async () => {
        expect(await codeOf(files.createFolder('a/'.repeat(2049), { parents: true }))).to.equal(40400);
        expect(
            await codeOf(
                files.createFolder(Array.from({ length: 2000 }, () => 'a').join('/'), { parents: true })
            )
        ).to.equal(0);
        expect((await files.stat(Array.from({ length: 2000 }, () => 'a').join('/'))).type).to.equal('folder');
        await files.remove('a', { recursive: true });
        expect(readdirSync(folder)).to.equal([]);
    });
});
