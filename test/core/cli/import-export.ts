import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    command,
    panelFolder,
    type Ran,
    removeFolder,
    type RunningPanel,
    startPanel
} from '../../support/panel/console.ts';
import { createPluginFolder } from '../../support/plugins/folder.ts';
import { journalCapabilities, journalCode } from '../../support/plugins/journal.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const passphrase = 'through the quiet harbour';

describe('portico export and portico import', () => {
    let dataDir: string;
    let panel: RunningPanel;
    const run = (args: string[], input?: string): Promise<Ran> =>
        command([...args, '--data-dir', dataDir], input === undefined ? {} : { input });

    before(async () => {
        dataDir = await panelFolder();
        panel = await startPanel(dataDir);
    });

    after(async () => {
        await panel.stop();
        removeFolder(dataDir);
    });

    it('brings a Caddyfile in, writes the panel out, and brings that back', async () => {
        const caddyfile = join(dataDir, 'Caddyfile');
        writeFileSync(caddyfile, 'http://cli.test {\n    reverse_proxy 127.0.0.1:3000\n}\n', { mode: 0o644 });
        const looked = await run(['import', caddyfile, '--dry-run']);
        expect([looked.code, looked.stdout]).to.equal([0, '']);
        expect(looked.stderr).to.equal(
            'hosts: create 1, update 0, delete 0, unchanged 0\nNothing was changed.\n'
        );
        const imported = await run(['import', caddyfile, '--json']);
        expect([imported.code, JSON.parse(imported.stdout).sections.hosts.create]).to.equal([
            0,
            ['cli.test']
        ]);

        const file = join(dataDir, 'panel.export');
        const exported = await run(['export', file, '--password-stdin'], `${passphrase}\n`);
        expect([
            exported.code,
            exported.stdout,
            exported.stderr.trim().endsWith('with the secrets, sealed.')
        ]).to.equal([0, '', true]);
        expect(statSync(file).mode & 0o777).to.equal(0o600);
        expect(readFileSync(file, 'utf8'))
            .to.contain('cli.test')
            .and.not.contain('$argon2id$v=')
            .and.not.contain(passphrase);
        expect((await run(['export', file])).code).to.equal(2);
        const wrong = await run(['import', file, '--password-stdin', '--dry-run'], 'something else\n');
        expect([wrong.code, wrong.stderr.includes('passphrase is wrong')]).to.equal([1, true]);
        const back = await run(
            ['import', file, '--password-stdin', '--replace', '--json'],
            `${passphrase}\n`
        );
        expect([back.code, JSON.parse(back.stdout).sections.hosts.counts]).to.equal([
            0,
            { create: 0, update: 0, delete: 0, unchanged: 1 }
        ]);
        writeFileSync(file, readFileSync(file, 'utf8').slice(0, -20));
        const cut = await run(['import', file, '--password-stdin', '--dry-run'], `${passphrase}\n`);
        expect([cut.code, cut.stderr.includes('is damaged')]).to.equal([2, true]);
    });

    it('exports the folder of a panel that does not run, as the running one does', async () => {
        const online = JSON.parse((await run(['export'])).stdout);
        await panel.stop();
        const offline = await run(['export']);
        expect([offline.code, offline.stderr]).to.equal([0, '']);
        expect(JSON.parse(offline.stdout).sections).to.equal(online.sections);
        const refused = await run(['import', join(dataDir, 'Caddyfile')]);
        expect([refused.code, refused.stderr]).to.equal([
            1,
            'portico: The panel does not run: start it first, since the proxy engine has to check what is imported\n'
        ]);
        panel = await startPanel(dataDir);
    });
});

describe('portico export and portico import with plugins', { timeout: 120_000 }, () => {
    it('carry their own data while the panel runs, and say what is left out where it does not', async () => {
        const folder = createPluginFolder();
        folder.write('journal', journalCode, { manifest: { capabilities: journalCapabilities } });
        const dataDir = await panelFolder();
        const panel = await startPanel(dataDir, { env: { PORTICO_PLUGIN_DIRS: folder.path } });
        const run = (args: string[], input?: string): Promise<Ran> =>
            command([...args, '--data-dir', dataDir], input === undefined ? {} : { input });
        try {
            const sealed = ['export', '--sections', 'plugins', '--password-stdin'];
            let online = await run([...sealed, '--complete'], `${passphrase}\n`);
            for (const end = performance.now() + 30_000; online.code !== 0 && performance.now() < end;) {
                expect(online.stderr).to.contain('its own data is left out, since it does not run');
                online = await run([...sealed, '--complete'], `${passphrase}\n`);
            }
            expect([online.code, online.stderr]).to.equal([0, '']);
            const plain = await run(['export', '--sections', 'plugins']);
            expect([plain.code, plain.stderr]).to.equal([
                0,
                'journal: its own data is left out, since there is no passphrase to seal it under\n'
            ]);
            const refused = await run(['export', '--sections', 'plugins', '--complete']);
            expect([
                refused.code,
                refused.stdout,
                refused.stderr.includes('passphrase is required')
            ]).to.equal([1, '', true]);

            const file = join(dataDir, 'moved.json');
            writeFileSync(file, online.stdout);
            const back = await run(['import', file, '--password-stdin', '--replace'], `${passphrase}\n`);
            expect([back.code, back.stderr]).to.equal([
                0,
                'plugins: create 0, update 0, delete 0, unchanged 1\nplugin journal: data restored, running\nDone.\n'
            ]);
            const document = JSON.parse(plain.stdout) as { sections: { plugins: object[] } };
            writeFileSync(
                file,
                JSON.stringify({
                    ...document,
                    notes: undefined,
                    sections: {
                        plugins: [
                            {
                                name: 'nowhere',
                                package: '@acme/portico-plugin-nowhere',
                                version: '9.9.9',
                                enabled: true,
                                settings: {}
                            }
                        ]
                    }
                })
            );
            const looked = await run(['import', file, '--install-plugins', '--dry-run']);
            expect([looked.code, looked.stderr]).to.equal([
                0,
                [
                    'plugins: create 1, update 0, delete 0, unchanged 0',
                    '  nowhere: not installed: @acme/portico-plugin-nowhere 9.9.9; it is installed from the registry',
                    'plugin nowhere: install planned',
                    'Nothing was changed.',
                    ''
                ].join('\n')
            ]);

            await panel.stop();
            const offline = await run(sealed, `${passphrase}\n`);
            expect([offline.code, offline.stderr]).to.equal([
                0,
                'journal: its own data is left out, since it does not run\n'
            ]);
            expect((JSON.parse(offline.stdout) as { sections: object }).sections).to.equal(
                (JSON.parse(online.stdout) as { sections: object }).sections
            );
        } finally {
            await panel.stop();
            removeFolder(dataDir);
            folder.remove();
        }
    });
});
