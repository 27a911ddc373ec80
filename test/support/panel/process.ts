/** The panel as a process of its own, as admins start it. For tests that kill or measure a process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { engineHome } from '../../../core/src/engine/files/home.ts';
import { freePort } from '../ports.ts';
import { Client } from './client.ts';

export interface PanelProcess {
    readonly dataDir: string;
    readonly port: number;
    readonly httpPort: number;
    readonly httpsPort: number;
    /** Id of the last process that was started; 0 before the first. */
    readonly pid: number;
    readonly running: boolean;
    /** The last lines that it wrote. */
    readonly output: string;
    /** The process id of the engine, which may have ended; null when none was started yet. */
    enginePid(): number | null;
    /** Starts it, and does not wait. */
    launch(): void;
    /** Starts it and waits until it is ready. @returns milliseconds from the start until then. @throws Error when it ends before, or takes longer than a minute */
    start(): Promise<number>;
    /** @throws Error when it is not ready within a minute, or ends */
    ready(): Promise<void>;
    signal(name: NodeJS.Signals): void;
    /** Waits until the process ends by itself. @returns the exit code; null after a signal */
    ended(): Promise<number | null>;
    /** Sends a signal and waits for the end. @returns the exit code; null after a signal */
    end(name: NodeJS.Signals): Promise<number | null>;
    /** A client that is logged in as `admin`. */
    login(): Promise<Client>;
    /** Ends panel and engine, and removes their files. */
    close(): Promise<void>;
}

export interface PanelProcessOptions {
    readonly environment?: Readonly<Record<string, string>>;
    /** A program with arguments that the panel is started by, such as `nsenter` with a network namespace. */
    readonly by?: readonly string[];
    /** Arguments of node before the panel's entry. */
    readonly node?: readonly string[];
    /** Start the sources, module by module, in place of the bundle. */
    readonly bySource?: boolean;
    /** Default: a temporary folder. A given folder is not removed. */
    readonly dataDir?: string;
}

const nodeArguments = [
    '--max-semi-space-size=8',
    '--conditions=portico-source',
    '--disable-warning=ExperimentalWarning'
];

/** What `npm start` gives to Node, from the root of the repository. */
export const panelArguments = [...nodeArguments, 'core/.bundle/main.js'];

export const processPassword = 'a quiet harbour at dawn';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const readyMs = 60_000;
const endMs = 60_000;
const mostOutput = 100_000;

export async function createPanelProcess({
    environment = {},
    by = [],
    node = [],
    bySource = false,
    dataDir: givenDataDir
}: PanelProcessOptions = {}): Promise<PanelProcess> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-process-'));
    chmodSync(folder, 0o755); // an engine that runs as another user must get through
    const dataDir = givenDataDir ?? join(folder, 'data');
    const [port, httpPort, httpsPort] = [await freePort(), await freePort(), await freePort()];
    let child: ChildProcess | null = null;
    let ended: Promise<number | null> = Promise.resolve(null);
    let output = '';

    const running = (): boolean => child !== null && child.exitCode === null && child.signalCode === null;
    const launch = (): void => {
        if (running()) {
            throw new Error('The panel runs already');
        }
        const [file = '', ...args] = [...by, join(root, 'node_modules/.bin/node')];
        const started = spawn(
            file,
            [...args, ...node, ...(bySource ? [...nodeArguments, 'core/src/main.ts'] : panelArguments)],
            {
                cwd: root,
                stdio: ['ignore', 'pipe', 'pipe'],
                env: {
                    ...process.env,
                    PORTICO_HOST: '127.0.0.1',
                    PORTICO_PORT: String(port),
                    PORTICO_DATA_DIR: dataDir,
                    PORTICO_ADMIN_PASSWORD: processPassword,
                    PORTICO_ENGINE_HTTP_PORT: String(httpPort),
                    PORTICO_ENGINE_HTTPS_PORT: String(httpsPort),
                    PORTICO_LOG_LEVEL: 'warn',
                    PORTICO_PLUGIN_DIRS: '',
                    PORTICO_SERVICES: 'supervisor',
                    ...environment
                }
            }
        );
        child = started;
        ended = new Promise((resolve) => {
            started.once('error', () => resolve(null));
            started.once('exit', (code) => resolve(code));
        });
        for (const stream of [started.stdout, started.stderr]) {
            stream.on('data', (chunk: Buffer) => {
                output = (output + chunk.toString()).slice(-mostOutput);
            });
        }
    };
    const enginePid = (): number | null => {
        try {
            return Number.parseInt(readFileSync(join(dataDir, 'engine.pid'), 'utf8'), 10) || null;
        } catch {
            return null;
        }
    };
    const ready = async (): Promise<void> => {
        const client = new Client(port);
        const until = performance.now() + readyMs;
        while (performance.now() < until) {
            if (!running()) {
                throw new Error(`The panel ended before it was ready:\n${output.slice(-4_000)}`);
            }
            if (
                await client.get('/readyz').then(
                    ({ status }) => status === 200,
                    () => false
                )
            ) {
                return;
            }
            await wait(5);
        }
        throw new Error(`The panel was not ready within ${readyMs / 1000} s:\n${output.slice(-4_000)}`);
    };
    const end = async (name: NodeJS.Signals): Promise<number | null> => {
        if (running()) {
            child?.kill(name);
            const late = setTimeout(() => child?.kill('SIGKILL'), endMs);
            const code = await ended;
            clearTimeout(late);
            return code;
        }
        return ended;
    };
    return {
        dataDir,
        port,
        httpPort,
        httpsPort,
        enginePid,
        launch,
        ready,
        ended: () => ended,
        end,
        get pid() {
            return child?.pid ?? 0;
        },
        get running() {
            return running();
        },
        get output() {
            return output;
        },
        async start() {
            const began = performance.now();
            launch();
            await ready();
            return performance.now() - began;
        },
        signal: (name) => void child?.kill(name),
        async login() {
            const client = new Client(port);
            const { data, text } = await client.login('admin', processPassword);
            if (typeof data?.token !== 'string') {
                throw new Error(`admin could not log in: ${text}`);
            }
            client.token = data.token as string;
            return client;
        },
        async close() {
            child?.kill('SIGCONT');
            await end('SIGKILL');
            const pid = enginePid();
            const ours = pid !== null && commandOf(pid).includes(engineHome(dataDir, null).startFile);
            if (ours) {
                for (const name of ['SIGCONT', 'SIGKILL'] as const) {
                    process.kill(pid, name);
                }
                while (commandOf(pid) !== '') {
                    await wait(10);
                }
            }
            const { persistent, runtime } = engineHome(dataDir, null);
            for (const path of [folder, persistent, runtime]) {
                rmSync(path, { recursive: true, force: true });
            }
        }
    };
}

/** The command line of a process; empty when it has ended. */
export function commandOf(pid: number): string {
    try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    } catch {
        return '';
    }
}

/** How many programs of the machine sleep so many seconds; container engines do not tell what a build runs. */
export const asleep = (seconds: number): number =>
    readdirSync('/proc').filter(
        (name) => /^\d+$/.test(name) && commandOf(Number(name)).startsWith(`sleep\0${seconds}\0`)
    ).length;
