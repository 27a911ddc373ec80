/** Somebody with an account on the machine, but none on the panel. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { prepareDataDir } from '../../../core/src/data-dir.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const isRoot = process.getuid?.() === 0;
const nobody = 65_534;

describe('a user of the machine', () => {
    let folder = '';

    before(() => {
        folder = mkdtempSync(join(tmpdir(), 'portico-local-'));
        chmodSync(folder, 0o755);
    });
    after(() => rmSync(folder, { recursive: true }));

    it(`does not lie in wait with a data folder of their own${isRoot ? '' : ' (skipped: only root can give a folder away)'}`, { skip: !isRoot }, () => {
        for (const mode of [0o777, 0o700]) {
            const data = join(folder, `theirs-${mode}`);
            mkdirSync(data);
            chownSync(data, nobody, nobody);
            chmodSync(data, mode);
            expect(() => prepareDataDir(data)).to.throw(/belongs to another user \(65534\)/);
            expect([statSync(data).mode & 0o777, readdirSync(data)]).to.equal([mode, []]);
        }
    });

    it('does not lead the data folder elsewhere by a link', () => {
        mkdirSync(join(folder, 'elsewhere'), { mode: 0o755 });
        symlinkSync('elsewhere', join(folder, 'link'));
        expect(() => prepareDataDir(join(folder, 'link'))).to.throw(/is not a folder/);
        expect(statSync(join(folder, 'elsewhere')).mode & 0o777).to.equal(0o755);
    });
});
