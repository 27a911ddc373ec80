import { spawn } from 'node:child_process';
import {
    chmodSync,
    chownSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    rmSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    bridgeOf,
    entryText,
    fitsEntry,
    parseEntry
} from '../../../../../core/src/engine/files/table/entry.ts';
import { folderOf, nameOfFolder } from '../../../../../core/src/engine/files/table/name.ts';
import { SiteTable } from '../../../../../core/src/engine/files/table/table.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const nobody = 65534;
const entry = (dial: string | null, state: 'on' | 'off' = 'on'): string =>
    entryText({ state, tls: 'none', profile: '0123456789abcdef', dial });

/** Makes the folder one in which the name `a.test` may change and no other may come; root, who may do everything, takes another account for a moment. */
async function asSomebodyElse(root: string, work: () => Promise<unknown>): Promise<void> {
    const isRoot = process.getuid?.() === 0;
    chmodSync(dirname(root), 0o755);
    chmodSync(root, 0o555);
    if (isRoot) {
        chownSync(join(root, 'a.test'), nobody, nobody);
        readdirSync(join(root, 'a.test')).forEach((file) =>
            chownSync(join(root, 'a.test', file), nobody, nobody)
        );
        process.seteuid?.(nobody);
    }
    try {
        await work();
    } finally {
        if (isRoot) {
            process.seteuid?.(0);
        }
        chmodSync(root, 0o700);
    }
}

