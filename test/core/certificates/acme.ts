import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { noBind, startBind, type Bind } from '../../support/bind.ts';
import { startPanel, type TestPanel } from '../../support/panel.ts';
import { startPebble, type Pebble } from '../../support/pebble.ts';
import { until } from '../../support/real-engine.ts';
import { itUnless } from '../../support/skip.ts';

export const lab = Lab.script({ timeout: 60_000 });
const { describe, before, after, afterEach } = lab;
const it = itUnless(noBind, lab.it);

let panel: TestPanel;
let bind: Bind;
let pebble: Pebble;
let provider = 0;
let shift = 0;

before(async () => {
    if (noBind !== undefined) {
        return;
    }
    bind = await startBind({ records: '_acme-challenge.away IN CNAME away.delegated\n' });
    pebble = await startPebble({ dns: `${bind.address}:53`, badNonces: 50 });
    panel = await startPanel({ clock: { now: () => Date.now() + shift } });
    const { data } = await panel.client.put('/api/settings', { 'panel.outboundAllow': ['127.0.0.1'], 'dns.nameservers': [bind.address], 'certificates.caRoots': pebble.root });
    expect(data).to.be.an.array();
    provider = (await panel.client.post('/api/dns-providers', { name: 'bind', type: 'rfc2136', credentials: bind.credentials, isDefault: true })).data.id;
});

after(async () => {
    await panel?.close();
    await pebble?.close();
    await bind?.close();
});

afterEach(() => {
    if (pebble !== undefined) {
        pebble.answer = null;
    }
});

interface Task {
    readonly state: string;
    readonly result: { readonly id: number; readonly fingerprint256: string; readonly domains: string[] };
    readonly error: { readonly code: number; readonly reason: string; readonly data: { readonly problem: { readonly type: string; readonly detail: string } } };
}

async function ended(id: number): Promise<Task> {
    return until(async () => {
        const { data } = await panel.client.get(`/api/tasks/${id}`);
        return ['succeeded', 'failed', 'cancelled'].includes(data.state as string) && data as Task;
    }, `task ${id} ends`, 40_000);
}

async function order(body: object): Promise<Task> {
    const { status, data, text } = await panel.client.post('/api/certificates', { source: 'acme', acme: { directory: pebble.directory, email: 'harbour@example.test' }, ...body });
    expect(status, text).to.equal(202);
    return ended(data.id as number);
}

function served(name: string): Promise<X509Certificate> {
    return new Promise((resolve, reject) => {
        const socket = connect({ host: '127.0.0.1', port: panel.httpsPort, servername: name, rejectUnauthorized: false }, () => {
            const certificate = socket.getPeerX509Certificate();
            socket.destroy();
            if (certificate === undefined) {
                reject(new Error('no certificate'));
                return;
            }
            resolve(certificate);
        });
        socket.once('error', reject);
    });
}

const fingerprint = (certificate: X509Certificate): string => certificate.fingerprint256.replaceAll(':', '').toLowerCase();

describe('POST /api/certificates with source acme', () => {
    it('issues a wildcard and its apex in one order against half of all nonces refused, and serves it by name', async () => {
        const task = await order({ domains: ['*.example.test', 'EXAMPLE.test'] });
        expect(task.error).to.be.null();
        expect(task.state).to.equal('succeeded');
        expect(task.result.domains).to.equal(['*.example.test', 'example.test']);
        const { data } = await panel.client.get(`/api/certificates/${task.result.id}`);
        expect(data).to.include({ source: 'acme', autoRenew: true, lastError: null, usedBy: [], dnsProviderId: provider });
        expect(data.acme).to.equal({ directory: pebble.directory, email: 'harbour@example.test', eab: null });
        expect(Date.parse(data.nextAttemptAt as string)).to.be.above(Date.parse(data.notBefore as string) + 86_400_000 * 0.6).and.below(Date.parse(data.notBefore as string) + 86_400_000 * 0.67);
        const host = await panel.client.post('/api/hosts', { domain: 'shop.example.test', upstream: '127.0.0.1:1', ssl: true, sslMode: 'certificate', certificateId: task.result.id });
        expect(host.data.state, host.text).to.equal('applied');
        const leaf = await served('shop.example.test');
        expect(fingerprint(leaf)).to.equal(task.result.fingerprint256);
        expect(leaf.subjectAltName).to.contain('DNS:*.example.test').and.contain('DNS:example.test');
        expect(await bind.texts('_acme-challenge.example.test')).to.equal([]);
        expect((await panel.client.delete(`/api/dns-providers/${provider}`)).code).to.equal(40901);
    });
});
