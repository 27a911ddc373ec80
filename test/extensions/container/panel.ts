/** A whole panel beside a real container engine, in the engine's network namespace: a test kills either, and starts it again. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { engineHome } from '../../../core/src/engine/files/home.ts';
import { solve } from '../../support/panel/client.ts';
import { panelArguments } from '../../support/panel/process.ts';
import { until } from '../../support/until.ts';
import { type HttpResult, Namespace } from '../firewall/namespaces.ts';
import { TestEngine } from './engines.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const password = 'a quiet harbour at dawn';
const host = '127.0.0.1';
const [panelPort, sitePort] = [7443, 7080];
const longMs = 60_000;
/** A start of the panel is good after 10 s. Three that were not lead to safe mode. */
const goodMs = 11_000;

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
type Data = any;

/** How a task stands. */
export interface TaskState {
    readonly state: string;
    readonly result: Data;
    readonly error: { readonly code: number; readonly reason: string; readonly message: string } | null;
}

/** A panel, its proxy engine, and a container engine with its registry. */
export class PanelBesideEngine implements AsyncDisposable {
    readonly engine: TestEngine;
    readonly folder: string;
    readonly #namespace: Namespace;
    readonly #extensions: readonly string[];
    #panel: ChildProcess | null = null;
    #token: string | undefined;
    #goodAt = 0;
    #badStarts = 0;

