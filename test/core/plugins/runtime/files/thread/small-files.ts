import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import {
    chmodSync,
    existsSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    readlinkSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { definePlugin, type FailureError, type Files } from '@portico/sdk';

import type {
    Capabilities,
    Generation
} from '../../../../../../core/src/plugins/runtime/generation/generation.ts';
import { createPluginRig, type PluginRig } from '../../../../../support/plugins/host.ts';
import { until } from '../../../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const secret = 'the secret outside';
const most = 1_000;

let rig: PluginRig;
let folder: string;
let outside: string;
let forbidden: string;

beforeEach(async () => {
    rig = await createPluginRig();
    [folder, outside, forbidden] = [
        join(rig.root, 'machine/root'),
        join(rig.root, 'machine/outside'),
        join(rig.root, 'forbidden')
    ];
    [join(folder, 'sub'), join(outside, 'in'), forbidden].forEach((path) =>
        mkdirSync(path, { recursive: true })
    );
    writeFileSync(join(folder, 'a.txt'), 'inside');
    writeFileSync(join(folder, 'sub/b.txt'), 'below');
    for (const path of [join(outside, 'file'), join(outside, 'in/file'), join(forbidden, 'file')]) {
        writeFileSync(path, secret);
    }
});
afterEach(() => rig.close());

async function run(
    capabilities: Capabilities = { files: ['*'] },
    name = 'plugin'
): Promise<{ readonly generation: Generation; files(root: string): Files }> {
    let files!: (root: string) => Files;
    const generation = await rig.run(
        definePlugin({
            setup(ctx) {
                files = (root) => ctx.files(root);
            }
        }),
        { name, capabilities }
    );
    return { generation, files };
}

async function codeOf(work: Promise<unknown>): Promise<number> {
    return ((await work.then(() => null).catch((error: unknown) => error)) as FailureError).code;
}

/** Where the descriptors of this process lead that lie below the machine of the test. */
function openBelow(path: string): string[] {
    return readdirSync('/proc/self/fd').flatMap((fd) => {
        try {
            const target = readlinkSync(`/proc/self/fd/${fd}`);
            return target.startsWith(path) ? [target] : [];
        } catch {
            return [];
        }
    });
}

describe('Files.names, read and copyFile', () => {
    it('give what list, stat and open give', async () => {
        const files = (await run()).files(folder);
        symlinkSync('a.txt', join(folder, 'link'));
        writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0x61])]), 'bytes');
        writeFileSync(join(folder, 'größe'), 'ü');
        const [names, sub] = await Promise.all([files.names(''), files.names('sub')]);
        const byName = ({ name: a }: { name: string }, { name: b }: { name: string }): number =>
            a < b ? -1 : 1;
        expect([...names].sort(byName)).to.equal(
            [...(await files.list(''))].sort(byName).map(({ name, type }) => ({ name, type }))
        );
        expect(sub).to.equal([{ name: 'b.txt', type: 'file' }]);
        const read = await Promise.all(
            ['a.txt', 'sub/b.txt', '\uefffa', 'größe'].map((path) => files.read(path, most))
        );
        expect(read.map(({ bytes }) => Buffer.from(bytes).toString())).to.equal([
            'inside',
            'below',
            'bytes',
            'ü'
        ]);
        expect(read[1]?.entry).to.equal(await files.stat('sub/b.txt'));
        const part = await files.read('a.txt', 2);
        expect([Buffer.from(part.bytes).toString(), part.entry.size]).to.equal(['in', 6]);
        chmodSync(join(folder, 'a.txt'), 0o4751);
        const { entry, copied } = await files.copyFile('sub/copy', { root: folder, path: 'a.txt' }, { most });
        expect(copied).to.be.true();
        expect(entry).to.equal(await files.stat('a.txt'));
        expect(readFileSync(join(folder, 'sub/copy'), 'utf8')).to.equal('inside');
        expect(statSync(join(folder, 'sub/copy')).mode & 0o7777).to.equal(0o751);
    });

    it('do many calls together, and what fails for one touches no other', async () => {
        const files = (await run()).files(folder);
        const paths = Array.from({ length: 700 }, (_, index) => (index % 7 === 0 ? `none${index}` : 'a.txt'));
        const outcomes = await Promise.allSettled(paths.map((path) => files.read(path, 100_000)));
        expect(outcomes.map(({ status }) => status)).to.equal(
            paths.map((path) => (path === 'a.txt' ? 'fulfilled' : 'rejected'))
        );
        await until(() => openBelow(rig.root + '/machine').length === 0, 'all descriptors to be closed');
    });

    it('leave alone what is too large, and what is there', async () => {
        const files = (await run()).files(folder);
        const from = { root: folder, path: 'a.txt' };
        expect(await files.copyFile('new', from, { most: 5 })).to.include({ copied: false });
        expect(existsSync(join(folder, 'new'))).to.be.false();
        expect(await codeOf(files.copyFile('sub/b.txt', from, { most }))).to.equal(40900);
        expect(readFileSync(join(folder, 'sub/b.txt'), 'utf8')).to.equal('below');
        for (const bad of [-1, 0.5, 2 ** 20 + 1, NaN]) {
            await expect(files.read('a.txt', bad)).to.reject(TypeError);
            await expect(files.copyFile('new', from, { most: bad })).to.reject(TypeError);
        }
    });

    it('follow no link, leave no root, and wait for no pipe', async () => {
        const files = (await run()).files(folder);
        symlinkSync(outside, join(folder, 'door'));
        symlinkSync(join(outside, 'file'), join(folder, 'file-door'));
        execFileSync('mkfifo', [join(folder, 'pipe')]);
        for (const path of [
            'door/file',
            'door/in/file',
            'file-door',
            '../outside/file',
            `${outside}/file`,
            'sub/../../outside/file',
            'pipe',
            'sub',
            ''
        ]) {
            expect(await codeOf(files.read(path, most)), path).to.equal(40400);
            const from = { root: folder, path };
            expect(await codeOf(files.copyFile('taken', from, { most })), path).to.equal(40400);
        }
        for (const path of ['door', 'door/in', '..', '/', 'file-door', 'a.txt']) {
            expect(await codeOf(files.names(path)), path).to.equal(40400);
            const from = { root: folder, path: 'a.txt' };
            expect(await codeOf(files.copyFile(`${path}/new`, from, { most })), path).to.equal(40400);
        }
        expect(existsSync(join(folder, 'taken'))).to.be.false();
        expect(readdirSync(outside).sort()).to.equal(['file', 'in']);
    });

    it('enter nothing that no grant opens, as a source and as a target', async () => {
        const wide = (await run()).files(rig.root);
        const inner = 'machine/root/a.txt';
        expect(await codeOf(wide.names('forbidden'))).to.equal(40400);
        expect(await codeOf(wide.read('forbidden/file', most))).to.equal(40400);
        expect(
            await codeOf(wide.copyFile('stolen', { root: rig.root, path: 'forbidden/file' }, { most }))
        ).to.equal(40400);
        expect(
            await codeOf(wide.copyFile('forbidden/new', { root: rig.root, path: inner }, { most }))
        ).to.equal(40400);
        const narrow = (await run({ files: [folder] }, 'narrow')).files(folder);
        for (const root of [outside, forbidden, rig.root]) {
            expect(await codeOf(narrow.copyFile('new', { root, path: 'file' }, { most })), root).to.equal(
                50305
            );
        }
        expect(await codeOf((await run({}, 'none')).files(folder).read('a.txt', most))).to.equal(50305);
        expect([existsSync(join(rig.root, 'stolen')), existsSync(join(folder, 'new'))]).to.equal([
            false,
            false
        ]);
        expect(readdirSync(forbidden)).to.equal(['file']);
    });

    it('hold while folders and files are swapped with links', { timeout: 60_000 }, async () => {
        const files = (await run()).files(folder);
        const swapper = fork(
            fileURLToPath(new URL('../../../../../support/machine/swapper.mjs', import.meta.url)),
            [folder, outside],
            { execArgv: [] }
        );
        const gone = once(swapper, 'exit');
        await once(swapper, 'message');
        const seen = { read: 0, refused: 0 };
        try {
            // Both outcomes must be seen, or nothing was raced.
            for (let round = 0; round < 300 || seen.read === 0 || seen.refused === 0; round += 1) {
                const paths = Array.from({ length: 40 }, (_, at) =>
                    at % 2 === 0 ? 'swap/in/file' : 'swap/file'
                );
                const outcomes = await Promise.allSettled([
                    ...paths.map((path) => files.read(path, most)),
                    ...paths.map(async (path, at) => {
                        const name = `copy-${round}-${at}`;
                        await files.copyFile(name, { root: folder, path }, { most });
                        return files.read(name, most);
                    }),
                    files.copyFile(`swap/in/new-${round}`, { root: folder, path: 'a.txt' }, { most }),
                    files.copyFile(`swap/new-${round}`, { root: folder, path: 'a.txt' }, { most }),
                    files.names('swap').then((names) => {
                        expect(names.map(({ name }) => name)).to.not.include('only-outside');
                    })
                ]);
                for (const outcome of outcomes) {
                    if (outcome.status === 'rejected') {
                        expect([40400, 40900]).to.include((outcome.reason as FailureError).code);
                        seen.refused += 1;
                    } else if (outcome.value !== undefined && 'bytes' in outcome.value) {
                        expect(Buffer.from(outcome.value.bytes).toString()).to.not.contain(secret);
                        seen.read += 1;
                    }
                }
            }
        } finally {
            swapper.disconnect();
            await gone;
        }
        expect(readdirSync(outside).sort()).to.equal(['file', 'in']);
        expect(readdirSync(join(outside, 'in'))).to.equal(['file']);
    });

    it('end with the plugin, also in the middle', async () => {
        const { generation, files } = await run();
        const copies = Array.from({ length: 3_000 }, (_, index) =>
            files(folder).copyFile(`copy-${index}`, { root: folder, path: 'a.txt' }, { most: 2 ** 20 })
        );
        const outcomes = Promise.allSettled(copies);
        await until(() => existsSync(join(folder, 'copy-20')), 'some copies to be made');
        expect(generation.held().map(({ kind }) => kind)).to.include('thread');
        const report = await generation.close('the test ends it');
        const made = readdirSync(folder).length;
        expect(report.released).to.include([{ kind: 'thread', name: 'files' }]);
        expect(report.leaked).to.equal([]);
        expect((await outcomes).some(({ status }) => status === 'rejected')).to.be.true();
        expect(readdirSync(folder).length).to.equal(made);
        await until(() => openBelow(rig.root + '/machine').length === 0, 'all descriptors to be closed');
    });
});
