import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createKeyring } from '../../../../core/src/platform/keys/keyring.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let folder: string;

describe('createKeyring', () => {
    beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), 'portico-keys-'));
    });

    afterEach(() => rmSync(folder, { recursive: true, force: true }));

    it('opens what it sealed, also after a restart, under the same label only', () => {
        const sealed = createKeyring(folder).seal('settings', 'geheim ü');
        const keyring = createKeyring(folder);
        expect(keyring.open('settings', sealed)).to.equal('geheim ü');
        expect(keyring.seal('settings', 'geheim ü')).to.not.equal(sealed);
        expect(() => keyring.open('hosts', sealed)).to.throw();
        expect(() => keyring.open('settings', `${sealed.slice(0, -2)}AA`)).to.throw();
        expect(() => keyring.open('settings', 'v1.')).to.throw(Error, /damaged/);
    });

    it('makes no new master key where an old one must be', () => {
        expect(() => createKeyring(folder, { fresh: false })).to.throw(Error, /master is missing/);
        createKeyring(folder);
        expect(() => createKeyring(folder, { fresh: false })).to.not.throw();
    });

    it('derives one key a label', () => {
        const keyring = createKeyring(folder);
        expect(keyring.derive('a')).to.equal(keyring.derive('a'));
        expect(keyring.derive('a')).to.not.equal(keyring.derive('b'));
        expect(keyring.secret('jwt', 48))
            .to.have.length(48)
            .and.to.equal(createKeyring(folder).secret('jwt', 48));
    });

    it('keeps its files to itself, and refuses ones that others can read or that are damaged', () => {
        createKeyring(folder);
        const master = join(folder, 'keys', 'master');
        expect([
            statSync(master).mode & 0o777,
            statSync(join(folder, 'keys')).mode & 0o777,
            readFileSync(master).length
        ]).to.equal([0o600, 0o700, 32]);
        chmodSync(master, 0o644);
        expect(() => createKeyring(folder)).to.throw(Error, /only its owner/);
        chmodSync(master, 0o600);
        writeFileSync(master, 'short');
        expect(() => createKeyring(folder)).to.throw(Error, /damaged/);
    });
});
