/** A container engine of the test's own, in a network namespace and with folders of its own, and an image made on the spot. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
    cpSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** Where the registry of {@link DockerEngine} listens, as the engine sees it. */
export const registryAddress = '127.0.0.1:5000';
/** The image that every engine of a test has. */
export const image = 'portico-test/busybox:1';

const programs = ['dockerd', 'containerd', 'unshare', 'setpriv', 'busybox', 'docker-registry'];
const folders = (process.env['PATH'] ?? '').split(':').concat('/usr/sbin', '/sbin');
const missing = programs.find((program) => !folders.some((folder) => existsSync(join(folder, program))));

/** Why tests with an engine cannot run here; undefined where they can. */
export const noEngine =
    process.getuid?.() !== 0
        ? 'only root runs a container engine'
        : missing === undefined
          ? undefined
          : `${missing} is not installed`;

/** What the engine of a test answered. */
export interface EngineAnswer {
    readonly status: number;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
    readonly data: any;
}

/** A real dockerd with a real registry beside it. */
export class DockerEngine implements AsyncDisposable {
    readonly root: string;
    readonly #daemon: ChildProcess;
    readonly #exited: Promise<unknown>;

    private constructor(root: string, daemon: ChildProcess) {
        this.root = root;
        this.#daemon = daemon;
        this.#exited = new Promise((resolve) => daemon.once('exit', resolve));
    }

    get socket(): string {
        return join(this.root, 'docker.sock');
    }

    static async start(): Promise<DockerEngine> {
        const root = mkdtempSync(join(tmpdir(), 'pce-'));
        writeFileSync(
            join(root, 'daemon.json'),
            JSON.stringify({
                'data-root': join(root, 'data'),
                'exec-root': join(root, 'exec'),
                pidfile: join(root, 'pid'),
                hosts: [`unix://${join(root, 'docker.sock')}`],
                bip: '10.200.0.1/24',
                dns: ['127.0.0.1'],
                'shutdown-timeout': 1
            })
        );
        writeFileSync(
            join(root, 'registry.yml'),
            `version: 0.1\nlog: { level: error }\nstorage: { filesystem: { rootdirectory: ${root}/registry }, delete: { enabled: true } }\nhttp: { addr: ${registryAddress} }\n`
        );
        const script = [
            'ip link set lo up',
            `setpriv --pdeathsig KILL docker-registry serve ${root}/registry.yml >${root}/registry.log 2>&1 &`,
            `exec setpriv --pdeathsig TERM dockerd --config-file ${root}/daemon.json >${root}/dockerd.log 2>&1`
        ].join('\n');
        const daemon = spawn('unshare', ['-n', '-m', 'sh', '-c', script], {
            stdio: 'ignore',
            env: { PATH: folders.join(':'), HOME: root }
        });
        const engine = new DockerEngine(root, daemon);
        try {
            await engine.#ready();
            await engine.importImage(image);
            return engine;
        } catch (error) {
            await engine.close();
            throw error;
        }
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

    /** Names of all containers, sorted. */
    async names(): Promise<readonly string[]> {
        const { data } = await this.ask('GET', '/containers/json?all=true');
        return (data as { Names: string[] }[]).map(({ Names }) => (Names[0] ?? '').slice(1)).sort();
    }

    /** Stops the daemon as a machine that is switched off would. */
    pause(): void {
        this.#daemon.kill('SIGSTOP');
    }

    resume(): void {
        this.#daemon.kill('SIGCONT');
    }

    async close(): Promise<void> {
        this.resume();
        this.#daemon.kill('SIGTERM');
        await this.#exited;
        this.#endRest();
        rmSync(this.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    }

    /** A container that just ended may have its supervisor for a moment longer than the daemon lives. */
    #endRest(): void {
        for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
            try {
                if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${this.root}/`)) {
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
            if (this.#daemon.exitCode !== null) {
                break;
            }
            await wait(50);
        }
        throw new Error(
            `dockerd does not start:\n${readFileSync(join(this.root, 'dockerd.log'), 'utf8').slice(-3_000)}`
        );
    }
}

/** A root file system of busybox as a tar archive, with what a busybox that is not static needs. */
function busyboxTar(folder: string, mark: string): Buffer {
    const root = mkdtempSync(join(folder, 'root-'));
    for (const each of ['bin', 'tmp', 'etc', 'data']) {
        mkdirSync(join(root, each));
    }
    const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim();
    const applets = [
        'sh',
        'sleep',
        'echo',
        'cat',
        'ls',
        'true',
        'false',
        'id',
        'touch',
        'test',
        'printf',
        'stty',
        'env',
        'seq',
        'kill',
        'mkdir',
        'ps'
    ];
    cpSync(busybox, join(root, 'bin', 'busybox'), { dereference: true });
    applets.forEach((applet) => symlinkSync('busybox', join(root, 'bin', applet)));
    const libraries = execFileSync('sh', ['-c', `ldd ${busybox} 2>/dev/null || true`], { encoding: 'utf8' });
    for (const [library] of libraries.matchAll(/\/\S+\.so\S*/g)) {
        mkdirSync(join(root, library, '..'), { recursive: true });
        cpSync(library, join(root, library), { dereference: true });
    }
    writeFileSync(join(root, 'etc', 'mark'), `${mark}\n`);
    const tar = execFileSync('tar', ['-C', root, '-cf', '-', '.'], { maxBuffer: 1 << 28 });
    rmSync(root, { recursive: true, force: true });
    return tar;
}
