import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    hashOf,
    listOutsideFolders,
    noteDataFolder,
    removeGoneFolders
} from '../../../../core/src/engine/files/outside-folders.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('removeGoneFolders', () => {
    let root: string;
    before(() => {
        root = mkdtempSync(join(tmpdir(), 'portico-outside-'));
    });
    after(() => rmSync(root, { recursive: true, force: true }));

    it('removes only folders whose data folder is known and gone', () => {
        const outside = join(root, 'var');
        const [live, gone] = [join(root, 'live'), join(root, 'gone')];
        mkdirSync(live);
        for (const dataDir of [live, gone]) {
            mkdirSync(join(outside, hashOf(dataDir)), { recursive: true });
            noteDataFolder(join(outside, hashOf(dataDir)), dataDir);
        }
        const unknown = join(outside, '0123456789abcdef');
        const foreign = join(outside, 'fedcba9876543210');
        mkdirSync(unknown);
        mkdirSync(foreign);
        noteDataFolder(foreign, gone); // a note that does not fit the name is believed by none
        mkdirSync(join(outside, 'something-else'));
        expect(
            listOutsideFolders([outside, join(root, 'none')])
                .map(({ state }) => state)
                .sort()
        ).to.equal(['gone', 'unknown', 'unknown', 'used']);
        expect(removeGoneFolders([outside])).to.equal([join(outside, hashOf(gone))]);
        expect([existsSync(join(outside, hashOf(live))), existsSync(unknown), existsSync(foreign)]).to.equal([
            true,
            true,
            true
        ]);
    });
});
