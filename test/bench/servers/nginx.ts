/** nginx: as the upstream behind every proxy, and as a proxy with a file for each host, to compare with. */
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { freePort } from '../../support/ports.ts';
import { until } from '../../support/until.ts';

const run = promisify(execFile);

export interface Nginx {
    readonly port: number;
    readonly address: string;
    /** Process id of the master. */
    readonly pid: number;
    /** Writes a host's file. */
    write(id: number, mark: string): void;
    /** Tests the configuration and reloads it, as admins do. */
    reload(): Promise<void>;
    close(): Promise<void>;
}

/** Starts nginx. @param hosts - number of hosts, each with a file and an answer of its own; 0: every name is answered `ok` */
export async function startNginx(hosts: number, name: (id: number) => string): Promise<Nginx> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-nginx-'));
    const port = await freePort();
    const sites = join(folder, 'sites');
    mkdirSync(sites);
    const write = (id: number, mark: string): void =>
        writeFileSync(
            join(sites, `${id}.conf`),
            `server {\n    listen 127.0.0.1:${port};\n    server_name ${name(id)};\n    location / { add_header X-Bench ${mark}; proxy_pass http://127.0.0.1:9; error_page 502 =200 @away; }\n    location @away { add_header X-Bench ${mark}; return 200 ok; }\n}\n`
        );
    for (let id = 1; id <= hosts; id += 1) {
        write(id, '0');
    }
    const file = join(folder, 'nginx.conf');
    writeFileSync(
        file,
        [
            'daemon off;',
            'worker_processes 1;',
            `pid ${join(folder, 'pid')};`,
            'error_log /dev/null crit;',
            'events { worker_connections 1024; }',
            'http {',
            '    access_log off;',
            '    keepalive_requests 1000000;',
            '    server_names_hash_max_size 65536;',
            '    server_names_hash_bucket_size 128;',
            ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
                (kind) => `    ${kind}_temp_path ${join(folder, kind)};`
            ),
            `    server { listen 127.0.0.1:${port} default_server; location / { return 200 ok; } }`,
            ...(hosts === 0 ? [] : [`    include ${sites}/*.conf;`]),
            '}',
            ''
        ].join('\n')
    );
    const child = spawn('nginx', ['-c', file, '-p', folder], { stdio: ['ignore', 'ignore', 'inherit'] });
    const ended = new Promise<void>((resolve) => {
        child.once('exit', () => resolve());
        child.once('error', () => resolve());
    });
    const close = async (): Promise<void> => {
        child.kill('SIGTERM');
        await ended;
        rmSync(folder, { recursive: true, force: true });
    };
    try {
        await until(
            () => fetch(`http://127.0.0.1:${port}/`).then((answer) => answer.ok),
            'nginx answers',
            60_000
        );
    } catch (error) {
        await close();
        throw error;
    }
    return {
        port,
        address: `127.0.0.1:${port}`,
        write,
        get pid() {
            return Number(readFileSync(join(folder, 'pid'), 'utf8'));
        },
        async reload() {
            await run('nginx', ['-t', '-q', '-c', file, '-p', folder]);
            await run('nginx', ['-s', 'reload', '-c', file, '-p', folder]);
        },
        close
    };
}