describe('SiteTable', () => {
    let folder: string;
    let root: string;
    let table: SiteTable;
    const owner = { name: 'x', uid: 0, gid: 0, switched: false };
    const files = (name: string): readonly string[] => readdirSync(join(root, name));

    beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), 'portico-table-'));
        root = join(folder, 'table');
        mkdirSync(root);
        table = new SiteTable({ table: root, owner });
    });

    afterEach(() => {
        rmSync(folder, { recursive: true, force: true });
    });

    it('makes, moves and removes names, wildcards in folders of no DNS name', async () => {
        const one = entry('127.0.0.1:1');
        const two = entry('[::1]:2');
        await table.apply([
            { name: 'a.test', from: null, to: one },
            { name: '*.a.test', from: null, to: entry(null) }
        ]);
        expect(await table.read()).to.equal(
            new Map([
                ['a.test', one],
                ['*.a.test', entry(null)]
            ])
        );
        expect(readdirSync(root).sort()).to.equal(['+.a.test', 'a.test']);
        expect(statSync(join(root, 'a.test')).mode & 0o777).to.equal(0o700);
        await table.apply([{ name: 'a.test', from: one, to: two }]);
        expect(files('a.test')).to.equal([two]);
        await table.apply([
            { name: 'a.test', from: two, to: null },
            { name: '*.a.test', from: entry(null), to: null }
        ]);
        expect(readdirSync(root)).to.equal([]);
    });

    it('does a move again, and one whose start is not as it says, with the same end', async () => {
        const one = entry('127.0.0.1:1');
        const two = entry('127.0.0.1:2');
        for (const patch of [
            { name: 'a.test', from: null, to: one },
            { name: 'a.test', from: one, to: two },
            { name: 'a.test', from: two, to: null }
        ]) {
            await table.apply([patch]);
            await table.apply([patch]);
            expect((await table.read()).get('a.test') ?? null).to.equal(patch.to);
        }

        await table.apply([{ name: 'a.test', from: one, to: two }]);
        expect(files('a.test')).to.equal([two]);
        writeFileSync(join(root, 'a.test', 'junk'), '');
        await table.apply([{ name: 'a.test', from: null, to: one }]);
        expect(files('a.test')).to.equal([one]);
        writeFileSync(join(root, 'a.test', 'junk'), '');
        await table.apply([{ name: 'a.test', from: one, to: null }]);
        expect(readdirSync(root)).to.equal([]);
    });

    it('never leaves the folder, whatever name or entry it is given', async () => {
        const good = entry('127.0.0.1:1');
        for (const name of [
            '..',
            '.',
            '',
            '../x',
            'a/b',
            '/etc',
            'a..b',
            'A.test',
            'a.test.',
            '+.a.test',
            '*',
            '*.',
            '*.*.a',
            'a\0b',
            'a b',
            'ä.test',
            `${'a'.repeat(254)}`,
            '-a',
            'a-.b'
        ]) {
            await expect(table.apply([{ name, from: null, to: good }])).to.reject(/not a name/);
            await expect(table.reconcile(new Map([[name, good]]))).to.reject(/not a name/);
        }

        for (const to of [
            '..',
            '',
            'x',
            '../x',
            `${good}/x`,
            'on,none,0123456789abcdef,a b',
            'on,none,0123456789abcdef,*',
            'on,none,0123',
            `${good}${'a'.repeat(255)}`
        ]) {
            await expect(table.apply([{ name: 'a.test', from: null, to }])).to.reject(/not an entry/);
        }

        expect(readdirSync(folder)).to.equal(['table']);
        expect(readdirSync(root)).to.equal([]);
    });

    it('finds every difference, tells it, and makes the table as wanted without following links', async () => {
        const outside = join(folder, 'outside');
        mkdirSync(outside);
        writeFileSync(join(outside, 'keep'), '');
        const wanted = new Map([
            ['same.test', entry('h:1')],
            ['other.test', entry('h:2')],
            ['missing.test', entry('h:3')],
            ['double.test', entry('h:4')],
            ['file.test', entry('h:5')],
            ['empty.test', entry('h:6')],
            ['link.test', entry('h:7')],
            ['*.w.test', entry('h:8')]
        ]);
        for (const name of [
            'same.test',
            'other.test',
            'double.test',
            'empty.test',
            'extra.test',
            'NOT A NAME',
            '.hidden'
        ]) {
            mkdirSync(join(root, name));
        }

        writeFileSync(join(root, 'same.test', entry('h:1')), '');
        writeFileSync(join(root, 'other.test', entry('h:9', 'off')), '');
        writeFileSync(join(root, 'double.test', entry('h:3')), '');
        writeFileSync(join(root, 'double.test', entry('h:4')), '');
        writeFileSync(join(root, 'extra.test', entry('h:1')), '');
        writeFileSync(join(root, 'file.test'), '');
        writeFileSync(join(root, 'stray'), '');
        symlinkSync(outside, join(root, 'link.test'));
        symlinkSync(outside, join(root, 'stray-link'));

        const told = await table.compare(wanted);
        expect(told.map(({ name }) => name)).to.equal(
            [
                '*.w.test',
                '.hidden',
                'NOT A NAME',
                'double.test',
                'empty.test',
                'extra.test',
                'file.test',
                'link.test',
                'missing.test',
                'other.test',
                'stray',
                'stray-link'
            ].flatMap((name) => (['file.test', 'link.test'].includes(name) ? [name, name] : [name]))
        );
        await table.reconcile(wanted);
        expect(await table.read()).to.equal(wanted);
        expect(readdirSync(root).sort()).to.equal([...wanted.keys()].map(folderOf).sort());
        expect(files('double.test')).to.equal([entry('h:4')]);
        expect(existsSync(join(outside, 'keep'))).to.be.true();
        expect(await table.reconcile(wanted)).to.equal([]);
        expect(await table.reconcile(new Map())).to.have.length(wanted.size);
        expect(readdirSync(root)).to.equal([]);
    });

    it(
        "gives only the engine's group the right to look, when the engine is another user",
        { skip: process.getuid?.() !== 0 },
        async () => {
            const other = new SiteTable({
                table: root,
                owner: { name: 'y', uid: 12345, gid: 23456, switched: true }
            });
            await other.apply([{ name: 'a.test', from: null, to: entry(null) }]);
            const stats = statSync(join(root, 'a.test'));
            expect([stats.uid, stats.gid, stats.mode & 0o777]).to.equal([0, 23456, 0o750]);
        }
    );

    it('tells a failure of the disk, and has done the moves before it', async () => {
        await table.apply([{ name: 'a.test', from: null, to: entry('h:1') }]);
        await asSomebodyElse(root, () =>
            expect(
                table.apply([
                    { name: 'a.test', from: entry('h:1'), to: entry('h:2') },
                    { name: 'b.test', from: null, to: entry('h:1') }
                ])
            ).to.reject(/EACCES/)
        );
        expect(await table.read()).to.equal(new Map([['a.test', entry('h:2')]]));
    });

    it('shows each name old or new after a kill at any moment', { timeout: 30_000 }, async () => {
        const entries = [entry('h:1'), entry('h:2'), null];
        const script = `
            import { SiteTable } from ${JSON.stringify(fileURLToPath(new URL('../../../../../core/src/engine/files/table/table.ts', import.meta.url)))};
            const table = new SiteTable({ table: ${JSON.stringify(root)}, owner: { switched: false } });
            const entries = ${JSON.stringify(entries)};
            process.stdout.write('go');
            for (let turn = 0; ; turn += 1) {
                await table.apply(Array.from({ length: 20 }, (_, n) => ({ name: 'n' + n + '.test', from: entries[(turn + 2) % 3], to: entries[turn % 3] })));
            }`;
        for (let turn = 0; turn < 8; turn += 1) {
            const child = spawn(
                process.execPath,
                ['--input-type=module', '--conditions=portico-source', '--eval', script],
                { stdio: ['ignore', 'pipe', 'ignore'] }
            );
            await new Promise((resolve) => child.stdout.once('data', resolve));
            await new Promise((resolve) => setTimeout(resolve, 5 + turn * 3));
            child.kill('SIGKILL');
            await new Promise((resolve) => child.once('exit', resolve));
            for (const name of readdirSync(root)) {
                const found = files(name);
                expect(found.length).to.be.at.most(1);
                expect(found.every((file) => entries.includes(file))).to.be.true();
            }

            const wanted = new Map([['n0.test', entry('h:1')]]);
            await table.reconcile(wanted);
            expect(await table.read()).to.equal(wanted);
        }
    });
});

