import { readdirSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createPanelProcess, type PanelProcess } from '../../../support/panel/process.ts';
import { type Bind, noBind, startBind } from '../../../support/servers/bind.ts';
import { type Pebble, startPebble } from '../../../support/servers/pebble.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { describe, before, after } = lab;
const it = itUnless(noBind, lab.it);

let panel: PanelProcess;
let bind: Bind;
let pebble: Pebble;

before(async () => {
    if (noBind !== undefined) {
        return;
    }
    bind = await startBind();
    pebble = await startPebble({ dns: `${bind.address}:53` });
    panel = await createPanelProcess();
    await panel.start();
});

after(async () => {
    await panel?.close();
    await pebble?.close();
    await bind?.close();
});

describe('a panel that is killed in the middle of an order', { timeout: 90_000 }, () => {
    it('owns up to it, and removes at the next attempt what it left in the zone', async () => {
        const client = await panel.login();
        await client.put('/api/settings', {
            'panel.outboundAllow': ['127.0.0.1'],
            'dns.nameservers': [bind.address],
            'certificates.caRoots': pebble.root
        });
        await client.post('/api/dns-providers', {
            name: 'bind',
            type: 'rfc2136',
            credentials: bind.credentials,
            isDefault: true
        });
        pebble.answer = (method, path) =>
            method === 'POST' && path.startsWith('/chalZ') ? new Promise<null>(() => undefined) : null;
        const { data: task, text } = await client.post('/api/certificates', {
            source: 'acme',
            domains: ['cut.example.test'],
            acme: { directory: pebble.directory }
        });
        const left = await until(async () => {
            const texts = await bind.texts('_acme-challenge.cut.example.test');
            return texts.length === 1 && texts[0];
        }, `the record is there: ${text}`);
        await panel.end('SIGKILL');
        expect(await bind.texts('_acme-challenge.cut.example.test')).to.equal([left]);
        pebble.answer = null;
        await panel.start();
        const again = await panel.login();
        const cut = (await again.get(`/api/tasks/${task.id}`)).data;
        expect([cut.state, cut.error.reason]).to.equal(['failed', 'INTERRUPTED']);
        const [row] = (await again.get('/api/certificates')).data;
        expect(row).to.include({ name: 'cut.example.test', fingerprint256: null });
        expect(Date.parse(row.nextAttemptAt) > Date.now()).to.be.true();
        const { data: second } = await again.post(`/api/certificates/${row.id}/renew`);
        const done = await until(async () => {
            const { data } = await again.get(`/api/tasks/${second.id}`);
            return data.finishedAt !== null && data;
        }, 'the second attempt ends');
        expect(done.error).to.be.null();
        expect(await bind.texts('_acme-challenge.cut.example.test')).to.equal([]);
        expect(readdirSync(panel.dataDir).join()).to.not.contain('lego');
    });
});
