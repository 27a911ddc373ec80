import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { permissionPath } from '../../../../../core/src/engine/render/compile/dispatch.ts';
import type { Site, SiteCertificate } from '../../../../../core/src/engine/site.ts';
import { startCaddy, type TestCaddy } from '../../../../support/engine/caddy.ts';
import { testSite } from '../../../../support/engine/site.ts';
import { selfSigned } from '../../../../support/servers/self-signed.ts';
import { received, startUpstream, type TestUpstream } from '../../../../support/servers/upstream.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('https in a running engine', { timeout: 60_000 }, () => {
    let caddy: TestCaddy;
    let one: TestUpstream;
    let authority: Server;
    /** What an ACME directory was asked for. */
    let asked = 0;
    const site = (id: number, domain: string, over: Partial<Site> = {}) => ({
        id,
        site: testSite({
            id,
            domain,
            ssl: true,
            sslMode: 'internal',
            upstreams: [{ address: one.address, weight: 1 }],
            ...over
        })
    });
    /** The certificate served for a name, or null when the handshake fails. */
    const issuer = async (host: string, servername = host, timeoutMs = 10_000): Promise<string | null> => {
        try {
            return (await caddy.ask({ host, servername, https: true, timeoutMs })).certificate?.issuer ?? '';
        } catch {
            return null;
        }
    };
    /** Names that the engine set out to get a certificate for. */
    const wanted = (): readonly string[] =>
        [
            ...new Set(
                Array.from(
                    caddy.log().matchAll(/"logger":"tls\.obtain".*"identifier":"([^"]*)"/g),
                    (match) => match[1] ?? ''
                )
            )
        ].sort();
    const ownAuthority = async (host: string): Promise<boolean> =>
        (await issuer(host))?.startsWith('Caddy Local Authority') === true;
    const permitted = async (
        domain: string,
        host = `127.0.0.1:${caddy.settings.httpPort}`
    ): Promise<number> => (await caddy.ask({ host, path: `${permissionPath}?domain=${domain}` })).status;
    const makeCertificate = (id: number, ...names: string[]): SiteCertificate => {
        const folder = caddy.context.folders.certificates;
        const { certificate, key } = selfSigned(names, { more: ['-subj', `/CN=uploaded ${id}`] });
        const fingerprint = new X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase();
        writeFileSync(join(folder, `${id}-${fingerprint}.key`), key, { mode: 0o600 });
        writeFileSync(join(folder, `${id}-${fingerprint}.crt`), certificate, { mode: 0o600 });
        return { id, fingerprint, names };
    };

    before(async () => {
        authority = createServer((_, response) => {
            asked += 1;
            response.writeHead(503).end();
        });
        await new Promise<void>((resolve) => authority.listen(0, '127.0.0.1', resolve));
        const directory = `http://127.0.0.1:${(authority.address() as AddressInfo).port}/directory`;
        [caddy, one] = await Promise.all([
            startCaddy({
                acmeDirectory: directory,
                acmeEmail: 'a{env.HOME}b@a.test',
                acmeEab: { keyId: 'kid', macKey: 'c2VjcmV0' }
            }),
            startUpstream('one')
        ]);
    });

    after(async () => {
        await Promise.all([caddy.close(), one.close()]);
        authority.closeAllConnections();
        await new Promise<void>((resolve) => authority.close(() => resolve()));
    });

    it('fails the handshake for a stranger, asks no authority, and goes on answering', async () => {
        for (const name of ['nobody.test', '127.0.0.1', 'localhost', 'a..b']) {
            expect(await issuer('nobody.test', name)).to.be.null();
        }

        expect(asked).to.equal(0);
        expect((await caddy.ask({ host: 'nobody.test' })).status).to.equal(404);
    });

    it('signs by its own authority on demand, for the first such site after one load and for known names without', async () => {
        expect(
            (await caddy.apply({ sites: [site(1, 'i.test', { aliases: ['j.test'] })] })).needsReload
        ).to.be.true();
        expect(await ownAuthority('i.test')).to.be.true();
        expect(await ownAuthority('j.test')).to.be.true();
        const reply = await caddy.ask({ host: 'i.test', https: true });
        expect(received(reply.body).headers).to.include({ 'x-forwarded-proto': 'https' });
        expect((await caddy.ask({ host: 'i.test' })).status).to.equal(200);
        expect(asked).to.equal(0);

        expect((await caddy.apply({ sites: [{ id: 1, site: null }] })).needsReload).to.be.false();
        expect((await caddy.apply({ sites: [site(1, 'i.test')] })).needsReload).to.be.false();
    });

    it('answers itself only for exact names of enabled sites that want a certificate', async () => {
        await caddy.apply({
            sites: [
                site(2, 'auto.test', { sslMode: 'auto' }),
                site(3, 'off.test', { sslMode: 'auto', enabled: false }),
                site(4, 'pause.test', { sslMode: 'auto', maintenance: true }),
                site(5, 'plain.test', { ssl: false }),
                site(6, '*.wild.test', { sslMode: 'internal' }),
                site(7, 'own.test', { sslMode: 'certificate', certificateId: 99 })
            ]
        });
        for (const name of ['auto.test', 'pause.test', 'i.test']) {
            expect([name, await permitted(name)]).to.equal([name, 200]);
        }

        for (const name of [
            'off.test',
            'plain.test',
            'x.wild.test',
            '*.wild.test',
            'wild.test',
            'own.test',
            'nobody.test',
            'AUTO.test',
            'auto.test.',
            '',
            'a1/../auto.test',
            'a1%2F..%2Fauto.test',
            '%2Bwild.test',
            '+.wild.test',
            '%2B.wild.test',
            '*',
            '%2A',
            '*.test',
            'aut?.test',
            '..',
            '.',
            '%5Ba%5Duto.test',
            'auto.test%00',
            '{http.request.host}',
            '%7Benv.HOME%7D',
            'auto.test&domain=nobody.test',
            'nobody.test&domain=auto.test',
            `${'a'.repeat(300)}.test`
        ]) {
            expect([name, await permitted(name)]).to.equal([name, 403]);
        }

        expect(await permitted('auto.test', 'nobody.test')).to.equal(404);
        expect(await permitted('auto.test', '127.0.0.2')).to.equal(404);
        const posing = await caddy.ask({ host: 'i.test', path: `${permissionPath}?domain=auto.test` });
        expect(received(posing.body).url).to.equal(`${permissionPath}?domain=auto.test`);
        expect(asked).to.equal(0);
    });

    it('asks the authority of the settings for a name that it may, and for no other name', async () => {
        expect(await issuer('auto.test', 'auto.test', 500)).to.be.null();
        await until(() => asked > 0, 'the authority is asked');
        for (const name of ['off.test', 'plain.test', 'nobody.test']) {
            expect(await issuer(name)).to.be.null();
        }

        expect(wanted()).to.equal(['*.wild.test', 'auto.test', 'i.test', 'j.test']);
    });

    it('serves a wildcard of its own authority', async () => {
        expect(await ownAuthority('x.wild.test')).to.be.true();
        expect((await caddy.ask({ host: 'x.wild.test', https: true })).status).to.equal(200);
        expect(await issuer('x.y.wild.test')).to.be.null();
    });

    it('serves an uploaded certificate by SNI, a new one after it, and none when it is gone', async () => {
        const first = makeCertificate(1, 'c.test', '*.c.test');
        const host = site(8, 'c.test', { sslMode: 'certificate', certificateId: 1, aliases: ['*.c.test'] });
        expect(
            (await caddy.apply({ sites: [host], certificates: [{ id: 1, certificate: first }] })).needsReload
        ).to.be.true();
        expect(await issuer('c.test')).to.equal('uploaded 1');
        expect(await issuer('www.c.test')).to.equal('uploaded 1');
        expect((await caddy.ask({ host: 'www.c.test', https: true })).status).to.equal(200);

        expect(
            (await caddy.apply({ sites: [{ id: 8, site: { ...host.site, enabled: false } }] })).needsReload
        ).to.be.false();
        expect((await caddy.ask({ host: 'c.test', https: true })).status).to.equal(404);
        expect((await caddy.apply({ sites: [host] })).needsReload).to.be.false();

        const second = makeCertificate(2, 'c.test');
        expect(
            (
                await caddy.apply({
                    sites: [{ id: 8, site: { ...host.site, aliases: [], certificateId: 2 } }],
                    certificates: [
                        { id: 2, certificate: second },
                        { id: 1, certificate: null }
                    ]
                })
            ).needsReload
        ).to.be.true();
        expect(await issuer('c.test')).to.equal('uploaded 2');

        const own = await caddy.apply({
            sites: [{ id: 8, site: { ...host.site, aliases: [], sslMode: 'internal', certificateId: null } }],
            certificates: [{ id: 2, certificate: null }]
        });
        expect(own.needsReload).to.be.true();
        expect(await ownAuthority('c.test')).to.be.true();
    });

    it('serves each site with the certificate that it names where several hold for its name', async () => {
        const both = [1, 2].map((number) => ({
            id: number + 20,
            certificate: makeCertificate(number + 20, '*.d.test', 'd.test')
        }));
        const sites = ['one.d.test', 'two.d.test', '*.d.test', 'd.test'].map((domain, at) =>
            site(20 + at, domain, { sslMode: 'certificate', certificateId: 21 + (at % 2) })
        );
        await caddy.apply({ sites, certificates: both });
        const shown = async (): Promise<readonly (string | null)[]> =>
            Promise.all(['one.d.test', 'two.d.test', 'any.d.test', 'd.test'].map((name) => issuer(name)));
        expect(await shown()).to.equal(['uploaded 21', 'uploaded 22', 'uploaded 21', 'uploaded 22']);

        const swapped = sites.map(({ id, site: each }) => ({
            id,
            site: { ...each, certificateId: each.certificateId === 21 ? 22 : 21 }
        }));
        expect((await caddy.apply({ sites: swapped })).needsReload).to.be.true();
        expect(await shown()).to.equal(['uploaded 22', 'uploaded 21', 'uploaded 22', 'uploaded 21']);
        expect(
            (
                await caddy.apply({
                    sites: [{ id: 20, site: { ...sites[0]!.site, certificateId: 22, maintenance: true } }]
                })
            ).needsReload
        ).to.be.false();

        await caddy.apply({
            sites: sites.map(({ id }) => ({ id, site: null })),
            certificates: both.map(({ id }) => ({ id, certificate: null }))
        });
    });

    it('does not serve a site without ssl on https, even where a certificate would fit', async () => {
        await caddy.apply({ sites: [site(9, 'bare.wild.test', { ssl: false })] });
        expect((await caddy.ask({ host: 'bare.wild.test' })).status).to.equal(200);
        expect((await caddy.ask({ host: 'bare.wild.test', https: true })).status).to.equal(404);
    });

    it('sends http to https with path and query, leaves challenges alone, and says so to browsers on https only', async () => {
        await caddy.apply({
            sites: [site(10, 'f.test', { forceHttps: true, hsts: true, aliases: ['g.test'] })]
        });
        const port = caddy.settings.httpsPort;
        for (const host of ['f.test', `f.test:${caddy.settings.httpPort}`]) {
            const reply = await caddy.ask({ host, path: '/a%20b//?x=%7B&y', method: 'POST', body: 'x' });
            expect([reply.status, reply.headers['location']]).to.equal([
                308,
                `https://f.test:${port}/a%20b//?x=%7B&y`
            ]);
            expect(reply.headers['strict-transport-security']).to.be.undefined();
        }

        expect((await caddy.ask({ host: 'g.test' })).headers['location']).to.equal(`https://g.test:${port}/`);
        const challenge = await caddy.ask({ host: 'f.test', path: '/.well-known/acme-challenge/token' });
        expect([challenge.status, challenge.headers['strict-transport-security']]).to.equal([200, undefined]);
        const secure = await caddy.ask({ host: 'f.test', https: true });
        expect([secure.status, secure.headers['strict-transport-security']]).to.equal([
            200,
            'max-age=31536000'
        ]);
    });

    it('gets a certificate of its own for an exact name below a wildcard of its authority that wants a public one', async () => {
        const step = await caddy.apply({ sites: [site(11, 'public.wild.test', { sslMode: 'auto' })] });
        expect(step.needsReload).to.be.true();
        expect(JSON.stringify(step.config())).to.include('"automate":["*.wild.test","public.wild.test"]');
        expect((await caddy.apply({ sites: [{ id: 11, site: null }] })).needsReload).to.be.false();
    });
});
