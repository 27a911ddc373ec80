/** Self-signed certificates that OpenSSL makes. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate and its key, both in PEM. */
export interface Pair {
    readonly certificate: string;
    readonly key: string;
}

/** Makes a pair. @param names - DNS names and IPv4 addresses @param more - more arguments of `openssl req`, which win over the usual ones */
export function selfSigned(
    names: readonly string[],
    {
        algorithm = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
        more = []
    }: { readonly algorithm?: readonly string[]; readonly more?: readonly string[] } = {}
): Pair {
    const folder = mkdtempSync(join(tmpdir(), 'portico-pem-'));
    const alternatives = names.map((name) => `${/^[\d.]+$/.test(name) ? 'IP' : 'DNS'}:${name}`).join(',');
    try {
        execFileSync(
            'openssl',
            [
                ...['req', '-x509', ...algorithm, '-nodes', '-keyout', 'k.pem', '-out', 'c.pem'],
                ...['-subj', '/CN=test', '-days', '30'],
                ...(names.length === 0 ? [] : ['-addext', `subjectAltName=${alternatives}`]),
                ...more
            ],
            { cwd: folder, stdio: 'pipe', timeout: 30_000 }
        );
        return {
            certificate: readFileSync(join(folder, 'c.pem'), 'utf8'),
            key: readFileSync(join(folder, 'k.pem'), 'utf8')
        };
    } finally {
        rmSync(folder, { recursive: true });
    }
}
