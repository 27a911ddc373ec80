import { connect } from 'node:tls';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { selfSigned } from '../../support/servers/self-signed.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let panel: TestPanel;

before(async () => {
    panel = await startPanel();
});

after(async () => {
    await panel.close();
});

/** Fingerprint of what the engine serves for a name. */
function served(name: string): Promise<string> {
    return new Promise((resolve, reject) => {
        const socket = connect(
            { host: '127.0.0.1', port: panel.httpsPort, servername: name, rejectUnauthorized: false },
            () => {
                resolve(
                    socket.getPeerX509Certificate()?.fingerprint256.replaceAll(':', '').toLowerCase() ?? ''
                );
                socket.destroy();
            }
        );
        socket.once('error', reject);
    });
}

describe('/api/certificates', () => {
    it('serves an uploaded certificate by name, and its replacement at once', async () => {
        const { data: uploaded, status } = await panel.client.post('/api/certificates', {
            source: 'upload',
            name: 'mine',
            ...selfSigned(['own.test', '*.own.test'])
        });
        expect([status, uploaded.usedBy]).to.equal([201, []]);
        const { data: host } = await panel.client.post('/api/hosts', {
            domain: 'shop.own.test',
            upstream: '127.0.0.1:1',
            ssl: true,
            sslMode: 'certificate',
            certificateId: uploaded.id
        });
        expect(host.state).to.equal('applied');
        expect(await served('shop.own.test')).to.equal(uploaded.fingerprint256);
        expect((await panel.client.get('/api/certificates')).data[0].usedBy).to.equal([host.id]);
        const { data: replaced } = await panel.client.put(
            `/api/certificates/${uploaded.id}`,
            selfSigned(['shop.own.test'])
        );
        expect(await served('shop.own.test')).to.equal(replaced.fingerprint256);
        expect((await panel.client.delete(`/api/certificates/${uploaded.id}`)).code).to.equal(40901);
        await panel.client.delete(`/api/hosts/${host.id}`);
        const gone = await panel.client.delete(`/api/certificates/${uploaded.id}`);
        expect([gone.status, gone.data]).to.equal([200, null]);
    });

    it('shows a removed or replaced certificate to no visitor any more, also when no host uses it', async () => {
        const shown = (name: string): Promise<string | null> => served(name).catch(() => null);
        const made = async (names: readonly string[]): Promise<{ id: number; fingerprint256: string }> => {
            const { data } = await panel.client.post('/api/certificates', {
                source: 'upload',
                ...selfSigned([...names])
            });
            const { data: host } = await panel.client.post('/api/hosts', {
                domain: names[0],
                upstream: '127.0.0.1:1',
                ssl: true,
                sslMode: 'certificate',
                certificateId: data.id
            });
            expect(await shown(names[0] ?? '')).to.equal(data.fingerprint256);
            await panel.client.delete(`/api/hosts/${host.id}`);
            return data;
        };
        const one = await made(['gone.test', '*.gone.test']);
        const two = await made(['old.test']);
        expect((await panel.client.delete(`/api/certificates/${one.id}`)).status).to.equal(200);
        for (const name of ['gone.test', 'any.gone.test']) {
            expect(await shown(name)).to.not.equal(one.fingerprint256);
        }
        await panel.client.put(`/api/certificates/${two.id}`, selfSigned(['old.test']));
        expect(await shown('old.test')).to.not.equal(two.fingerprint256);
    });

    it('hands the key out by the download alone, to users with the permission', async () => {
        const pair = selfSigned(['dl.test']);
        const { data } = await panel.client.post('/api/certificates', { source: 'upload', ...pair });
        const operator = await panel.tokenOf('operator');
        const viewer = await panel.tokenOf('viewer');
        const path = `/api/certificates/${data.id}/download`;
        const whole = await panel.client.get(path);
        expect(whole.text).to.contain('BEGIN CERTIFICATE').and.contain('PRIVATE KEY');
        expect(whole.headers['content-disposition']).to.contain('attachment');
        expect((await panel.client.get(path, { token: operator })).text)
            .to.contain('BEGIN CERTIFICATE')
            .and.not.contain('PRIVATE KEY');
        expect((await panel.client.get(`${path}?key=true`, { token: operator })).code).to.equal(40300);
        expect(
            (await panel.client.post('/api/certificates', { source: 'upload', ...pair }, { token: viewer }))
                .code
        ).to.equal(40300);
        const { data: audit } = await panel.client.get('/api/audit?resource=certificates&action=export');
        expect(audit).to.have.length(1);
        const secret = pair.key.split('\n')[1] ?? '';
        expect(
            (await panel.client.get('/api/audit?resource=certificates')).text + panel.lines.join('')
        ).to.not.contain(secret);
    });

    it('refuses unknown fields and wrong types', async () => {
        for (const more of [
            { source: 'acme' },
            { source: 1 },
            { domains: [] },
            { id: 1 },
            { usedBy: [] },
            { key: 1 },
            { certificate: null },
            { name: '' },
            { name: 'a\u0000b' },
            { name: '\ud800' }
        ]) {
            expect(
                (await panel.client.post('/api/certificates', { ...selfSigned(['x.test']), ...more })).code,
                JSON.stringify(more)
            ).to.equal(40001);
        }
        expect((await panel.client.get('/api/certificates/999')).code).to.equal(40400);
    });
});
