import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type BackupItem, type Context, definePlugin, type Outcome } from '@portico/sdk';

import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

type Given = Outcome<readonly BackupItem[] | void>;

describe('backup.collect and backup.restore', () => {
    let rig: PluginRig;
    let collector: Context;
    let giver: Context;
    let folder: string;
    let give: (lent: string, only: readonly string[] | undefined) => Promise<readonly BackupItem[]>;

    beforeEach(async () => {
        rig = await createPluginRig();
        mkdirSync(join(rig.root, 'granted'));
        mkdirSync(join(rig.root, 'forbidden'));
        writeFileSync(join(rig.root, 'granted', 'site.txt'), 'site');
        writeFileSync(join(rig.root, 'secret.txt'), 'secret');
        await rig.run(
            definePlugin({
                setup(ctx) {
                    collector = ctx;
                }
            }),
            { name: 'keeper', capabilities: { collect: ['backup.collect', 'backup.restore'] } }
        );
        await rig.run(
            definePlugin({
                setup(ctx) {
                    giver = ctx;
                    ctx.hooks.tap('backup.collect', ({ folder: lent, only }) => give(lent, only));
                    ctx.hooks.tap('backup.restore', async ({ folder: lent, items }) => {
                        const file = await ctx.files(lent).open(items[0]?.path.slice(lent.length + 1) ?? '');
                        const text = await file.readFile('utf8');
                        await file.close();
                        return [{ item: items[0]?.name ?? '', ok: text === 'dumped' }];
                    });
                }
            }),
            {
                name: 'giver',
                capabilities: {
                    taps: ['backup.collect', 'backup.restore'],
                    files: [join(rig.root, 'granted')]
                }
            }
        );
        folder = join(collector.dataDir, 'scratch');
        mkdirSync(folder);
    });
    afterEach(() => rig.close());

    const collect = async (lent: string, only?: readonly string[]): Promise<readonly Given[]> =>
        Array.fromAsync(
            collector.hooks.collect('backup.collect', () => ({
                folder: lent,
                ...(only === undefined ? {} : { only })
            }))
        );
    const refusalOf = async (lent: string): Promise<string> => {
        const [outcome] = await collect(lent);
        return outcome?.ok === false ? outcome.message : 'it was taken';
    };

    it('open the lent folder to the tap alone, and only until it ends', async () => {
        const kept: FileHandle[] = [];
        give = async (lent, only) => {
            const file = await giver.files(lent).open('dump.sql', 'wx', 0o600);
            await file.writeFile('dumped');
            kept.push(file);
            expect(only).to.equal(['sql']);
            await expect(giver.files(collector.dataDir).list('')).to.reject(); // beside the lent folder
            return [
                { name: 'sql', title: 'A dump', path: 'dump.sql', bytes: 6 },
                { name: 'site', title: 'A file', path: join(rig.root, 'granted', 'site.txt') }
            ];
        };
        const [outcome] = await collect(folder, ['sql']);
        expect(outcome).to.equal({
            plugin: 'giver',
            version: '1.0.0',
            ok: true,
            result: [
                { name: 'sql', title: 'A dump', path: join(folder, 'dump.sql'), bytes: 6 },
                { name: 'site', title: 'A file', path: join(rig.root, 'granted', 'site.txt') }
            ]
        });
        expect(readFileSync(join(folder, 'dump.sql'), 'utf8')).to.equal('dumped');
        await expect(giver.files(folder).list('')).to.reject(/files/);
        await expect(kept[0]?.write('more') ?? Promise.resolve()).to.reject();
        const restored = await Array.fromAsync(
            collector.hooks.collect('backup.restore', () => ({
                folder,
                version: '1.0.0',
                items: [{ name: 'sql', title: 'A dump', path: join(folder, 'dump.sql') }]
            }))
        );
        expect(restored).to.equal([
            { plugin: 'giver', version: '1.0.0', ok: true, result: [{ item: 'sql', ok: true }] }
        ]);
    });

    it('take no item from where the giver may not read', async () => {
        symlinkSync(rig.root, join(folder, 'away'));
        const bad = [
            join(rig.root, 'secret.txt'),
            '../../../secret.txt',
            'away/secret.txt',
            join(folder, 'away', 'secret.txt'),
            join(rig.root, 'forbidden'),
            'missing.txt'
        ];
        for (const path of bad) {
            give = async () => [{ name: 'one', title: 'One', path }];
            expect(await refusalOf(folder), path).to.not.equal('it was taken');
        }
        for (const item of [{ name: 'a/b' }, { name: '' }, { name: 'a', bytes: -1 }, { name: 7 }]) {
            give = async () => [{ title: 'One', path: '.', ...item }] as never; // wrong on purpose
            expect(await refusalOf(folder), JSON.stringify(item)).to.contain('An item has a name');
        }
        give = async () => [
            { name: 'one', title: 'One', path: '.' },
            { name: 'one', title: 'One', path: '.' }
        ];
        expect(await refusalOf(folder)).to.contain('same name');
    });

    it('lend no folder that the collector could not open itself', async () => {
        let asked = false;
        give = async () => {
            asked = true;
            return [];
        };
        mkdirSync(join(rig.root, 'open'));
        symlinkSync(join(rig.root, 'open'), join(collector.dataDir, 'link'));
        for (const lent of [
            join(rig.root, 'open'),
            join(collector.dataDir, 'link'),
            '/',
            'relative',
            '/none'
        ]) {
            expect(await refusalOf(lent), lent).to.not.equal('it was taken');
        }
        expect(asked).to.be.false();
        expect(existsSync(join(rig.root, 'open', 'dump.sql'))).to.be.false();
    });
});
