import { execFileSync } from 'node:child_process';
import {
    chmodSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { createRequire } from 'node:module';
import { buffer } from 'node:stream/consumers';
import { crc32, deflateRawSync, gzipSync } from 'node:zlib';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFilesRig, type FilesRig } from '../../rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

interface TarEntry {
    readonly name: string;
    readonly type?: string;
    readonly linkname?: string;
    readonly body?: string;
    readonly mode?: number;
}
interface TarPack extends NodeJS.ReadableStream {
    entry(header: object, body?: string): void;
    finalize(): void;
}
const tar = createRequire(new URL('../../../../../extensions/filemanager/package.json', import.meta.url))(
    'tar-stream'
) as { pack(): TarPack };

async function tarOf(entries: readonly TarEntry[]): Promise<Buffer> {
    const pack = tar.pack();
    entries.forEach(({ body, ...header }) => pack.entry(header, body));
    pack.finalize();
    return buffer(pack);
}

/** A zip by hand, since no library makes what these tests need. */
function zipOf(
    entries: readonly {
        readonly name: string;
        readonly body?: Buffer;
        readonly unix?: number;
        readonly flags?: number;
        readonly size?: number;
    }[]
): Buffer {
    const parts: Buffer[] = [];
    const directory: Buffer[] = [];
    let offset = 0;
    for (const {
        name,
        body = Buffer.alloc(0),
        unix = 0o100644,
        flags = 0x800,
        size = body.byteLength
    } of entries) {
        const raw = Buffer.from(name);
        const packed = deflateRawSync(body);
        const common = Buffer.alloc(26);
        [20, flags, 8, 0, 0x21].forEach((value, index) => common.writeUInt16LE(value, index * 2));
        common.writeUInt32LE(crc32(body), 10);
        common.writeUInt32LE(packed.byteLength, 14);
        common.writeUInt32LE(size, 18);
        common.writeUInt16LE(raw.byteLength, 22);
        parts.push(Buffer.from('PK\x03\x04'), common, raw, packed);
        const tail = Buffer.alloc(14);
        tail.writeUInt32LE((unix << 16) >>> 0, 6);
        tail.writeUInt32LE(offset, 10);
        directory.push(Buffer.from('PK\x01\x02'), Buffer.from([20, 3]), common, tail, raw);
        offset += 4 + 26 + raw.byteLength + packed.byteLength;
    }
    const central = Buffer.concat(directory);
    const end = Buffer.alloc(18);
    end.writeUInt16LE(entries.length, 4);
    end.writeUInt16LE(entries.length, 6);
    end.writeUInt32LE(central.byteLength, 8);
    end.writeUInt32LE(offset, 12);
    return Buffer.concat([...parts, central, Buffer.from('PK\x05\x06'), end]);
}

