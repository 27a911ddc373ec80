import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Client } from '../../../../support/panel/client.ts';
import { createPanelProcess } from '../../../../support/panel/process.ts';
import { createPluginFolder } from '../../../../support/plugins/folder.ts';
import { journalCapabilities, journalCode, setJournalFault } from '../../../../support/plugins/journal.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const passphrase = 'a rope across the river';
const base = '/api/import-export';
const token = 't0ken-of-the-journal';

const running = (client: Client): Promise<unknown> =>
    until(
        async () => ((await client.get('/api/plugins/journal')).data?.state === 'running' ? true : null),
        'the journal runs'
    );
const notesOf = async (client: Client): Promise<unknown> =>
    (await client.get('/api/plugins/journal/notes')).data;

describe('an import that is killed while a plugin takes its data back', () => {
    it('is written, and the plugin has its data after the next start', { timeout: 120_000 }, async () => {
        const folder = createPluginFolder();
        const path = folder.write('journal', journalCode, {
            manifest: { capabilities: journalCapabilities }
        });
        const panel = await createPanelProcess({ environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        try {
            await panel.start();
            const client = await panel.login();
            await running(client);
            await client.put('/api/plugins/journal', { settings: { token, greeting: 'Ahoy' } });
            await client.post('/api/plugins/journal/notes', { text: 'kept over the river' });
            const { data: document } = await client.post(`${base}/export`, {
                passphrase,
                sections: ['plugins']
            });
            await client.put('/api/plugins/journal', { settings: { token: null, greeting: null } });
            await client.post('/api/plugins/journal/notes', { text: 'not in the document' });

            setJournalFault(path, { restore: 'kills' });
            const { status } = await client.post(`${base}/import`, {
                document,
                passphrase,
                mode: 'replace',
                dryRun: false
            });
            expect(status).to.equal(202);
            await until(async () => (panel.running ? null : true), 'the panel is killed');

            await panel.start();
            const again = await panel.login();
            await running(again);
            await until(
                async () =>
                    JSON.stringify(await notesOf(again)) === '["kept over the river"]' ? true : null,
                'the data is back'
            );
            expect((await again.get('/api/plugins/journal/settings')).data).to.include({
                token,
                greeting: 'Ahoy'
            });
            const { data: tasks } = await again.get('/api/tasks?kind=import');
            expect([tasks[0].state, tasks[0].error, tasks[0].result.plugins]).to.equal([
                'succeeded',
                null,
                [
                    {
                        name: 'journal',
                        install: null,
                        data: 'waiting',
                        state: null,
                        notes: ['its data is kept until it runs']
                    }
                ]
            ]);
            expect(tasks[0].result.notes.at(-1)).to.contain('cut after everything was written');
            const [entry] = await until(async () => {
                const { data } = await again.get('/api/audit?resource=plugins&action=import');
                return data.length > 0
                    ? (data as { outcome: string; actor: { username: string }; changes: { after: object } }[])
                    : null;
            }, 'it is on record');
            expect([entry?.outcome, entry?.actor.username, entry?.changes.after]).to.equal([
                'success',
                'admin',
                { data: 'restored', version: '1.0.0', mode: 'replace' }
            ]);

            await again.post('/api/plugins/journal/notes', { text: 'written later' });
            await panel.end('SIGTERM');
            await panel.start();
            const last = await panel.login();
            await running(last);
            expect(await notesOf(last)).to.equal(['kept over the river', 'written later']);
        } finally {
            await panel.close();
            folder.remove();
        }
    });
});