describe('the names and entries of the table', () => {
    it('reads back what it wrote', () => {
        for (const name of ['a', 'a.test', '*.a.test', 'xn--bcher-kva.test', '_dmarc.a.test', '1.2.3.4']) {
            expect(nameOfFolder(folderOf(name))).to.equal(name);
        }

        for (const folder of ['*.a.test', '+', '+.', '++.a', 'A', '..', 'a/b']) {
            expect(nameOfFolder(folder)).to.be.null();
        }

        const whole = {
            state: 'maintenance',
            tls: 'demand',
            profile: '0123456789abcdef',
            dial: '[fe80::1]:443'
        } as const;
        expect(parseEntry(entryText(whole))).to.equal(whole);
        expect(parseEntry('on,none,0123456789abcdef,')).to.be.null();
        expect(fitsEntry(`${'a'.repeat(200)}:1`)).to.be.true();
        expect(fitsEntry(`${'a'.repeat(240)}:1`)).to.be.false();
        expect(fitsEntry('a/b:1')).to.be.false();
        const on = { ...whole, state: 'on' } as const;
        const former = entryText({ ...on, profile: 'fedcba9876543210' });
        const bridge = bridgeOf(former, entryText({ ...on, dial: null }));
        expect(bridge).to.equal('on,demand,0123456789abcdef~fedcba9876543210,[fe80::1]:443');
        expect(parseEntry(bridge ?? '')).to.equal({ ...on, dial: null });
        expect(bridgeOf(entryText(whole), entryText(on))).to.be.null();
        const long = `${'a'.repeat(200)}:1`;
        expect(bridgeOf(entryText({ ...on, dial: long }), entryText({ ...on, dial: long }))).to.be.null();
    });
});
