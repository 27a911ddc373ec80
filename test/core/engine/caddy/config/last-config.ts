import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readLastConfig, saveWhenLoaded } from '../../../../../core/src/engine/caddy/config/last-config.ts';
import { adminConfig, type EngineFolders, engineHome } from '../../../../../core/src/engine/files/home.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

describe('readLast', () => {
    let top: string;

    beforeEach(() => {
        top = mkdtempSync(join(tmpdir(), 'portico-last-'));
    });

    afterEach(() => rmSync(top, { recursive: true }));

    const homeOf = (name: string): EngineFolders => {
        const data = join(top, name);
        mkdirSync(data);
        return engineHome(data, null);
    };
    const keep = ({ lastFile }: EngineFolders, text: string): void => {
        mkdirSync(dirname(lastFile), { recursive: true });
        writeFileSync(lastFile, text);
    };

    it("gives what these folders' engine last took, and nothing that was cut or is no configuration", () => {
        const folders = homeOf('data');
        expect(readLastConfig(folders)).to.be.null();
        const config = { admin: adminConfig(folders), apps: {} };
        keep(folders, JSON.stringify(config));
        expect(readLastConfig(folders)).to.equal(config);
        for (const text of ['', '{"admin":{', 'null', '[]', '{}', '{"admin":null}']) {
            keep(folders, text);
            expect(readLastConfig(folders), text).to.be.null();
        }
    });

    it('keeps what was loaded, also where a kill came before the file had its name', async () => {
        const folders = homeOf('killed');
        const config = (mark: string) => ({ admin: adminConfig(folders), mark });
        keep(folders, '');
        for (const mark of ['one', 'two']) {
            await saveWhenLoaded(folders, JSON.stringify(config(mark)), () => Promise.resolve());
            expect(readLastConfig(folders)).to.equal(config(mark));
        }
        await expect(saveWhenLoaded(folders, '{}', () => Promise.reject(new Error('refused')))).to.reject(
            'refused'
        );
        expect(readLastConfig(folders)).to.equal(config('two'));
        renameSync(folders.lastFile, `${folders.lastFile}.tmp`);
        expect(readLastConfig(folders)).to.equal(config('two'));
    });

    it("leaves what came with a copy of another data folder, whose engine would listen at the other's socket", () => {
        const [former, copy] = [homeOf('former'), homeOf('copy')];
        keep(copy, JSON.stringify({ admin: adminConfig(former), apps: {} }));
        expect(readLastConfig(copy)).to.be.null();
    });
});
