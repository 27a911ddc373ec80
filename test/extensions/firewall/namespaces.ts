/** Two network namespaces joined by a veth pair: a server that the firewall protects, and a visitor. Nothing of them touches this machine's own rules. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { type OwnAddress, ownAddress } from '../../../extensions/firewall/src/machine.ts';

/** Why tests in namespaces cannot run here; undefined where they can. */
export const noNamespaces =
    process.getuid?.() !== 0
        ? 'only root makes network namespaces'
        : ['/usr/sbin/nft', '/sbin/nft', '/usr/bin/nft'].some((path) => existsSync(path))
          ? undefined
          : 'nft is not installed';

/** An answer of the panel; `status` is 0 where there was none. */
export interface HttpResult {
    readonly status: number;
    readonly code: number | string;
    /** The body as it came. */
    readonly text?: string;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
    readonly data?: any;
}

export interface Ran {
    readonly code: number;
    readonly stdout: string;
    readonly stderr: string;
}

/** A namespace with a process in it that listens and connects. */
export class Namespace {
    readonly name: string;
    #agent: ChildProcess | null = null;
    #waiting = new Map<number, (result: unknown) => void>();
    #last = 0;

    constructor(name: string) {
        this.name = name;
    }

    get path(): string {
        return `/run/netns/${this.name}`;
    }

    /** Runs a program in the namespace. */
    run(file: string, ...args: readonly string[]): Promise<Ran> {
        return run('nsenter', `--net=${this.path}`, file, ...args);
    }

    /** What a connection attempt comes to: `open`, `refused`, `timeout`, or the code of an error. */
    connect(
        host: string,
        port: number,
        options: { readonly timeoutMs?: number; readonly localAddress?: string } = {}
    ): Promise<string> {
        return this.#ask('connect', { host, port, ...options }) as Promise<string>;
    }

    /** Listens on a port, on all addresses. */
    async listen(port: number, host = '::'): Promise<void> {
        const result = await this.#ask('listen', { port, host });
        if (result !== port) {
            throw new Error(`${this.name} cannot listen on ${port}: ${String(result)}`);
        }
    }

    /** Answers every request of HTTP on a port with one text. */
    async serve(port: number, text: string): Promise<void> {
        const result = await this.#ask('serve', { port, text });
        if (result !== port) {
            throw new Error(`${this.name} cannot serve on ${port}: ${String(result)}`);
        }
    }

    /** Sends a request on a connection of its own. */
    http(call: object): Promise<HttpResult> {
        return this.#ask('http', call) as Promise<HttpResult>;
    }

    /** Opens a connection that stays. */
    hold(name: string, host: string, port: number): Promise<string> {
        return this.#ask('hold', { name, host, port }) as Promise<string>;
    }

    /** Whether a connection that stays still answers. */
    echo(name: string): Promise<string> {
        return this.#ask('echo', { name }) as Promise<string>;
    }

    async close(): Promise<void> {
        const agent = this.#agent;
        if (agent !== null) {
            const ended = new Promise((resolve) => agent.once('exit', resolve));
            agent.stdin?.end();
            await ended;
        }
        // What a panel left there on purpose, such as its engine and the supervisor of services, ends with the namespace.
        for (let left = await this.#pids(); left.length > 0; left = await this.#pids()) {
            left.forEach((pid) => kill(pid));
            await wait(20);
        }
        await run('ip', 'netns', 'del', this.name);
    }

    async #pids(): Promise<readonly number[]> {
        const { stdout } = await run('ip', 'netns', 'pids', this.name);
        const pids = stdout
            .split('\n')
            .filter((line) => line !== '')
            .map(Number);
        return pids.filter((pid) => !/^\d+ \(.*\) Z/.test(readStat(pid)));
    }

    #ask(verb: string, input: object): Promise<unknown> {
        const agent = (this.#agent ??= this.#start());
        const id = (this.#last += 1);
        return new Promise((resolve) => {
            this.#waiting.set(id, resolve);
            agent.stdin?.write(`${JSON.stringify({ id, verb, ...input })}\n`);
        });
    }

    #start(): ChildProcess {
        const agent = spawn(
            'nsenter',
            [`--net=${this.path}`, process.execPath, fileURLToPath(new URL('agent.mjs', import.meta.url))],
            { stdio: ['pipe', 'pipe', 'inherit'] }
        );
        createInterface({ input: agent.stdout }).on('line', (line) => {
            const { id, result } = JSON.parse(line) as { id: number; result: unknown };
            this.#waiting.get(id)?.(result);
            this.#waiting.delete(id);
        });
        return agent;
    }
}

/** A server at 10.77.0.1 and fd77::1, a visitor at 10.77.0.2 and fd77::2 with more addresses of its own. */
export class Network implements AsyncDisposable {
    readonly server: Namespace;
    readonly visitor: Namespace;

    private constructor(server: Namespace, visitor: Namespace) {
        this.server = server;
        this.visitor = visitor;
    }

    static async create(): Promise<Network> {
        const mark = randomBytes(3).toString('hex');
        const [server, visitor] = [new Namespace(`fws-${mark}`), new Namespace(`fwv-${mark}`)];
        const ip = async (...args: readonly string[]): Promise<void> => {
            const { code, stderr } = await run('ip', ...args);
            if (code !== 0) {
                throw new Error(`ip ${args.join(' ')}: ${stderr}`);
            }
        };
        for (const { name } of [server, visitor]) {
            await ip('netns', 'add', name);
            await ip('-n', name, 'link', 'set', 'lo', 'up');
        }
        await ip(
            'link',
            'add',
            'v0',
            'netns',
            server.name,
            'type',
            'veth',
            'peer',
            'name',
            'v0',
            'netns',
            visitor.name
        );
        const ends = [
            [server, ['10.77.0.1/16', 'fd77::1/64']],
            [visitor, ['10.77.0.2/16', '10.77.1.2/16', '10.77.2.2/16', 'fd77::2/64', 'fd77::3/64']]
        ] as const;
        for (const [{ name }, addresses] of ends) {
            for (const address of addresses) {
                await ip(
                    '-n',
                    name,
                    'addr',
                    'add',
                    address,
                    'dev',
                    'v0',
                    ...(address.includes(':') ? ['nodad'] : [])
                );
            }
            await ip('-n', name, 'link', 'set', 'v0', 'up');
        }
        return new Network(server, visitor);
    }

    /** What the server's interfaces have. */
    get addresses(): readonly OwnAddress[] {
        return [
            ['lo', '127.0.0.1', '127.0.0.1/8'],
            ['lo', '::1', '::1/128'],
            ['v0', '10.77.0.1', '10.77.0.1/16'],
            ['v0', 'fd77::1', 'fd77::1/64']
        ].flatMap(([name = '', address = '', cidr = '']) => ownAddress(name, address, cidr) ?? []);
    }

    async close(): Promise<void> {
        await this.server.close();
        await this.visitor.close();
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }
}

function readStat(pid: number): string {
    try {
        return readFileSync(`/proc/${pid}/stat`, 'utf8');
    } catch {
        return `${pid} (ended) Z`;
    }
}

function kill(pid: number): void {
    try {
        process.kill(pid, 'SIGKILL');
    } catch {
        // It ended by itself meanwhile.
    }
}

export function run(file: string, ...args: readonly string[]): Promise<Ran> {
    return new Promise((resolve) => {
        execFile(file, args, { maxBuffer: 1 << 28, timeout: 60_000 }, (error, stdout, stderr) =>
            resolve({
                code: error === null ? 0 : typeof error.code === 'number' ? error.code : 1,
                stdout,
                stderr
            })
        );
    });
}
