import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, zstdCompressSync } from 'node:zlib';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFilesRig, type FilesRig, rootPath } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after, afterEach } = lab;

let files: FilesRig;
const start = async (): Promise<void> => {
    files = await createFilesRig();
    ['bsdtar', 'xz', 'bzip2'].forEach((program) => files.host.programs.real(program));
    mkdirSync(files.at('tree/sub'), { recursive: true });
    writeFileSync(files.at('tree/a.txt'), 'alpha\n');
    writeFileSync(files.at('tree/sub/ü ☃'), Buffer.alloc(200_000, 'xyz'));
};
const reasonOf = ({ error }: { readonly error: unknown }): string =>
    (error as { readonly reason?: string } | null)?.reason ?? 'none';
const extract = async (path: string, to: string, entries: readonly string[] = []) =>
    files.task(await files.post('/archives/extract', { root: 'main', path, to, entries }));
const whole = (folder: string): boolean =>
    readFileSync(files.at(folder, 'tree/a.txt'), 'utf8') === 'alpha\n' &&
    readFileSync(files.at(folder, 'tree/sub/ü ☃')).equals(Buffer.alloc(200_000, 'xyz'));

/** A number as RAR 5 writes it. */
function vint(value: number): Buffer {
    const bytes: number[] = [];
    for (let left = value; ; left >>>= 7) {
        bytes.push((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
        if (left <= 0x7f) {
            return Buffer.from(bytes);
        }
    }
}

/** A RAR 5 archive with one stored file: no free program makes one. */
function rar(name: string, content: string, attributes = 0o100644): Buffer {
    const block = (...parts: readonly Buffer[]): Buffer => {
        const body = Buffer.concat(parts);
        const sized = Buffer.concat([vint(body.byteLength), body]);
        const sum = Buffer.alloc(4);
        sum.writeUInt32LE(crc32(sized));
        return Buffer.concat([sum, sized]);
    };
    const sum = Buffer.alloc(4);
    sum.writeUInt32LE(crc32(content));
    const [main, file, end] = [vint(1), vint(2), vint(5)];
    return Buffer.concat([
        Buffer.from('526172211a070100', 'hex'),
        block(main, vint(0), vint(0)),
        block(
            file,
            vint(2),
            vint(content.length),
            vint(4),
            vint(content.length),
            vint(attributes),
            sum,
            vint(0),
            vint(1),
            vint(Buffer.byteLength(name)),
            Buffer.from(name)
        ),
        Buffer.from(content),
        block(end, vint(0), vint(0))
    ]);
}

describe('archives of other formats', () => {
    before(start);
    after(() => files.close());
    afterEach(async () => {
        expect(await files.held()).to.equal([]);
        expect(readdirSync(files.folder).filter((name) => name.startsWith('.portico-'))).to.equal([]);
    });

    it('makes each format, and reads it again', async () => {
        for (const format of ['tar.xz', 'tar.zst', 'tar.bz2', '7z']) {
            const made = await files.task(
                await files.post('/archives', { root: 'main', paths: ['tree'], to: `made.${format}` })
            );
            expect([format, reasonOf(made)]).to.equal([format, 'none']);
            const read = execFileSync('bsdtar', ['-tf', files.at(`made.${format}`)], { encoding: 'utf8' });
            expect(read).to.contain('tree/a.txt');
            const unpacked = await extract(`made.${format}`, `out-${format}`);
            expect([format, reasonOf(unpacked)]).to.equal([format, 'none']);
            expect(whole(`out-${format}`)).to.be.true();
        }
        const refused = await files.post('/archives', { root: 'main', paths: ['tree'], to: 'made.rar' });
        expect(refused.reason).to.equal('ARCHIVE_UNKNOWN');
        const uses = files.host.programs.calls.filter(({ file }) => file === 'bsdtar');
        expect(uses.every(({ options }) => options.isolate?.network === false)).to.be.true();
        expect(uses.every(({ options }) => options.user !== undefined)).to.be.true();
    });

    it('unpacks one packed file under its name without the ending, and refuses what is none', async () => {
        const content = Buffer.alloc(300_000, 'dump\n');
        const pack = { gz: 'gzip', xz: 'xz', bz2: 'bzip2' } as const;
        const packed: Record<string, Buffer> = { zst: zstdCompressSync(content) };
        for (const [format, program] of Object.entries(pack)) {
            packed[format] = execFileSync(program, ['-c'], { input: content });
        }
        for (const [format, bytes] of Object.entries(packed)) {
            writeFileSync(files.at(`dump.sql.${format}`), bytes);
            const query = { root: 'main', path: `dump.sql.${format}` };
            const { data } = await files.get('/archives/entries', query);
            expect(data).to.equal([{ name: 'dump.sql', type: 'file', size: null, modifiedAt: null }]);
            const unpacked = await extract(`dump.sql.${format}`, `one-${format}`);
            expect([format, reasonOf(unpacked)]).to.equal([format, 'none']);
            expect(readFileSync(files.at(`one-${format}`, 'dump.sql')).equals(content)).to.be.true();
            writeFileSync(files.at(`cut.${format}`), bytes.subarray(0, bytes.length - 9));
            expect([format, reasonOf(await extract(`cut.${format}`, 'cut'))]).to.equal([
                format,
                'ARCHIVE_REFUSED'
            ]);
            writeFileSync(files.at(`none.${format}`), 'this is not packed at all');
            const list = await files.get('/archives/entries', { root: 'main', path: `none.${format}` });
            expect([format, list.reason]).to.equal([format, 'ARCHIVE_REFUSED']);
            expect([existsSync(files.at('cut')), existsSync(files.at('none'))]).to.equal([false, false]);
        }
        const roots = [{ name: 'main', path: rootPath, roles: [] }];
        await files.host.setSettings({ roots, archiveBytes: 1_000 });
        expect(reasonOf(await extract('dump.sql.xz', 'large'))).to.equal('ARCHIVE_TOO_LARGE');
        expect(reasonOf(await extract('dump.sql.gz', 'large'))).to.equal('ARCHIVE_TOO_LARGE');
        await files.host.setSettings({ roots, archiveBytes: 10 * 2 ** 30 });
        const made = await files.post('/archives', { root: 'main', paths: ['tree'], to: 'made.gz' });
        expect(made.reason).to.equal('ARCHIVE_UNKNOWN');
    });

    it('reads RAR, and checks its names as those of all others', async () => {
        writeFileSync(files.at('good.rar'), rar('in/file.txt', 'from rar'));
        expect(reasonOf(await extract('good.rar', 'rar'))).to.equal('none');
        expect(readFileSync(files.at('rar/in/file.txt'), 'utf8')).to.equal('from rar');
        // Without rights, without a network, and with little of the machine.
        const { calls } = files.host.programs;
        expect(calls.findLast(({ file }) => file === 'bsdtar')?.options).to.include({
            isolate: { network: false },
            limits: { memoryBytes: 512 * 2 ** 20, cpuSeconds: 60 },
            ...(process.geteuid?.() === 0 ? { user: 'nobody' } : {})
        });
        for (const [index, name] of ['../escaped', '/escaped', '.portico/x'].entries()) {
            writeFileSync(files.at(`bad${index}.rar`), rar(name, 'x'));
            expect(reasonOf(await extract(`bad${index}.rar`, `bad${index}`))).to.equal('ARCHIVE_REFUSED');
            expect(existsSync(files.at(`bad${index}`))).to.be.false();
        }
        expect(existsSync(files.at('escaped'))).to.be.false();
        // The converter leaves out a file of no known type and ends well: what it says of it refuses the archive.
        writeFileSync(files.at('odd.rar'), rar('file', 'x', 0o644));
        expect(reasonOf(await extract('odd.rar', 'odd'))).to.equal('ARCHIVE_REFUSED');
    });

    it('refuses links, garbage and broken ends, and keeps nothing', async () => {
        const hostile = join(files.outside, 'hostile');
        mkdirSync(hostile);
        symlinkSync('/etc/passwd', join(hostile, 'link'));
        writeFileSync(join(hostile, 'file'), Buffer.alloc(100_000, 'abc'));
        for (const [format, flags] of [
            ['7z', ['--format', '7zip']],
            ['tar.xz', ['-J']],
            ['tar.zst', ['--zstd']]
        ] as const) {
            const target = files.at(`links.${format}`);
            execFileSync('bsdtar', ['-cf', target, ...flags, '-C', files.outside, 'hostile']);
            expect([format, reasonOf(await extract(`links.${format}`, 'links'))]).to.equal([
                format,
                'ARCHIVE_REFUSED'
            ]);
            execFileSync('bsdtar', ['-cf', target, ...flags, '-C', hostile, 'file']);
            const bytes = readFileSync(target);
            writeFileSync(files.at(`short.${format}`), bytes.subarray(0, bytes.byteLength - 60));
            expect([format, reasonOf(await extract(`short.${format}`, 'short'))]).to.equal([
                format,
                'ARCHIVE_REFUSED'
            ]);
            writeFileSync(files.at(`garbage.${format}`), Buffer.alloc(5_000, 'garbage'));
            expect([format, reasonOf(await extract(`garbage.${format}`, 'garbage'))]).to.equal([
                format,
                'ARCHIVE_REFUSED'
            ]);
        }
        expect(['links', 'short', 'garbage'].map((name) => existsSync(files.at(name)))).to.equal([
            false,
            false,
            false
        ]);
    });

    it('holds the limits against a bomb that a converter unpacks', async () => {
        await files.host.setSettings({ ...files.host.settings, archiveBytes: 1_000_000 });
        execFileSync('sh', [
            '-c',
            `head -c 300000000 /dev/zero > ${files.outside}/zeros && bsdtar -cJf ${files.at('bomb.tar.xz')} -C ${files.outside} zeros && rm ${files.outside}/zeros`
        ]);
        expect(reasonOf(await extract('bomb.tar.xz', 'bomb'))).to.equal('ARCHIVE_TOO_LARGE');
        expect(existsSync(files.at('bomb'))).to.be.false();
        await files.host.setSettings({ ...files.host.settings, archiveBytes: 2 ** 30 });
    });

    it('lists an archive without unpacking it, and unpacks what is chosen', async () => {
        for (const format of ['zip', 'tar.gz', '7z']) {
            const to = `listed.${format}`;
            await files.task(await files.post('/archives', { root: 'main', paths: ['tree'], to }));
            const { data } = await files.get('/archives/entries', { root: 'main', path: to });
            const names = data.map(({ name, type, size }: Record<string, unknown>) => [
                String(name).replace(/\/$/, ''),
                type,
                size
            ]);
            expect([format, names.sort()]).to.equal([
                format,
                [
                    ['tree', 'folder', 0],
                    ['tree/a.txt', 'file', 6],
                    ['tree/sub', 'folder', 0],
                    ['tree/sub/ü ☃', 'file', 200_000]
                ]
            ]);
            expect(reasonOf(await extract(to, `chosen-${format}`, ['tree/a.txt']))).to.equal('none');
            expect(readdirSync(files.at(`chosen-${format}`, 'tree'))).to.equal(['a.txt']);
            expect(reasonOf(await extract(to, 'none', ['tree/none']))).to.equal('NOT_FOUND');
        }
        const first = await files.get('/archives/entries', { root: 'main', path: 'listed.zip', limit: '1' });
        expect([first.data.length, first.headers['x-total-count']]).to.equal([1, '4']);
        const viewer = await files.get(
            '/archives/entries',
            { root: 'main', path: 'listed.zip' },
            { role: 'viewer' }
        );
        expect(viewer.code).to.equal(40300);
    });

    it('says which package is missing', async () => {
        files.host.programs.missing('bsdtar');
        const failed = await extract('listed.7z', 'missing');
        expect(failed.error).to.include({ code: 50302 });
        expect(JSON.stringify(failed.error)).to.contain('libarchive-tools');
        files.host.programs.real('bsdtar');
    });
});

describe('GET /api/plugins/filemanager/archive', () => {
    before(start);
    after(() => files.close());

    it('gives a folder as it is read, and puts nothing down', async () => {
        symlinkSync('/etc/passwd', files.at('tree/link'));
        for (const format of ['zip', 'tar.gz', 'tar.zst']) {
            const answer = await fetchBytes(format);
            const target = join(files.outside, `got.${format}`);
            writeFileSync(target, answer);
            const listed = execFileSync('bsdtar', ['-tf', target], { encoding: 'utf8' });
            expect(listed).to.contain('tree/a.txt').and.not.contain('link');
        }
        expect(readdirSync(files.folder)).to.equal(['tree']);
        const refused = await files.get('/archive', { root: 'main', path: 'tree/a.txt' });
        expect(refused.reason).to.equal('WRONG_TYPE');
        expect(await files.held()).to.equal([]);
    });

    const fetchBytes = async (format: string): Promise<Uint8Array> => {
        const answer = await files.as('operator').get('/archive', {
            query: { root: 'main', path: 'tree', format }
        });
        expect([answer.status, answer.headers.get('content-disposition')]).to.equal([
            200,
            `attachment; filename="tree.${format}"; filename*=UTF-8''tree.${format}`
        ]);
        return answer.bytes;
    };
});

describe('GET /api/plugins/filemanager/search/content', () => {
    before(start);
    after(() => files.close());

    it('finds lines by text, case, whole words and names, never through a link or in binary files', async () => {
        writeFileSync(files.at('tree/nginx.conf'), 'one\nListen 80;\nrelisten 81\n  listen 82 ÄÖ\r\n');
        writeFileSync(files.at('tree/binary'), Buffer.from('listen\0listen'));
        writeFileSync(join(files.outside, 'secret.conf'), 'listen outside');
        symlinkSync(join(files.outside, 'secret.conf'), files.at('tree/link.conf'));
        symlinkSync(files.outside, files.at('tree/folder'));
        const find = async (query: Readonly<Record<string, string>>) => {
            const { data } = await files.get('/search/content', { root: 'main', ...query });
            return data.map(({ path, line, column }: Record<string, unknown>) => `${path} ${line}:${column}`);
        };
        expect(await find({ q: 'listen' })).to.equal([
            'tree/nginx.conf 2:1',
            'tree/nginx.conf 3:3',
            'tree/nginx.conf 4:3'
        ]);
        expect(await find({ q: 'listen', word: 'true', case: 'true' })).to.equal(['tree/nginx.conf 4:3']);
        expect(await find({ q: 'äö' })).to.equal(['tree/nginx.conf 4:13']);
        expect(await find({ q: 'alpha', glob: '*.conf' })).to.equal([]);
        expect(await find({ q: 'alpha', glob: '*.txt' })).to.equal(['tree/a.txt 1:1']);
        const few = await files.get('/search/content', { root: 'main', q: 'listen', limit: '1' });
        expect([few.data.length, few.headers['x-truncated']]).to.equal([1, 'results']);
        const viewer = await files.get('/search/content', { root: 'main', q: 'x' }, { role: 'viewer' });
        expect(viewer.code).to.equal(40300);
        expect(await files.held()).to.equal([]);
    });

    it('finds what lies across the pieces that it reads, and counts lines in large files', async () => {
        const line = `${'x'.repeat(999)}\n`;
        writeFileSync(
            files.at('large'),
            `${line.repeat(600)}${'y'.repeat(100_000)}needle${line.repeat(10)}needle`
        );
        const { data } = await files.get('/search/content', { root: 'main', path: '', q: 'needle' });
        const expected = execFileSync('grep', ['-n', '-o', 'needle', files.at('large')], {
            encoding: 'utf8'
        });
        expect(data.map((each: { line: number }) => each.line)).to.equal(
            expected
                .trim()
                .split('\n')
                .map((each) => Number(each.split(':')[0]))
        );
    });
});