    private constructor(engine: TestEngine, extensions: readonly string[]) {
        this.engine = engine;
        this.#extensions = extensions;
        this.#namespace = new Namespace(`t${randomBytes(4).toString('hex')}`);
        this.folder = mkdtempSync(join(tmpdir(), 'pcp-'));
        chmodSync(this.folder, 0o755);
        mkdirSync(join(this.folder, 'plugins'));
        for (const extension of extensions) {
            symlinkSync(join(root, 'extensions', extension), join(this.folder, 'plugins', extension));
        }
        execFileSync('ip', ['netns', 'attach', this.#namespace.name, String(engine.pid)]);
    }

    static async start(extensions: readonly string[]): Promise<PanelBesideEngine> {
        const made = new PanelBesideEngine(await TestEngine.start(), extensions);
        try {
            await made.startPanel();
            await made.ask('PUT', '/container', {
                settings: { socket: made.engine.socket, stackFolder: join(made.folder, 'stacks') }
            });
            return made;
        } catch (error) {
            await made.close();
            throw error;
        }
    }

    /** Starts the panel, and waits until its extensions run. */
    async startPanel(): Promise<void> {
        this.#panel = this.spawn(process.execPath, panelArguments, {
            HOME: this.folder,
            NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
            PORTICO_HOST: host,
            PORTICO_PORT: String(panelPort),
            PORTICO_DATA_DIR: join(this.folder, 'data'),
            PORTICO_ADMIN_PASSWORD: password,
            PORTICO_ENGINE_HTTP_PORT: String(sitePort),
            PORTICO_ENGINE_HTTPS_PORT: '7081',
            PORTICO_LOG_LEVEL: 'error',
            PORTICO_PLUGIN_DIRS: join(this.folder, 'plugins'),
            PORTICO_SERVICES: 'supervisor'
        });
        await until(async () => (await this.call('GET', '/readyz')).status === 200, 'the panel', longMs);
        const { data } = await this.call('GET', '/api/auth/login');
        const login = await this.call('POST', '/api/auth/login', {
            username: 'admin',
            password,
            altcha: solve(data)
        });
        this.#token = login.data.token as string;
        await until(() => this.#isRunning(), 'the extensions', longMs);
        this.#goodAt = performance.now() + goodMs;
        if (this.#badStarts === 2) {
            await until(() => performance.now() > this.#goodAt, 'a good start');
        }
    }

    /** Ends the panel as `kill -9` does. What it started goes on. */
    async killPanel(): Promise<void> {
        this.#badStarts = performance.now() > this.#goodAt ? 0 : this.#badStarts + 1;
        await this.#endPanel();
    }

    async #endPanel(): Promise<void> {
        const panel = this.#panel;
        if (panel !== null && panel.exitCode === null && panel.signalCode === null) {
            const exited = once(panel, 'exit');
            panel.kill('SIGKILL');
            await exited;
        }
    }

    /** Ends the proxy engine as `kill -9` does. */
    async killProxy(): Promise<void> {
        const { stdout } = await this.#namespace.run('ip', 'netns', 'pids', this.#namespace.name);
        const pids = stdout.split('\n').filter((pid) => pid !== '' && readName(pid) === 'caddy');
        if (pids.length === 0) {
            throw new Error('No proxy engine runs');
        }
        pids.forEach((pid) => process.kill(Number(pid), 'SIGKILL'));
    }

    /** Starts a program in the namespace. */
    spawn(file: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): ChildProcess {
        return spawn('nsenter', [`--net=${this.#namespace.path}`, file, ...args], {
            cwd: root,
            stdio: ['ignore', 'ignore', 'inherit'],
            env: { PATH: process.env['PATH'], ...environment }
        });
    }

    call(method: string, path: string, body?: object): Promise<HttpResult> {
        const token = this.#token;
        return this.#namespace.http({
            ...{ host, port: panelPort, method, path, body, timeoutMs: 30_000 },
            ...(token === undefined ? {} : { token })
        });
    }

    /** The process of the panel. */
    get pid(): number {
        return this.#panel?.pid ?? 0;
    }

    /** Reads what is below `/api/plugins` to its end, in a process of its own. */
    read(path: string): ChildProcess {
        const url = `http://${host}:${panelPort}/api/plugins${path}`;
        const authorization = `authorization: Bearer ${this.#token}`;
        return spawn('nsenter', [`--net=${this.#namespace.path}`, 'curl', '-sN', '-H', authorization, url], {
            stdio: ['ignore', 'pipe', 'inherit']
        });
    }

    /** Sends a file below `/api/plugins` from a process of its own, and gives that: a killed panel leaves it with a cut connection. */
    send(method: string, path: string, file: string): ChildProcess {
        return this.spawn(
            process.execPath,
            [
                '-e',
                `fetch(process.argv[1], { method: '${method}', headers: { authorization: process.env.AUTHORIZATION, 'content-type': 'application/x-tar' },
                    body: require('node:fs').readFileSync(process.argv[2]) }).then((answer) => process.exit(answer.status === 202 ? 0 : 1), () => process.exit(2))`,
                `http://${host}:${panelPort}/api/plugins${path}`,
                file
            ],
            { AUTHORIZATION: `Bearer ${this.#token}` }
        );
    }

    /** What a visitor of a site is answered. */
    visit(domain: string, path = '/'): Promise<HttpResult> {
        return this.#namespace.http({ host, port: sitePort, method: 'GET', path, headers: { host: domain } });
    }

    /** The status that a server in the namespace answers; 0 where there is none. */
    async reach(address: string): Promise<number> {
        const [name, port] = address.split(':');
        return (await this.#namespace.http({ host: name, port, method: 'GET', path: '/v2/' })).status;
    }

    /** The data of an answer below `/api/plugins` without a failure. */
    async ask(method: string, path: string, body?: object): Promise<Data> {
        const answer = await this.call(method, `/api/plugins${path}`, body);
        if (answer.code !== 0) {
            throw new Error(`${method} ${path}: ${answer.text ?? answer.code}`);
        }
        return answer.data;
    }

    /** Waits for the end of a task. */
    ended(id: number): Promise<TaskState> {
        return until(
            async () => {
                const { data } = await this.call('GET', `/api/tasks/${id}`);
                return ['queued', 'running'].includes(data.state as string) ? null : (data as TaskState);
            },
            `task ${id}`,
            longMs
        );
    }

    /** The result of a task that succeeds. */
    async finish(method: string, path: string, body: object = {}): Promise<Data> {
        const { id } = await this.ask(method, path, body);
        const { state, error, result } = await this.ended(id as number);
        if (state !== 'succeeded') {
            throw new Error(`${path}: ${state} ${JSON.stringify(error)}`);
        }
        return result;
    }

    async close(): Promise<void> {
        await this.#endPanel();
        await this.engine.close();
        await this.#namespace.close();
        const { persistent, runtime } = engineHome(join(this.folder, 'data'), null);
        for (const path of [this.folder, persistent, runtime]) {
            rmSync(path, { recursive: true, force: true });
        }
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }

    async #isRunning(): Promise<boolean> {
        const { data } = await this.call('GET', '/api/plugins');
        return (data as { name: string; state: string }[])
            .filter(({ name }) => this.#extensions.includes(name))
            .every(({ state }) => state === 'running');
    }
}

function readName(pid: string): string {
    try {
        return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
    } catch {
        return '';
    }
}
