import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Sqlite from 'better-sqlite3';

import { lockDataDir } from '../../../../core/src/platform/data-dir/data-dir.ts';
import { command, environmentOf, panelFolder, portico, removeFolder, shim } from '../../../support/panel/console.ts';
import { hashesOf } from '../../../support/plugins/panel.ts';
import { itUnless } from '../../../support/skip.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const itAsRoot = itUnless(
    process.getuid?.() === 0 ? undefined : 'only root can give folders away',
    // Lab's own type of `it` has more members than the skip needs.
    it
);

let folder: string;
let parent: string;
let from: string;

before(async () => {
    folder = await panelFolder();
    parent = join(dirname(folder), 'restored');
    from = join(dirname(folder), 'backup');
    mkdirSync(parent);
    cpSync(folder, from, { recursive: true });
    chmodSync(from, 0o700);
    writeFileSync(
        join(from, 'portico-panel.json'),
        JSON.stringify({ format: 1, version: '1.0.0', at: '2026-01-01T00:00:00.000Z', hostname: 'old', items: [] })
    );
    mkdirSync(join(from, 'plugin-data', 'notes', '1'), { recursive: true });
    for (let file = 0; file < 500; file += 1) {
        writeFileSync(join(from, 'plugin-data', 'notes', '1', `${file}.txt`), `${file}`.repeat(2_000));
    }
});
after(() => {
    removeFolder(folder);
    for (const each of [parent, from]) {
        rmSync(each, { recursive: true, force: true });
    }
});

describe('portico data check', { timeout: 120_000 }, () => {
    it('says that a whole folder holds, and changes nothing in it', async () => {
        const hashes = hashesOf(from);
        const names = readdirSync(from);
        const { code, stdout, stderr } = await command(['data', 'check', from]);
        expect(code, stdout + stderr).to.equal(0);
        expect(stdout).to.contain('by Portico 1.0.0').and.contain('none changed, removed or inserted');
        expect(stderr).to.contain('A panel can start on');
        expect(hashesOf(from)).to.equal(hashes);
        expect(readdirSync(from)).to.equal(names);
        const json = await command(['data', 'check', '--data-dir', folder, '--json']);
        expect([json.code, JSON.parse(json.stdout).ok]).to.equal([0, true]);
    });

    it('finds keys of another panel, a damaged database and a changed audit log, and exits with 1', async () => {
        const copy = join(parent, 'copy');
        const check = async (spoil: () => void): Promise<string> => {
            rmSync(copy, { recursive: true, force: true });
            cpSync(folder, copy, { recursive: true });
            chmodSync(copy, 0o700);
            spoil();
            const { code, stdout, stderr } = await command(['data', 'check', copy]);
            expect(code, stdout + stderr).to.equal(1);
            return stdout + stderr;
        };
        expect(
            await check(() => writeFileSync(join(copy, 'keys', 'master'), Buffer.alloc(32, 7)))
        ).to.contain('do not open what is sealed');
        expect(
            await check(() => {
                const db = new Sqlite(join(copy, 'portico.db'));
                db.exec("update audit_entries set action = 'other' where id = 1");
                db.close();
            })
        ).to.contain('CHANGED at entry 1');
        expect(
            await check(() => writeFileSync(join(copy, 'plugins.lock.json'), '{"format":1,"plugins":{}}'))
        ).to.contain('plugins.lock.json was changed');
        expect(await check(() => writeFileSync(join(copy, 'portico.db'), Buffer.alloc(8192, 1)))).to.contain(
            'damaged'
        );
        rmSync(copy, { recursive: true });
        expect((await command(['data', 'check', join(parent, 'none')])).code).to.equal(1);
        expect((await command(['data', 'check', 'a', 'b'])).code).to.equal(2);
    });
});

describe('portico data restore', { timeout: 240_000 }, () => {
    const restore = (to: string): ReturnType<typeof portico> =>
        portico(['data', 'restore', from, '--data-dir', to]);
    const abandoned = (): readonly string[] => readdirSync(parent).filter((name) => name.includes('.restore-'));

    it('makes the folder, whole, and only where there is none', async () => {
        const to = join(parent, 'one');
        const { code, stderr } = await restore(to);
        expect(code, stderr).to.equal(0);
        const { 'portico-panel.json': _note, ...wanted } = hashesOf(from);
        expect(hashesOf(to)).to.equal(wanted);
        expect(statSync(to).mode & 0o777).to.equal(0o700);
        expect((await command(['data', 'check', to])).code).to.equal(0);

        const again = await restore(to);
        expect([again.code, again.stderr]).to.equal([
            1,
            `portico: ${to} is not empty: move it away, or name another folder with --data-dir. Nothing was changed\n`
        ]);
        const lock = lockDataDir(to);
        const running = await restore(to);
        lock?.release();
        expect(running.stderr).to.contain('A panel runs on');
        expect(hashesOf(to)).to.equal(wanted);
        expect(abandoned()).to.equal([]);
    });

    it('refuses what is not a whole panel, and leaves nothing', async () => {
        const to = join(parent, 'two');
        const bad = join(parent, 'bad');
        expect((await command(['data', 'restore', folder, '--data-dir', to])).stderr).to.contain(
            'no portico-panel.json'
        );
        expect((await command(['data', 'restore', join(parent, 'none'), '--data-dir', to])).code).to.equal(2);
        cpSync(from, bad, { recursive: true });
        writeFileSync(join(bad, 'keys', 'master'), Buffer.alloc(32, 7));
        const { code, stderr } = await command(['data', 'restore', bad, '--data-dir', to]);
        expect(code).to.equal(1);
        expect(stderr).to.contain('is not whole, so nothing was changed');
        expect(existsSync(to)).to.be.false();
        expect(abandoned()).to.equal([]);
        rmSync(bad, { recursive: true });
    });

    it('killed at any moment, has made all of it or nothing, and the next one succeeds', async () => {
        const to = join(parent, 'three');
        let cut = 0;
        for (const delay of [0, 100, 400]) {
            rmSync(to, { recursive: true, force: true });
            const child = spawn(process.execPath, [shim, 'data', 'restore', from, '--data-dir', to], {
                env: environmentOf(),
                stdio: 'ignore'
            });
            const ended = once(child, 'exit');
            for (let tries = 0; abandoned().length === 0 && child.exitCode === null && tries < 1_000; tries += 1) {
                await wait(5);
            }
            await wait(delay);
            child.kill('SIGKILL');
            await ended;
            if (existsSync(to)) {
                expect((await command(['data', 'check', to])).code).to.equal(0);
            } else {
                cut += 1;
            }
        }
        expect(cut).to.be.above(0);
        rmSync(to, { recursive: true, force: true });
        const { code, stderr } = await restore(to);
        expect(code, stderr).to.equal(0);
        expect(abandoned()).to.equal([]);
    });

    itAsRoot('gives the restored folder to the account that the empty one belongs to', async () => {
        const to = join(parent, 'four');
        mkdirSync(to, { mode: 0o700 });
        chownSync(to, 65534, 65534);
        expect((await restore(to)).code).to.equal(0);
        expect([statSync(to).uid, statSync(join(to, 'keys', 'master')).uid]).to.equal([65534, 65534]);
    });
});
