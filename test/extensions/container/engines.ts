/** A container engine of the test's own, in a network namespace and with folders of its own, and an image made on the spot. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
    closeSync,
    existsSync,
    mkdtempSync,
    openSync,
    readdirSync,
    readFileSync,
    readlinkSync,
    rmSync
} from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { busyboxTar, writeDocker, writePodman, writeRegistry } from './support/engine-files.ts';

/** Where the registry of {@link DockerEngine} listens, as the engine sees it. */
export const registryAddress = '127.0.0.1:5000';
/** Where a registry that answers wrong listens, where a test starts one. */
export const faultyRegistry = '127.0.0.1:5001';
/** Where registries that ask for a password listen, where a test starts them. Podman's call for a login goes without TLS to `localhost` alone. */
export const guardedRegistries = ['localhost:5002', 'localhost:5003'] as const;
/** The image that every engine of a test has. */
export const image = 'portico-test/busybox:1';

/** An engine that tests run. */
export type EngineKind = 'docker' | 'podman';
/** The engines that tests run, each where it can. */
export const engineKinds = ['docker', 'podman'] as const;

const shared = ['unshare', 'setpriv', 'busybox', 'docker-registry'];
const programs = {
    docker: ['dockerd', 'containerd', ...shared],
    podman: [
        ...['podman', 'conmon', 'runc', '/usr/lib/podman/netavark', '/usr/libexec/podman/catatonit'],
        ...shared
    ]
};
const folders = (process.env['PATH'] ?? '').split(':').concat('/usr/sbin', '/sbin');

/** Why tests with an engine cannot run here; undefined where they can. */
export function lackOf(kind: EngineKind): string | undefined {
    if (process.getuid?.() !== 0) {
        return 'only root runs a container engine';
    }
    const missing = programs[kind].find((program) =>
        program.startsWith('/')
            ? !existsSync(program)
            : !folders.some((folder) => existsSync(join(folder, program)))
    );
    return missing === undefined ? undefined : `${missing} is not installed`;
}

/** Why tests with Docker cannot run here; undefined where they can. */
export const noEngine = lackOf('docker');

/** What the engine of a test answered. */
export interface EngineAnswer {
    readonly status: number;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
    readonly data: any;
}

/** A real engine in a network namespace of its own, with a real registry beside it. */
export class TestEngine implements AsyncDisposable {
    readonly kind: EngineKind;
    readonly root: string;
    readonly #args: readonly string[];
    /** Holds the namespace, and the registry in it. */
    readonly #namespace: ChildProcess;
    #daemon: ChildProcess;

