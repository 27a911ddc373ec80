/** What a panel that was killed leaves of approvals: nothing runs twice. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { until } from '../../support/until.ts';
import { writeHelper } from './helper.ts';
import { base, contentOf, letPass, pluginFolder, type ToolData } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 120_000;

describe('mcpserver after kill -9', { timeout: limitMs }, () => {
    let panel: PanelProcess;
    let helper: ReturnType<typeof writeHelper>;
    let folder: string;

    before({ timeout: limitMs }, async () => {
        helper = writeHelper();
        folder = pluginFolder();
        panel = await createPanelProcess({
            environment: { PORTICO_PLUGIN_DIRS: [join(folder, 'plugins'), helper.path].join(':') }
        });
        await panel.start();
    });
    after({ timeout: limitMs }, async () => {
        await panel?.close();
        helper.remove();
        rmSync(folder, { recursive: true, force: true });
    });

    it('counts what was being executed as failed, keeps what was approved or waits, ends what came too late, and runs nothing again', async () => {
        const admin = await panel.login();
        const running = (): Promise<unknown> =>
            until(async () => {
                const states = await Promise.all(
                    ['mcpserver', 'helper'].map(
                        async (name) => (await admin.get(`/api/plugins/${name}`)).data?.state
                    )
                );
                return states.every((state) => state === 'running');
            }, 'the plugins to run');
        await running();
        const settings = { mode: 'write', approvalWaitSeconds: 0 };
        await admin.put('/api/plugins/mcpserver', { settings });
        const { data } = await admin.post('/api/auth/tokens', {
            name: 'agent',
            permissions: ['mcpserver:use', 'helper:read', 'helper:write']
        });
        const connect = async (): Promise<Client> => {
            const client = new Client(
                { name: 'test', version: '1' },
                { versionNegotiation: { mode: 'auto' } }
            );
            const url = new URL(`http://127.0.0.1:${panel.port}${base}/mcp`);
            const headers = { authorization: `Bearer ${data.token}` };
            await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
            return client;
        };
        const call = async (client: Client, name: string, payload: object): Promise<ToolData> =>
            contentOf(await client.callTool({ name, arguments: { payload } }));
        const state = async (id: number): Promise<ToolData> =>
            (await admin.get(`${base}/approvals/${id}`)).data;

        const client = await connect();
        const hang = await call(client, 'helper__hang', {});
        const note = await call(client, 'helper__note', { text: 'later' });
        const late = await call(client, 'helper__note', { text: 'too late' });
        const open = await call(client, 'helper__note', { text: 'decided afterwards' });
        for (const { approval } of [hang, note, late]) {
            await admin.post(`${base}/approvals/${approval.id}/approve`, { hash: approval.hash });
        }
        const cut = call(client, 'helper__hang', {}).catch(() => null);
        await until(async () => (await admin.get('/api/plugins/helper/done')).data?.done.includes('hang'));
        expect(await state(hang.approval.id)).to.include({ state: 'approved', code: null });

        await panel.end('SIGKILL');
        await cut;
        letPass(panel.dataDir, late.approval.id);
        await panel.start();
        await running();
        expect(await state(hang.approval.id)).to.include({ state: 'failed', code: 50300 });
        expect(await state(note.approval.id)).to.include({ state: 'approved' });
        expect(await state(late.approval.id)).to.include({ state: 'expired' });
        expect(await state(open.approval.id)).to.include({ state: 'pending' });
        const next = await connect();
        const again = await call(next, 'helper__hang', {});
        expect(again).to.include({ code: 42850 });
        expect(again.approval.id).to.not.equal(hang.approval.id);
        expect(await call(next, 'helper__note', { text: 'later' })).to.include({ code: 0 });
        expect(await call(next, 'helper__note', { text: 'later' })).to.include({ code: 42850 });
        const asked = await call(next, 'helper__note', { text: 'too late' });
        expect(asked).to.include({ code: 42850 });
        expect(asked.approval.id).to.not.equal(late.approval.id);
        const { hash } = open.approval;
        expect((await admin.post(`${base}/approvals/${open.approval.id}/approve`, { hash })).code).to.equal(
            0
        );
        expect(await call(next, 'helper__note', { text: 'decided afterwards' })).to.include({ code: 0 });
        expect((await admin.get('/api/plugins/helper/done')).data.done).to.equal([
            'later',
            'decided afterwards'
        ]);
        await next.close();
    });
});