describe('POST /api/plugins/filemanager/archives', () => {
    let files: FilesRig;
    const pack = async (
        paths: readonly string[],
        to: string
    ): Promise<Awaited<ReturnType<FilesRig['task']>>> =>
        files.task(await files.post('/archives', { root: 'main', paths, to }));
    const extract = async (path: string, to: string): Promise<Awaited<ReturnType<FilesRig['task']>>> =>
        files.task(await files.post('/archives/extract', { root: 'main', path, to }));
    const reasonOf = (task: { readonly error: unknown }): string =>
        (task.error as { reason?: string } | null)?.reason ?? 'none';
    const names = (...folder: string[]): string[] => readdirSync(files.at(...folder)).sort();

    beforeEach(async () => {
        files = await createFilesRig({
            settings: { archiveEntries: 50, archiveBytes: 40_000_000, archiveRatio: 10 }
        });
        mkdirSync(files.at('site/css'), { recursive: true });
        writeFileSync(files.at('site/index.html'), '<p>');
        writeFileSync(files.at('site/css/a.css'), 'a{}'.repeat(10_000));
        writeFileSync(files.at('site/run'), '#!/bin/sh');
        chmodSync(files.at('site/run'), 0o777);
        writeFileSync(files.at('site/new\nline ü'), 'odd');
        symlinkSync(files.outside, files.at('site/door'));
    });

    afterEach(async () => files.close());

    for (const [format, list] of [
        ['tar.gz', ['tar', '-tzf']],
        ['tgz', ['tar', '-tzf']],
        ['tar', ['tar', '-tf']],
        ['zip', ['unzip', '-Z1']]
    ] as const) {
        it(`makes a ${format} that other programs read, without links, and unpacks it again`, async () => {
            const made = await pack(['site', 'site/css'], `out.${format}`);
            expect(made.error).to.be.null();
            expect(made.result).to.include({ path: `out.${format}`, skipped: 1, entries: 6 });
            expect(statSync(files.at(`out.${format}`)).mode & 0o777).to.equal(0o640);
            const [program, ...args] = list;
            if (program !== 'unzip' || hasUnzip()) {
                expect(
                    execFileSync(program, [...args, files.at(`out.${format}`)], { encoding: 'utf8' })
                ).to.contain('site/css/a.css');
            }
            const unpacked = await extract(`out.${format}`, 'copy');
            expect(unpacked.error).to.be.null();
            expect(unpacked.result).to.include({ path: 'copy', entries: 6 });
            expect(names('copy/site')).to.equal(['css', 'index.html', 'new\nline ü', 'run']);
            expect(readFileSync(files.at('copy/site/css/a.css'), 'utf8')).to.equal('a{}'.repeat(10_000));
            expect([
                statSync(files.at('copy/site/run')).mode & 0o7777,
                statSync(files.at('copy/site')).mode & 0o7777
            ]).to.equal([0o755, 0o750]);
            expect(names()).to.equal(['copy', `out.${format}`, 'site']);
            expect(await files.held()).to.equal([]);
        });
    }

    it('names entries from the folder that all of them share, and takes whole roots', async () => {
        await pack(['site/css/a.css', 'site/index.html'], 'two.tar');
        expect(
            execFileSync('tar', ['-tf', files.at('two.tar')], { encoding: 'utf8' })
                .trim()
                .split('\n')
        ).to.equal(['css/a.css', 'index.html']);
        expect((await pack([''], 'all.tar.gz')).error).to.be.null();
        expect(execFileSync('tar', ['-tzf', files.at('all.tar.gz')], { encoding: 'utf8' }))
            .to.contain('two.tar')
            .and.not.contain('all.tar.gz');
    });

    it('refuses before it begins: no format, a taken name, nothing to pack', async () => {
        expect(
            (await files.post('/archives', { root: 'main', paths: ['site'], to: 'a.rar' })).reason
        ).to.equal('ARCHIVE_UNKNOWN');
        writeFileSync(files.at('taken.zip'), '');
        expect(
            (await files.post('/archives', { root: 'main', paths: ['site'], to: 'taken.zip' })).reason
        ).to.equal('CONFLICT');
        expect(
            (await files.post('/archives', { root: 'main', paths: ['none'], to: 'a.zip' })).reason
        ).to.equal('NOT_FOUND');
        expect((await files.post('/archives', { root: 'main', paths: [], to: 'a.zip' })).code).to.equal(
            40001
        );
        expect(
            (await files.post('/archives/extract', { root: 'main', path: 'site/index.html', to: 'x' })).reason
        ).to.equal('ARCHIVE_UNKNOWN');
        Array.from({ length: 60 }, (_, index) => writeFileSync(files.at('site', `file${index}`), ''));
        expect(reasonOf(await pack(['site'], 'many.zip'))).to.equal('ARCHIVE_TOO_LARGE');
        expect(names()).to.equal(['site', 'taken.zip']);
    });

    it('unpacks into a folder that is there only where nothing is in the way, or not at all', async () => {
        writeFileSync(
            files.at('two.tar'),
            await tarOf([
                { name: './a', body: 'a' },
                { name: './b/c', body: 'c' }
            ])
        );
        mkdirSync(files.at('there'));
        writeFileSync(files.at('there/other'), '');
        expect((await extract('two.tar', 'there')).error).to.be.null();
        expect(names('there')).to.equal(['a', 'b', 'other']);
        expect(reasonOf(await extract('two.tar', 'there'))).to.equal('CONFLICT');
        expect(reasonOf(await extract('two.tar', 'there/other'))).to.equal('WRONG_TYPE');
        expect((await extract('two.tar', '')).error).to.be.null();
        expect(names()).to.equal(['a', 'b', 'site', 'there', 'two.tar']);
    });

    const hostile: readonly (readonly [string, readonly TarEntry[]])[] = [
        [
            'a parent',
            [
                { name: 'a', body: 'a' },
                { name: '../evil', body: 'x' }
            ]
        ],
        ['a parent further in', [{ name: 'a/../../evil', body: 'x' }]],
        ['an absolute name', [{ name: '/tmp/evil', body: 'x' }]],
        [
            'a symbolic link',
            [
                { name: 'a', type: 'symlink', linkname: '/etc' },
                { name: 'a/evil', body: 'x' }
            ]
        ],
        ['a hard link', [{ name: 'a', type: 'link', linkname: '/etc/passwd' }]],
        ['a device', [{ name: 'a', type: 'character-device' }]],
        ['a pipe', [{ name: 'a', type: 'fifo' }]],
        [
            'one name twice',
            [
                { name: 'a', body: '1' },
                { name: './a', body: '2' }
            ]
        ],
        [
            'a file that is a folder',
            [
                { name: 'a', body: '1' },
                { name: 'a/b', body: '2' }
            ]
        ],
        [
            'a folder that is a file',
            [
                { name: 'a/b', body: '1' },
                { name: 'a', body: '2' }
            ]
        ],
        ['a private name', [{ name: '.portico/trash/x', body: 'x' }]],
        ['a name that is too long', [{ name: 'x'.repeat(300), body: 'x' }]],
        ['more levels than are ever needed', [{ name: `${'d/'.repeat(120)}x`, body: 'x' }]],
        [
            'more entries than allowed',
            Array.from({ length: 60 }, (_, index) => ({ name: `f${index}`, body: '' }))
        ]
    ];
    for (const [what, entries] of hostile) {
        it(`keeps nothing of a tar with ${what}`, async () => {
            writeFileSync(files.at('evil.tar.gz'), gzipSync(await tarOf(entries)));
            const task = await extract('evil.tar.gz', 'out');
            expect(task.state).to.equal('failed');
            expect(reasonOf(task)).to.match(/^ARCHIVE_(REFUSED|TOO_LARGE)$/);
            expect(names()).to.equal(['evil.tar.gz', 'site']);
            expect(readdirSync(files.outside)).to.equal([]);
        });
    }

    const hostileZips: readonly (readonly [string, Buffer])[] = [
        ['a parent', zipOf([{ name: '../evil' }])],
        ['an absolute name', zipOf([{ name: '/tmp/evil' }])],
        ['backslashes', zipOf([{ name: '..\\evil' }])],
        ['a symbolic link', zipOf([{ name: 'a', unix: 0o120777, body: Buffer.from('/etc') }])],
        ['a device', zipOf([{ name: 'a', unix: 0o020666 }])],
        ['a folder that is a link', zipOf([{ name: 'a/', unix: 0o120777 }])],
        ['one name twice', zipOf([{ name: 'a' }, { name: 'a' }])],
        ['an encrypted entry', zipOf([{ name: 'a', flags: 0x801 }])],
        ['a size that lies', zipOf([{ name: 'a', body: Buffer.alloc(1000), size: 10 }])],
        ['a bomb', zipOf([{ name: 'a', body: Buffer.alloc(30_000_000) }])],
        ['nothing of a zip', Buffer.from('this is no archive')]
    ];
    for (const [what, zip] of hostileZips) {
        it(`keeps nothing of a zip with ${what}`, async () => {
            writeFileSync(files.at('evil.zip'), zip);
            const task = await extract('evil.zip', 'out');
            expect(task.state).to.equal('failed');
            expect(reasonOf(task)).to.match(/^ARCHIVE_(REFUSED|TOO_LARGE)$/);
            expect(names()).to.equal(['evil.zip', 'site']);
            expect(readdirSync(files.outside)).to.equal([]);
            expect(await files.held()).to.equal([]);
        });
    }

    it('stops a bomb at its ratio and at its size, also one made of headers', async () => {
        writeFileSync(
            files.at('ratio.tar.gz'),
            gzipSync(await tarOf([{ name: 'zeros', body: '\0'.repeat(30_000_000) }]))
        );
        expect(reasonOf(await extract('ratio.tar.gz', 'out'))).to.equal('ARCHIVE_TOO_LARGE');
        writeFileSync(files.at('size.tar'), await tarOf([{ name: 'zeros', body: '\0'.repeat(41_000_000) }]));
        expect(reasonOf(await extract('size.tar', 'out'))).to.equal('ARCHIVE_TOO_LARGE');
        const header = (await tarOf([{ name: `${'n'.repeat(200)}/${'m'.repeat(200)}`, body: '' }])).subarray(
            0,
            1024
        );
        writeFileSync(
            files.at('headers.tar.gz'),
            gzipSync(Buffer.concat(Array.from({ length: 30_000 }, () => header)))
        );
        expect(reasonOf(await extract('headers.tar.gz', 'out'))).to.match(/^ARCHIVE_(TOO_LARGE|REFUSED)$/);
        writeFileSync(
            files.at('cut.tar.gz'),
            gzipSync(await tarOf([{ name: 'a', body: 'x'.repeat(100_000) }])).subarray(0, 60)
        );
        expect(reasonOf(await extract('cut.tar.gz', 'out'))).to.equal('ARCHIVE_REFUSED');
        expect(names()).to.equal(['cut.tar.gz', 'headers.tar.gz', 'ratio.tar.gz', 'site', 'size.tar']);
        expect(await files.held()).to.equal([]);
    });

    it('leaves nothing of one that is cancelled', async () => {
        writeFileSync(files.at('big.tar'), await tarOf([{ name: 'zeros', body: '\0'.repeat(20_000_000) }]));
        const unpacking = await files.post('/archives/extract', { root: 'main', path: 'big.tar', to: 'out' });
        expect((await files.cancel(unpacking)).state).to.equal('cancelled');
        const packing = await files.post('/archives', { root: 'main', paths: ['big.tar'], to: 'packed.zip' });
        expect((await files.cancel(packing)).state).to.equal('cancelled');
        expect(names()).to.equal(['big.tar', 'site']);
        expect(await files.held()).to.equal([]);
    });
});

function hasUnzip(): boolean {
    try {
        execFileSync('unzip', ['-v'], { stdio: 'ignore' });
        return true;
    } catch {
        return false;
    }
}
