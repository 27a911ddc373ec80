/** Measures the time from the order of a wildcard certificate until the engine serves it, with a real CA, name server and engine. */
import { connect } from 'node:tls';

import { startPanel } from '../../support/panel/panel.ts';
import { noBind, startBind } from '../../support/servers/bind.ts';
import { startPebble } from '../../support/servers/pebble.ts';
import { until } from '../../support/until.ts';
import { median, type Report } from '../report.ts';

const rounds = 10;

export async function bench(report: Report): Promise<void> {
    if (noBind !== undefined) {
        console.log(`      not measured: ${noBind}`);
        return;
    }
    const bind = await startBind();
    const pebble = await startPebble({ dns: `${bind.address}:53`, badNonces: 5 });
    const panel = await startPanel();
    try {
        const { client } = panel;
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
        const ended = async (id: number): Promise<{ readonly id: number; readonly fingerprint256: string }> =>
            until(async () => {
                const { data } = await client.get(`/api/tasks/${id}`);
                if (data.state === 'failed') {
                    throw new Error(JSON.stringify(data.error));
                }
                return data.state === 'succeeded' && data.result;
            }, 'the order ends');
        const [issued, served, renewed]: [number[], number[], number[]] = [[], [], []];
        for (let round = 0; round < rounds; round += 1) {
            const zone = `r${round}.example.test`;
            const began = performance.now();
            const order = await client.post('/api/certificates', {
                source: 'acme',
                domains: [`*.${zone}`, zone],
                acme: { directory: pebble.directory }
            });
            const certificate = await ended(order.data.id as number);
            issued.push((performance.now() - began) / 1000);
            await client.post('/api/hosts', {
                domain: `www.${zone}`,
                upstream: '127.0.0.1:9',
                ssl: true,
                sslMode: 'certificate',
                certificateId: certificate.id
            });
            await until(
                async () =>
                    (await fingerprint(panel.httpsPort, `www.${zone}`)) === certificate.fingerprint256,
                'it is served'
            );
            served.push((performance.now() - began) / 1000);
            const again = performance.now();
            const renewal = await client.post(`/api/certificates/${certificate.id}/renew`);
            const next = await ended(renewal.data.id as number);
            await until(
                async () => (await fingerprint(panel.httpsPort, `www.${zone}`)) === next.fingerprint256,
                'the new one is served'
            );
            renewed.push((performance.now() - again) / 1000);
        }
        const all = (values: readonly number[]): string =>
            `${values.map((value) => value.toFixed(2)).join(' ')} s`;
        report.add({
            target: '',
            what: 'a wildcard and its apex: from the request until issued',
            value: median(issued),
            unit: 's',
            of: all(issued)
        });
        report.add({
            target: '',
            what: 'from the request until a new host is served with it',
            value: median(served),
            unit: 's',
            of: all(served)
        });
        report.add({
            target: '',
            what: 'renewal: until the new one is proven served',
            value: median(renewed),
            unit: 's',
            of: all(renewed)
        });
    } finally {
        await panel.close();
        await pebble.close();
        await bind.close();
    }
}

function fingerprint(port: number, name: string): Promise<string> {
    return new Promise((resolve, reject) => {
        const socket = connect(
            { host: '127.0.0.1', port, servername: name, rejectUnauthorized: false },
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
