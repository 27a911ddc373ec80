import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import {
    chmodSync,
    existsSync,
    lstatSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import fc from 'fast-check';

import { type Answer, createFilesRig, type FilesRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const secret = 'the secret outside';
/** Each sends about twenty requests to five paths. */
const racedRounds = 6;

/** Everything outside of the root, as bytes, bits and names. */
function outsideOf(files: FilesRig): string {
    const seen: string[] = [];
    const look = (folder: string): void =>
        readdirSync(folder)
            .sort()
            .forEach((name) => {
                const path = join(folder, name);
                const { mode, uid, gid } = statSync(path);
                seen.push(
                    `${path} ${mode.toString(8)} ${uid}:${gid} ${statSync(path).isDirectory() ? '' : readFileSync(path, 'utf8')}`
                );
                if (statSync(path).isDirectory()) {
                    look(path);
                }
            });
    look(files.outside);
    return seen.join('\n');
}

/** Every way into a path. What each gives is looked at for the secret. */
async function everything(files: FilesRig, path: string, other: string): Promise<string> {
    const answers: Answer[] = [
        await files.get('/files', { root: 'main', path }),
        await files.read(path),
        await files.put(path, 'written'),
        await files.post('/folders', { root: 'main', path }),
        await files.post('/mode', { root: 'main', path, mode: 0o777 }),
        await files.get('/search/content', { root: 'main', path, q: 'secret' }),
        await files.post('/owner', { root: 'main', path, owner: 'nobody', recursive: true }),
        await files.post('/checksums', { root: 'main', paths: [path] }),
        await files.post('/batch', {
            action: 'copy',
            items: [{ root: 'main', path }],
            to: { root: 'main', path: '' },
            onConflict: 'rename'
        }),
        await files.post('/copy', { root: 'main', from: path, to: other }),
        await files.post('/move', { root: 'main', from: path, to: other }),
        await files.post('/move', { root: 'main', from: other, to: path }),
        await files.get('/search', { root: 'main', path, q: 'file' })
    ];
    for (const answer of [
        await files.post('/archives', { root: 'main', paths: [path], to: 'packed.tar' }),
        await files.post('/archives/extract', { root: 'main', path: 'small.tar', to: path })
    ]) {
        answers.push(answer);
        if (answer.status === 202) {
            answers.push({ ...answer, data: await files.task(answer) });
        }
    }
    const upload = await files.tus('POST', 'uploads', {
        headers: {
            'upload-length': '3',
            'content-type': 'application/offset+octet-stream',
            'upload-metadata': `root ${Buffer.from('main').toString('base64')},path ${Buffer.from(path).toString('base64')},replace ${Buffer.from('true').toString('base64')}`
        },
        body: 'abc'
    });
    answers.push(
        await files.remove('/files', { root: 'main', path, permanent: 'true' }),
        await files.remove('/files', { root: 'main', path: other })
    );
    const packed = files.at('packed.tar');
    const inside = existsSync(packed) ? readFileSync(packed, 'latin1') : '';
    await files.remove('/files', { root: 'main', path: 'packed.tar', permanent: 'true' });
    return `${JSON.stringify(answers)} ${upload.status} ${inside}`;
}

describe('filemanager roots', () => {
    let files: FilesRig;
    let before: string;

    beforeEach(async () => {
        files = await createFilesRig();
        mkdirSync(join(files.outside, 'in'));
        writeFileSync(join(files.outside, 'file'), secret);
        writeFileSync(join(files.outside, 'in/file'), secret);
        chmodSync(join(files.outside, 'in/file'), 0o600);
        before = outsideOf(files);
        writeFileSync(
            files.at('small.tar'),
            Buffer.concat([
                tarHeader('in/file', 5),
                Buffer.from('small'.padEnd(512, '\0')),
                Buffer.alloc(1024)
            ])
        );
    });

    afterEach(async () => files.close());

    it('hold whatever path is asked for', { timeout: 120_000 }, async () => {
        const piece = fc.oneof(
            fc.constantFrom(
                '..',
                '.',
                '',
                'door',
                'in',
                'file',
                'deep',
                'loop',
                '.portico',
                '.portico-x',
                '~',
                '-rf',
                '*',
                '%2e%2e',
                '..%2f',
                '…',
                '\u2025',
                '..\\',
                'C:',
                '\n',
                '\u0000',
                '/etc/passwd',
                'proc',
                'self',
                'root'
            ),
            fc.string({ unit: 'binary', maxLength: 12 }),
            fc.string({ minLength: 250, maxLength: 300 })
        );
        const path = fc
            .array(piece, { maxLength: 8 })
            .map((pieces) => pieces.join('/'))
            .chain((text) =>
                fc.constantFrom(text, `/${text}`, `${text}/`, `../${text}`, `${files.outside}/${text}`)
            );
        await fc.assert(
            fc.asyncProperty(path, async (hostile) => {
                mkdirSync(files.at('deep'), { recursive: true });
                for (const [name, target] of [
                    ['door', files.outside],
                    ['deep/door', '../../outside'],
                    ['loop', 'loop'],
                    ['file-door', join(files.outside, 'in/file')]
                ] as const) {
                    if (lstatSync(files.at(name), { throwIfNoEntry: false }) === undefined) {
                        symlinkSync(target, files.at(name));
                    }
                }
                expect(await everything(files, hostile, 'other')).to.not.contain(secret);
                expect(outsideOf(files)).to.equal(before);
            }),
            {
                numRuns: 40,
                examples: [
                    ['door/file'],
                    ['door/in/file'],
                    ['deep/door/in/file'],
                    ['file-door'],
                    ['../outside/file'],
                    ['door/../file'],
                    ['deep/../../outside/file']
                ]
            }
        );
        expect(await files.held()).to.equal([]);
    });

    it(
        'hold while a program swaps folders with links under every operation',
        { timeout: 120_000 },
        async () => {
            const swapper: ChildProcess = fork(
                fileURLToPath(new URL('../../../support/machine/swapper.mjs', import.meta.url)),
                [files.folder, files.outside],
                { execArgv: [] }
            );
            const gone = once(swapper, 'exit');
            await once(swapper, 'message');
            try {
                const seen = ['swap/in/file', 'swap/file', 'swap', 'swap/in', 'swap/new'].map((path) => ({
                    path,
                    statuses: new Set<number>()
                }));
                // One of them must answer differently at two times, or nothing was raced.
                const isRaced = (): boolean => seen.some(({ statuses }) => statuses.size > 1);
                for (let round = 0; round < racedRounds || !isRaced(); round += 1) {
                    for (const { path, statuses } of seen) {
                        expect(await everything(files, path, 'swap/other')).to.not.contain(secret);
                        statuses.add((await files.read(path)).status);
                    }
                }
                expect(outsideOf(files)).to.equal(before);
            } finally {
                swapper.disconnect();
                await gone;
            }
            expect(outsideOf(files)).to.equal(before);
            expect(await files.held()).to.equal([]);
        }
    );

    it('show a viewer names and nothing else', () => {
        const access = Object.fromEntries(
            files.host.document.routes.map(({ id, access: permission }) => [id, permission])
        );
        expect(access).to.equal({
            roots: 'read',
            list: 'read',
            search: 'read',
            trash: 'read',
            checksums: 'content',
            archiveEntries: 'content',
            preview: 'content',
            downloadFolder: 'content',
            searchContent: 'content',
            version: 'content',
            versions: 'content',
            restoreVersion: 'write',
            batch: 'write',
            owner: 'write',
            read: 'content',
            write: 'write',
            entry: 'read',
            size: 'read',
            makeFolder: 'write',
            makeLink: 'write',
            move: 'write',
            copy: 'write',
            mode: 'write',
            remove: 'write',
            restore: 'write',
            emptyTrash: 'write',
            pack: 'write',
            extract: 'write',
            upload: 'write',
            uploadPart: 'write',
            fetch: 'write',
            favourites: 'read',
            addFavourite: 'read',
            removeFavourite: 'read',
            shares: 'share',
            share: 'share',
            removeShare: 'share',
            shared: { public: 'a shared file, by its link' },
            recordings: 'recordings',
            recording: 'recordings',
            removeRecording: 'recordings',
            terminals: 'terminal',
            endTerminal: 'terminal',
            openTerminal: 'terminal',
            terminal: { ticket: 'ticket', permission: 'terminal' }
        });
        const { portico } = JSON.parse(
            readFileSync(new URL('../../../../extensions/filemanager/package.json', import.meta.url), 'utf8')
        ) as { portico: { permissions: Record<string, unknown> } };
        for (const permission of ['content', 'write', 'share', 'recordings', 'terminal']) {
            expect(JSON.stringify(portico.permissions[permission])).to.not.contain('viewer');
        }
    });
});

function tarHeader(name: string, size: number): Buffer {
    const header = Buffer.alloc(512);
    header.write(name, 0);
    header.write('0000644\0', 100);
    header.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
    header.write('00000000000\0', 136);
    header.write('        ', 148);
    header.write('0', 156);
    header.write('ustar\x0000', 257);
    header.write(
        `${header
            .reduce((sum, byte) => sum + byte, 0)
            .toString(8)
            .padStart(6, '0')}\0 `,
        148
    );
    return header;
}
