/** Deployments as an admin has them: a real panel and engine, real git servers, bubblewrap, an account and a folder of the test's own. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
    chmodSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    readFileSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ServicesRig } from '../../../support/machine/services.ts';
import type { Answer, Client } from '../../../support/panel/client.ts';
import { startPanel, type TestPanel } from '../../../support/panel/panel.ts';
import { until } from '../../../support/until.ts';
import { GitServer } from './git-server.ts';

export const base = '/api/plugins/deploy';

/** Why deployments cannot be tried on this machine; undefined where they can. */
export const withoutSandbox: string | undefined = !existsSync('/usr/bin/bwrap')
    ? 'bubblewrap is not installed'
    : process.getuid?.() === 0
      ? undefined
      : 'deployments need root';

const extension = fileURLToPath(new URL('../../../../extensions/deploy', import.meta.url));

/** A server of Node that says its version, and ends by itself when it is asked to. */
export function server(text: string, more = ''): string {
    return `const http = require('node:http');
const server = http.createServer((request, response) => { ${more} response.end(${JSON.stringify(text)}); });
server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listening'));
process.on('SIGTERM', () => { console.log('ending'); server.close(() => process.exit(0)); server.closeIdleConnections(); });
`;
}

/** Writes a package of the extension with a folder of its own instead of the machine's. */
export function writePackage(top: string): string {
    const folder = join(top, 'plugins', 'deploy');
    mkdirSync(folder, { recursive: true });
    const manifest = JSON.parse(readFileSync(join(extension, 'package.json'), 'utf8')) as {
        exports: Record<string, unknown>;
        portico: { capabilities: { files: string[]; network: string[] } };
    };
    manifest.exports = { '.': './index.ts', './package.json': './package.json' };
    manifest.portico.capabilities.files = [join(top, 'releases')];
    // As an admin grants it: `*` alone reaches no inner address.
    manifest.portico.capabilities.network = ['*', '127.0.0.0/8'];
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    writeFileSync(
        join(folder, 'index.ts'),
        `import { defineDeploy } from ${JSON.stringify(join(extension, 'src/index.ts'))};
export default defineDeploy({ folder: ${JSON.stringify(join(top, 'releases'))}, isRoot: () => true });
`
    );
    return join(top, 'plugins');
}

/** Makes an account for a test. */
export function makeAccount(): { readonly name: string; remove(): void } {
    const name = `pd-${randomBytes(4).toString('hex')}`;
    execFileSync('useradd', [
        '--system',
        '--user-group',
        '--no-create-home',
        '--shell',
        '/usr/sbin/nologin',
        name
    ]);
    return { name, remove: () => void execFileSync('userdel', ['--', name], { stdio: 'ignore' }) };
}

/** What a test sees of a deployment. */
export interface Deployment {
    readonly id: number;
    readonly number: number;
    readonly state: string;
    readonly reason: string | null;
    readonly commit: string | null;
    readonly message: string | null;
    readonly artifact: { readonly sha256: string; readonly bytes: number } | null;
    readonly kept: boolean;
    readonly trigger: string;
    readonly finishedAt: string | null;
    readonly steps: readonly { readonly name: string; readonly state: string; readonly seconds: number }[];
}

/** What a test knows of an engine and a panel, in this process or in another one. */
export class DeployClient {
    client: Client;
    readonly httpPort: number;

    constructor(client: Client, httpPort: number) {
        this.client = client;
        this.httpPort = httpPort;
    }

    get(path: string): Promise<Answer> {
        return this.client.get(base + path);
    }

    post(path: string, body: unknown = {}): Promise<Answer> {
        return this.client.post(base + path, body);
    }

    put(path: string, body: unknown): Promise<Answer> {
        return this.client.put(base + path, body);
    }

    delete(path: string): Promise<Answer> {
        return this.client.delete(base + path);
    }

    /** Makes a project, and resolves with its number. */
    async project(body: object): Promise<number> {
        const made = await this.post('/projects', body);
        if (made.status !== 201) {
            throw new Error(`The project was not made: ${made.text}`);
        }
        return made.data.id as number;
    }

    /** Begins a deployment. */
    async begin(projectId: number, body: object = {}): Promise<Deployment> {
        const begun = await this.post(`/projects/${projectId}/deployments`, body);
        if (begun.status !== 202) {
            throw new Error(`Not begun: ${begun.text}`);
        }
        return begun.data as Deployment;
    }

