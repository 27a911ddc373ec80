/** What a panel loads before its first request: counted, because each module takes time at every start. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createPanelProcess, type PanelProcess, processPassword } from '../support/panel/process.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const recorder = pathToFileURL(join(import.meta.dirname, '../support/panel/record-modules.ts'));
/** 1,347 were loaded when this was written. Each takes about a third of a millisecond of every start. */
const mostModules = 1_360;
/** Needed by few panels, or for few requests. */
const later = [
    '@npmcli/arborist',
    '@noble/hashes',
    'minipass',
    'nodemailer',
    'otplib',
    'pacote',
    'ssri',
    'tar',
    'uqr',
    'zod'
];

describe('the modules that a panel without plugins loads', () => {
    const folder = mkdtempSync(join(tmpdir(), 'portico-modules-'));
    const file = join(folder, 'modules');
    let panel: PanelProcess | undefined;
    let atStart: readonly string[] = [];

    const loaded = (): readonly string[] => [...new Set(readFileSync(file, 'utf8').trim().split('\n'))];
    const named = (modules: readonly string[], name: string): readonly string[] =>
        modules.filter((module) => module.includes(`/node_modules/${name}/`));

    before({ timeout: 60_000 }, async () => {
        panel = await createPanelProcess({
            environment: { MODULES_FILE: file },
            node: ['--import', recorder.href],
            // The bundle is split where these are imported: what is loaded later here lies in a part of its own there.
            bySource: true
        });
        await panel.start();
        atStart = loaded();
    });

    after(async () => {
        await panel?.close();
        rmSync(folder, { recursive: true, force: true });
    });

    it('are no more at its start than when this was written, and a few', () => {
        expect(named(atStart, '@hapi/hapi').length).to.be.above(0);
        expect(atStart.length).to.be.at.most(mostModules);
    });

    it('have none of the packages that only some requests need', () => {
        expect(later.filter((name) => named(atStart, name).length > 0)).to.equal([]);
    });

    it('have only those parts of semver that the panel uses', () => {
        expect(named(atStart, 'semver').filter((module) => module.endsWith('/semver/index.js'))).to.equal([]);
    });

    it('get those of the second factor with its first use', async () => {
        const client = await panel!.login();
        const { code, data } = await client.call('POST', '/api/auth/totp', {
            body: { password: processPassword }
        });
        expect(code).to.equal(0);
        expect(data.uri as string).to.startWith('otpauth://totp/');
        expect(later.filter((name) => named(loaded(), name).length > 0)).to.equal([
            '@noble/hashes',
            'otplib',
            'uqr'
        ]);
    });
});
