/**
 * Measures an export and an import of a whole panel: 10,000 hosts and 1,000 certificates, exported with their secrets and imported into an empty panel
 * with a real engine. Prints seconds, megabytes, and the longest time in which the panel answered no other request.
 * Run: node --conditions=portico-source test/bench/panel/transfer.ts [hosts] [certificates]
 */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { seal } from '../../../core/src/features/import-export/document/vault.ts';
import { startPanel } from '../../support/panel/panel.ts';

const [hostCount = 10_000, certificateCount = 1_000] = process.argv.slice(2).map(Number);
const passphrase = 'a passphrase of the bench';
const hash = `$2b$10$${'a'.repeat(53)}`;

interface Document {
    readonly format: string;
    readonly formatVersion: number;
    readonly createdAt: string;
    readonly sections: Readonly<Record<string, readonly object[]>>;
}

/** Makes certificates that share one key, since only their names matter here. */
function certificates(count: number): { readonly key: string; readonly chains: readonly string[] } {
    const folder = mkdtempSync(join(tmpdir(), 'portico-bench-'));
    try {
        execFileSync(
            'openssl',
            ['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-out', 'k.pem'],
            { cwd: folder, stdio: 'pipe' }
        );
        const chains = Array.from({ length: count }, (_, at) =>
            execFileSync(
                'openssl',
                [
                    'req',
                    '-x509',
                    '-new',
                    '-key',
                    'k.pem',
                    '-subj',
                    '/CN=bench',
                    '-days',
                    '30',
                    '-addext',
                    `subjectAltName=DNS:host${at}.bench.test`
                ],
                { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] }
            ).toString()
        );
        return { key: readFileSync(join(folder, 'k.pem'), 'utf8'), chains };
    } finally {
        rmSync(folder, { recursive: true });
    }
}

const { key, chains } = certificates(certificateCount);
const secrets = new Map([
    ['certificates', new Map<string, string>()],
    ['hosts', new Map<string, string>()]
]);
const now = new Date().toISOString();
const document: Document = {
    format: 'portico-export',
    formatVersion: 1,
    createdAt: now,
    sections: {
        certificates: chains.map((certificate, at) => {
            secrets.get('certificates')?.set(`${at + 1}/key`, key);
            return {
                id: at + 1,
                name: `host${at}`,
                source: 'upload',
                domains: [`host${at}.bench.test`],
                fingerprint256: new X509Certificate(certificate).fingerprint256
                    .replaceAll(':', '')
                    .toLowerCase(),
                certificate,
                autoRenew: false,
                acme: null,
                createdAt: now,
                updatedAt: now
            };
        }),
        hosts: Array.from({ length: hostCount }, (_, at) => {
            const guarded = at % 100 === 99;
            if (guarded) {
                secrets.get('hosts')?.set(`host${at}.bench.test/basicAuth/ann`, hash);
            }
            return {
                id: at + 1,
                domain: `host${at}.bench.test`,
                upstream: `127.0.0.1:${3000 + (at % 1000)}`,
                compression: at % 2 === 0,
                securityHeaders: at % 3 === 0,
                ...(at < certificateCount
                    ? { ssl: true, sslMode: 'certificate', certificateId: at + 1 }
                    : {}),
                ...(guarded ? { access: { basicAuth: [{ username: 'ann' }] } } : {})
            };
        })
    }
};

let peak = 0;
let stall = 0;
let last = performance.now();
const watch = setInterval(() => {
    stall = Math.max(stall, performance.now() - last - 20);
    last = performance.now();
    peak = Math.max(peak, process.memoryUsage().rss);
}, 20);

async function measured<T>(what: string, work: () => Promise<T>): Promise<T> {
    [peak, stall, last] = [process.memoryUsage().rss, 0, performance.now()];
    const before = peak;
    const start = performance.now();
    const result = await work();
    await new Promise((done) => setTimeout(done, 50));
    console.log(
        `${what.padEnd(28)} ${((performance.now() - start) / 1000).toFixed(2).padStart(7)} s   memory ${(before / 2 ** 20).toFixed(0)} → ${(peak / 2 ** 20).toFixed(0)} MB   longest silence ${stall.toFixed(0)} ms`
    );
    return result;
}

const panel = await startPanel();
try {
    console.log(
        `${hostCount} hosts, ${certificateCount} certificates, document of ${(Buffer.byteLength(JSON.stringify(document)) / 2 ** 20).toFixed(1)} MB`
    );
    const sealed = {
        ...document,
        secrets: await measured('seal', () => seal(secrets, passphrase, document))
    };
    const body = { document: sealed, passphrase, mode: 'replace' };
    const fail = (answer: { readonly text: string }): never => {
        throw new Error(answer.text.slice(0, 500));
    };
    const dry = await measured('import, dry run', () =>
        panel.client.post('/api/import-export/import', { ...body, dryRun: true })
    );
    console.log(dry.status === 200 ? JSON.stringify(dry.data.sections.hosts.counts) : fail(dry));
    await measured('import, until served', async () => {
        const started = await panel.client.post('/api/import-export/import', { ...body, dryRun: false });
        for (
            let state = 'running';
            state !== 'succeeded';
            await new Promise((done) => setTimeout(done, 200))
        ) {
            const answer =
                started.status === 202
                    ? await panel.client.get(`/api/tasks/${started.data.id}`)
                    : fail(started);
            state = answer.data.state as string;
            if (state === 'failed') {
                fail(answer);
            }
        }
    });
    const exported = await measured('export with secrets', () =>
        panel.client.post('/api/import-export/export', { passphrase })
    );
    console.log(`${(exported.text.length / 2 ** 20).toFixed(1)} MB`);
    const again = await measured('import again, dry run', () =>
        panel.client.post('/api/import-export/import', {
            document: exported.data,
            passphrase,
            mode: 'replace',
            dryRun: true
        })
    );
    console.log(again.status === 200 ? JSON.stringify(again.data.sections.hosts.counts) : fail(again));
} finally {
    clearInterval(watch);
    await panel.close();
}