    private constructor(kind: EngineKind, root: string) {
        this.kind = kind;
        this.root = root;
        this.#args =
            kind === 'docker'
                ? writeDocker(root)
                : writePodman(root, [registryAddress, faultyRegistry, ...guardedRegistries]);
        const script = `ip link set lo up; echo up; exec setpriv --pdeathsig KILL docker-registry serve ${writeRegistry(root, registryAddress)} 2>${root}/registry.log`;
        this.#namespace = spawn('unshare', ['-n', '-m', 'sh', '-c', script], {
            stdio: ['ignore', 'pipe', 'ignore'],
            env: { PATH: folders.join(':'), HOME: root }
        });
        this.#daemon = this.#namespace;
    }

    static async start(kind: EngineKind = 'docker'): Promise<TestEngine> {
        const root = mkdtempSync(join(tmpdir(), 'pce-'));
        const engine = new TestEngine(kind, root);
        try {
            await new Promise((resolve) => engine.#namespace.stdout?.once('data', resolve));
            engine.#startDaemon();
            await engine.#ready();
            await engine.importImage(image);
            return engine;
        } catch (error) {
            await engine.close();
            throw error;
        }
    }

    get socket(): string {
        return join(this.root, 'engine.sock');
    }

    /** The process of the registry. */
    get registry(): number {
        return this.#namespace.pid ?? 0;
    }

    /** A process in the engine's network namespace. */
    get pid(): number {
        return this.#namespace.pid ?? 0;
    }

    #startDaemon(): void {
        const log = openSync(join(this.root, 'daemon.log'), 'a');
        this.#daemon = spawn(
            'nsenter',
            [
                `--net=/proc/${this.pid}/ns/net`,
                `--mount=/proc/${this.pid}/ns/mnt`,
                'setpriv',
                '--pdeathsig',
                'TERM',
                ...this.#args
            ],
            {
                stdio: ['ignore', log, log],
                env: {
                    PATH: folders.join(':'),
                    HOME: this.root,
                    CONTAINERS_CONF: join(this.root, 'containers.conf'),
                    CONTAINERS_REGISTRIES_CONF: join(this.root, 'registries.conf')
                }
            }
        );
        closeSync(log);
    }

    /** Makes an image of busybox; `mark` makes it another one, `changes` are lines of a Dockerfile. */
    async importImage(
        name: string,
        mark = '',
        changes: Readonly<Record<string, string>> = {}
    ): Promise<void> {
        const [repo, tag] = name.split(/:(?=[^:/]*$)/);
        const lines = Object.entries(changes).map(
            ([instruction, value]) => `&changes=${encodeURIComponent(`${instruction} ${value}`)}`
        );
        const { status, data } = await this.ask(
            'POST',
            `/images/create?fromSrc=-&repo=${encodeURIComponent(repo ?? '')}&tag=${tag ?? 'latest'}${lines.join('')}`,
            busyboxTar(this.root, mark)
        );
        if (status !== 200) {
            throw new Error(`${status} ${JSON.stringify(data)}`);
        }
        if (this.kind === 'podman' && tag !== 'latest') {
            // Podman's import knows no tag.
            const { status: id } = data as { status: string };
            await this.ask('POST', `/images/${id}/tag?repo=${encodeURIComponent(repo ?? '')}&tag=${tag}`);
            await this.ask('DELETE', `/images/${encodeURIComponent(`${repo}:latest`)}`);
        }
    }

    /** Asks the engine past the plugin. */
    ask(method: string, path: string, body?: object | Buffer): Promise<EngineAnswer> {
        return new Promise((resolve, reject) => {
            const bytes = Buffer.isBuffer(body)
                ? body
                : body === undefined
                  ? null
                  : Buffer.from(JSON.stringify(body));
            const sent = request(
                {
                    socketPath: this.socket,
                    method,
                    path,
                    headers: {
                        host: 'engine',
                        'content-type': Buffer.isBuffer(body) ? 'application/x-tar' : 'application/json',
                        'content-length': bytes?.length ?? 0
                    }
                },
                (response) => {
                    const chunks: Buffer[] = [];
                    response.on('data', (chunk: Buffer) => chunks.push(chunk));
                    response.on('end', () => {
                        const text = Buffer.concat(chunks).toString();
                        let data: unknown = text;
                        try {
                            data = JSON.parse(text);
                        } catch {
                            // Progress is many documents; tests look into its text.
                        }
                        resolve({ status: response.statusCode ?? 0, data });
                    });
                }
            );
            sent.on('error', reject);
            sent.end(bytes ?? undefined);
        });
    }

    /** Runs a container past the plugin, as people do; gives its id. */
    async run(name: string, body: object = {}): Promise<string> {
        const { HostConfig: host = {}, ...rest } = body as { HostConfig?: object };
        const { status, data } = await this.ask('POST', `/containers/create?name=${name}`, {
            Image: image,
            Cmd: ['sleep', '1000'],
            StopTimeout: 0,
            ...rest,
            HostConfig: {
                Ulimits: [
                    { Name: 'nofile', Soft: 1_024, Hard: 4_096 },
                    { Name: 'nproc', Soft: 4_096, Hard: 4_096 }
                ],
                ...host
            }
        });
        const { status: started } = await this.ask('POST', `/containers/${name}/start`);
        if (status !== 201 || started !== 204) {
            throw new Error(`${status} ${started} ${JSON.stringify(data)}`);
        }
        return (data as { Id: string }).Id;
    }

    /** Names of all containers, sorted. */
    async names(): Promise<readonly string[]> {
        const { data } = await this.ask('GET', '/containers/json?all=true');
        return (data as { Names: string[] }[]).map(({ Names }) => (Names[0] ?? '').slice(1)).sort();
    }

    /** Leads connections to a port of this machine to the same port in the engine's network. */
    async relay(port: number): Promise<AsyncDisposable> {
        const server = createServer((socket) => {
            const inside = spawn(
                'nsenter',
                [`--net=/proc/${this.pid}/ns/net`, 'busybox', 'nc', '127.0.0.1', String(port)],
                { stdio: ['pipe', 'pipe', 'ignore'] }
            );
            inside.stdin.on('error', () => socket.destroy());
            socket.on('error', () => inside.kill());
            socket.on('close', () => inside.kill());
            socket.pipe(inside.stdin);
            inside.stdout.pipe(socket);
        });
        server.listen(port, '127.0.0.1');
        await once(server, 'listening');
        return {
            async [Symbol.asyncDispose]() {
                server.close();
                await once(server, 'close');
            }
        };
    }

    /** Makes the daemon answer nothing, as one that hangs. */
    pause(): void {
        this.#daemon.kill('SIGSTOP');
    }

    resume(): void {
        this.#daemon.kill('SIGCONT');
    }

    /** Ends the daemon, and starts it again. */
    async restart(): Promise<void> {
        await this.#end(this.#daemon, 'SIGTERM');
        await this.revive();
    }

    /** Kills the daemon as `kill -9` does, and starts it again. Containers go on where Docker was told `live-restore`, and on Podman. */
    async crash(): Promise<void> {
        await this.kill();
        await this.revive();
    }

    /** The first half of {@link TestEngine.crash}. */
    kill(): Promise<void> {
        return this.#end(this.#daemon, 'SIGKILL');
    }

    /** Starts the daemon that ended. */
    async revive(): Promise<void> {
        // Where nothing reaps the dead containerd, dockerd takes it for one that runs.
        rmSync(join(this.root, 'exec', 'containerd', 'containerd.pid'), { force: true });
        this.#startDaemon();
        await this.#ready();
    }

    /** Runs a program where the engine lives, with its mounts. */
    inside(program: string, ...args: readonly string[]): void {
        const spaces = [`--net=/proc/${this.pid}/ns/net`, `--mount=/proc/${this.pid}/ns/mnt`];
        execFileSync('nsenter', [...spaces, program, ...args]);
    }

    /** Runs the engine's reload, as `systemctl reload docker` does. */
    reload(): void {
        this.#daemon.kill('SIGHUP');
    }

    async close(): Promise<void> {
        this.resume();
        if (this.kind === 'podman') {
            await this.#removeAll().catch(() => undefined);
        }
        await this.#end(this.#daemon, 'SIGTERM');
        const { pid, exitCode, signalCode } = this.#namespace;
        const mounts = pid !== undefined && exitCode === null && signalCode === null ? mountsOf(pid) : null;
        await this.#end(this.#namespace, 'SIGKILL');
        this.#endRest(mounts);
        rmSync(this.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    }

    /** The containers of Podman outlive its service. */
    async #removeAll(): Promise<void> {
        const { data } = await this.ask('GET', '/containers/json?all=true');
        for (const { Id: id } of data as { Id: string }[]) {
            await this.ask('DELETE', `/containers/${id}?force=true&v=true&t=0`);
        }
    }

    async #end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
        if (child.exitCode === null && child.signalCode === null) {
            const exited = once(child, 'exit');
            child.kill(signal);
            await exited;
        }
    }

    /**
     * Ends what the daemon left: a supervisor of a container that just ended, Podman's name server, a container that could not be removed.
     * They are told by their command, by the engine's mounts, or by files of the engine that are mounted in theirs.
     */
    #endRest(mounts: string | null): void {
        const here = mountsOf('self');
        for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
            try {
                const read = (file: string) => readFileSync(`/proc/${pid}/${file}`, 'utf8');
                const isOurs =
                    read('cmdline').includes(`${this.root}/`) ||
                    (mountsOf(pid) !== here &&
                        (mountsOf(pid) === mounts || read('mountinfo').includes(`/${basename(this.root)}/`)));
                if (isOurs) {
                    process.kill(Number(pid), 'SIGKILL');
                }
            } catch {
                // It ended by itself.
            }
        }
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }

    async #ready(): Promise<void> {
        for (let round = 0; round < 600; round += 1) {
            const answer = await this.ask('GET', '/_ping').catch(() => null);
            if (answer?.status === 200) {
                return;
            }
            if (this.#daemon.exitCode !== null || this.#daemon.signalCode !== null) {
                break;
            }
            await wait(50);
        }
        throw new Error(
            `${this.kind} does not start:\n${readFileSync(join(this.root, 'daemon.log'), 'utf8').slice(-3_000)}`
        );
    }
}

/** The mount namespace of a process. @throws ENOENT when it has ended */
const mountsOf = (pid: number | string): string => readlinkSync(`/proc/${pid}/ns/mnt`);