    /** Waits until a deployment is over. */
    over(id: number): Promise<Deployment> {
        return until(
            async () => {
                const { data } = await this.get(`/deployments/${id}`);
                return data.finishedAt === null ? null : (data as Deployment);
            },
            `deployment ${id} to end`,
            120_000
        );
    }

    /** Deploys, and waits for the end. */
    async deploy(projectId: number, body: object = {}): Promise<Deployment> {
        return this.over((await this.begin(projectId, body)).id);
    }

    /** Deploys, and fails with the log where it does not serve then. */
    async serve(projectId: number, body: object = {}): Promise<Deployment> {
        const deployment = await this.deploy(projectId, body);
        if (deployment.state !== 'live') {
            throw new Error(`${deployment.state} ${deployment.reason}\n${await this.log(deployment.id)}`);
        }
        return deployment;
    }

    /** The texts of a deployment's log. */
    async log(id: number): Promise<string> {
        const { text } = await this.get(`/deployments/${id}/log`);
        return text
            .split('\n')
            .filter((line) => line.startsWith('data: {"at"'))
            .map((line) => (JSON.parse(line.slice('data: '.length)) as { text: string }).text)
            .join('\n');
    }

    /** Asks the engine on a connection of its own; once more where Caddy 2.6 reset it, as it may while it loads a configuration. */
    async page(domain: string, path = '/'): Promise<{ readonly status: number; readonly text: string }> {
        try {
            return await this.#ask(domain, path);
        } catch (error) {
            if (((error as Error).cause as { code?: string } | undefined)?.code !== 'ECONNRESET') {
                throw error;
            }
            return this.#ask(domain, path);
        }
    }

    #ask(domain: string, path: string): Promise<{ readonly status: number; readonly text: string }> {
        return new Promise((resolve, reject) => {
            const sent = request(
                { host: '127.0.0.1', port: this.httpPort, path, agent: false, headers: { host: domain } },
                (answer) => {
                    const chunks: Buffer[] = [];
                    answer.on('data', (chunk: Buffer) => chunks.push(chunk));
                    answer.once('error', reject);
                    answer.once('end', () =>
                        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() })
                    );
                }
            );
            sent.once('error', (error) =>
                reject(new Error(`The page ${domain}${path}: ${error.message}`, { cause: error }))
            );
            sent.end();
        });
    }
}

/** A panel with this extension alone, a git server, and what both make in a folder of their own. */
export class DeployRig extends DeployClient {
    readonly panel: TestPanel;
    readonly top: string;
    readonly git: GitServer;
    readonly user: string;
    readonly #account: { remove(): void };
    readonly #services: ServicesRig;

    private constructor(
        panel: TestPanel,
        top: string,
        server_: GitServer,
        account: { name: string; remove(): void }
    ) {
        super(panel.client, panel.httpPort);
        this.panel = panel;
        this.top = top;
        this.git = server_;
        this.user = account.name;
        this.#account = account;
        this.#services = new ServicesRig(panel.config.dataDir);
    }

    /** The folder that stands for `/var/lib/portico-deploy`. */
    get folder(): string {
        return join(this.top, 'releases');
    }

    /**
     * @param others - names of extensions that run beside it
     * @param write - writes plugins of the test's own into the folder of plugins
     */
    static async start(
        settings: object = {},
        others: readonly string[] = [],
        write: (plugins: string) => void = () => undefined
    ): Promise<DeployRig> {
        process.umask(0o077); // as the process of the panel does; `startPanel` runs it in this one
        const top = mkdtempSync(join(tmpdir(), 'portico-deploy-'));
        chmodSync(top, 0o755);
        const plugins = writePackage(top);
        others.forEach((name) => symlinkSync(join(extension, '..', name), join(plugins, name)));
        write(plugins);
        const account = makeAccount();
        const server_ = new GitServer(join(top, 'git'));
        await server_.start();
        const panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: plugins } });
        const rig = new DeployRig(panel, top, server_, account);
        try {
            await panel.panel.settled();
            const set = await panel.client.put('/api/plugins/deploy', {
                settings: { user: account.name, ...settings }
            });
            if (set.data?.state !== 'running') {
                throw new Error(`The plugin does not run: ${set.text}`);
            }
            return rig;
        } catch (error) {
            await rig.close();
            throw error;
        }
    }

    async close(): Promise<void> {
        await this.#services.end();
        await this.panel.close();
        await this.git.close();
        this.#account.remove();
        rmSync(this.top, { recursive: true, force: true });
    }
}
