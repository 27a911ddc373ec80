/** A real Prometheus on the loopback address that takes remote_write. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from '../../../support/ports.ts';
import { until } from '../../../support/until.ts';

export const noPrometheus =
    spawnSync('prometheus', ['--version']).error === undefined ? undefined : 'prometheus is not installed';

export class PrometheusServer {
    readonly port: number;
    readonly #folder = mkdtempSync(join(tmpdir(), 'prometheus-'));
    #child: ChildProcess | null = null;

    private constructor(port: number) {
        this.port = port;
        writeFileSync(join(this.#folder, 'prometheus.yml'), 'global: {}\n');
    }

    static async start(): Promise<PrometheusServer> {
        const server = new PrometheusServer(await freePort());
        await server.start();
        return server;
    }

    async start(): Promise<void> {
        this.#child = spawn(
            'prometheus',
            [
                `--config.file=${join(this.#folder, 'prometheus.yml')}`,
                `--storage.tsdb.path=${join(this.#folder, 'data')}`,
                `--web.listen-address=127.0.0.1:${this.port}`,
                '--web.enable-remote-write-receiver',
                '--log.level=error'
            ],
            { stdio: 'ignore' }
        );
        await until(async () => (await fetch(`${this.url}/-/ready`)).ok, 'Prometheus to be ready');
    }

    get url(): string {
        return `http://127.0.0.1:${this.port}`;
    }

    /** What the query language of Prometheus answers. */
    async query(query: string, at: number): Promise<{ metric: Record<string, string>; value: string }[]> {
        const asked = new URLSearchParams({ query, time: String(at / 1000) });
        const answer = (await (await fetch(`${this.url}/api/v1/query?${asked}`)).json()) as {
            data: { result: { metric: Record<string, string>; value: [number, string] }[] };
        };
        return answer.data.result.map(({ metric, value }) => ({ metric, value: value[1] }));
    }

    /** As a machine that loses its power. */
    async kill(): Promise<void> {
        const child = this.#child;
        if (child !== null) {
            const gone = new Promise((resolve) => {
                child.once('exit', resolve);
            });
            child.kill('SIGKILL');
            await gone;
            this.#child = null;
        }
    }

    async close(): Promise<void> {
        await this.kill();
        rmSync(this.#folder, { recursive: true, force: true });
    }
}
