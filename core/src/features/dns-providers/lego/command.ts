/** Runs the `lego` command: never with anything of ours in its environment, and never as root. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import {
    accessSync,
    chownSync,
    constants,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    readlinkSync,
    rmSync,
    statSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

import { fail } from '../../../platform/errors.ts';
import { legoTool, type ProviderType } from '../types.ts';
import { isAllowedVariable, readCodes, readType } from './help.ts';

/** Where lego is, and for whom it runs. */
export interface LegoOptions {
    /** Where the command is; null: the first `lego` on the PATH. */
    readonly binary: string | null;
    /** Whose folders they are: what a killed panel left behind is known by it. */
    readonly dataDir: string;
}

/** One run of lego. */
export interface LegoRun {
    readonly arguments: readonly string[];
    /** Variables of the provider; those that may not be handed over are refused. */
    readonly environment: Readonly<Record<string, string>>;
    /** Files below the command's own folder, by relative path. */
    readonly files: Readonly<Record<string, string>>;
    /** One line of what it says, without what was handed to it. */
    line(text: string): void;
}

/** A run of lego that has begun. */
export interface LegoProcess {
    /** The command's own folder, which is its HOME. */
    readonly folder: string;
    /** Resolves with the exit code, null when it was killed. The folder is gone by then. */
    readonly ended: Promise<number | null>;
    kill(): void;
}

const helpMs = 10_000;
/** Uids that no package and no person gets. */
const uids = { from: 61_184, to: 65_519 } as const;
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const longestLine = 2_000;

/** Finds lego, asks it for its types and runs it. */
export class Lego {
    readonly #options: LegoOptions;
    readonly #prefix: string;
    #known: {
        readonly binary: string;
        readonly changed: number;
        readonly types: Promise<readonly ProviderType[]>;
    } | null = null;

    constructor(options: LegoOptions) {
        this.#options = options;
        this.#prefix = `portico-lego-${createHash('sha256').update(options.dataDir).digest('hex').slice(0, 12)}-`;
    }

    /** The types that this version of the command knows; none when it is not installed. */
    async types(): Promise<readonly ProviderType[]> {
        const binary = find(this.#options.binary);
        if (binary === null) {
            return [];
        }
        const changed = statSync(binary).mtimeMs;
        if (this.#known?.binary !== binary || this.#known.changed !== changed) {
            this.#known = { binary, changed, types: this.#learn(binary) };
        }
        return this.#known.types;
    }

    /** @throws TOOL_MISSING 50302 */
    start({ arguments: args, environment, files, line }: LegoRun): LegoProcess {
        const binary = find(this.#options.binary);
        if (binary === null) {
            throw fail.TOOL_MISSING(legoTool, {
                message: 'lego is not installed: it brings the types of DNS providers beside rfc2136'
            });
        }
        const forbidden = Object.keys(environment).find((name) => !isAllowedVariable(name));
        if (forbidden !== undefined) {
            throw new TypeError(`${forbidden} must not be handed to lego`);
        }
        const { folder, identity } = makeFolder(this.#prefix, files);
        const authorities = Object.fromEntries(
            ['SSL_CERT_FILE', 'SSL_CERT_DIR'].flatMap((name) =>
                process.env[name] === undefined ? [] : [[name, process.env[name]]]
            )
        );
        const child = spawn(binary, ['--path', join(folder, 'lego'), ...args], {
            cwd: folder,
            detached: true,
            stdio: ['ignore', 'pipe', 'pipe'],
            ...identity,
            env: {
                ...authorities,
                ...environment,
                HOME: folder,
                TMPDIR: folder,
                PATH: path,
                LEGO_EXPERIMENTAL_CNAME_SUPPORT: 'true'
            }
        });
        const secrets = Object.values(environment).filter((value) => value.length >= 6);
        const say = (text: string): void =>
            line(
                secrets.reduce((clean, secret) => clean.replaceAll(secret, '***'), text).slice(0, longestLine)
            );
        for (const stream of [child.stdout, child.stderr]) {
            readLines(stream, say);
        }
        const ended = new Promise<number | null>((resolve) => {
            child.once('error', (error) => {
                say(`lego could not be started: ${error.message}`);
                resolve(null);
            });
            child.once('close', resolve);
        }).finally(() => rmSync(folder, { recursive: true, force: true }));
        return { folder, ended, kill: () => killGroup(child) };
    }

    /** Removes the folders that runs of a killed panel left. */
    sweep(): void {
        for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(this.#prefix))) {
            const folder = join(tmpdir(), name);
            // One that is still at work ends by itself soon, and what it works on is not taken from it.
            if (!isInUse(folder)) {
                rmSync(folder, { recursive: true, force: true });
            }
        }
    }

    async #learn(binary: string): Promise<readonly ProviderType[]> {
        const codes = readCodes(await this.#help(binary, []));
        const types: ProviderType[] = [];
        const queue = [...codes];
        await Promise.all(
            Array.from({ length: 4 }, async () => {
                for (let code = queue.shift(); code !== undefined; code = queue.shift()) {
                    const type = readType(code, await this.#help(binary, ['-c', code]));
                    if (type !== null) {
                        types.push(type);
                    }
                }
            })
        );
        return types.sort((a, b) => (a.type < b.type ? -1 : 1));
    }

    /** lego needs a folder even to show its help: it gets one of its own. */
    #help(binary: string, more: readonly string[]): Promise<string> {
        const { folder, identity } = makeFolder(this.#prefix, {});
        return new Promise((resolve) => {
            execFile(
                binary,
                ['--path', join(folder, 'lego'), 'dnshelp', ...more],
                {
                    cwd: folder,
                    env: { HOME: folder, PATH: path },
                    timeout: helpMs,
                    killSignal: 'SIGKILL',
                    maxBuffer: 1024 * 1024,
                    ...identity
                },
                (_error, stdout) => {
                    rmSync(folder, { recursive: true, force: true });
                    resolve(stdout);
                }
            );
        });
    }
}

/** A folder that only the command can read; as root the command gets a user id of its own. */
function makeFolder(
    prefix: string,
    files: Readonly<Record<string, string>>
): { readonly folder: string; readonly identity: { readonly uid?: number; readonly gid?: number } } {
    const folder = mkdtempSync(join(tmpdir(), prefix));
    const id = process.getuid?.() === 0 ? freeId() : null;
    for (const [name, text] of Object.entries(files)) {
        const file = join(folder, name);
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        writeFileSync(file, text, { mode: 0o600 });
    }
    if (id === null) {
        return { folder, identity: {} };
    }
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        chownSync(join(entry.parentPath, entry.name), id, id);
    }
    chownSync(folder, id, id);
    return { folder, identity: { uid: id, gid: id } };
}

function freeId(): number {
    const taken = new Set(
        ['/etc/passwd', '/etc/group'].flatMap((file) =>
            readFileSync(file, 'utf8')
                .split('\n')
                .map((line) => Number(line.split(':')[2]))
        )
    );
    for (;;) {
        const id = randomInt(uids.from, uids.to + 1);
        if (!taken.has(id)) {
            return id;
        }
    }
}

function find(configured: string | null): string | null {
    const places =
        configured === null
            ? (process.env['PATH'] ?? path)
                  .split(':')
                  .filter(isAbsolute)
                  .map((folder) => join(folder, 'lego'))
            : [configured];
    return (
        places.find((file) => {
            try {
                accessSync(file, constants.X_OK);
                return statSync(file).isFile();
            } catch {
                return false;
            }
        }) ?? null
    );
}

function killGroup({ pid }: ChildProcess): void {
    try {
        process.kill(-(pid ?? NaN), 'SIGKILL');
    } catch {
        // The program has ended.
    }
}

/** Whether a process works there: then its current folder is that one. */
function isInUse(folder: string): boolean {
    return readdirSync('/proc').some((pid) => {
        try {
            return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === folder;
        } catch {
            return false;
        }
    });
}

function readLines(stream: NodeJS.ReadableStream, line: (text: string) => void): void {
    let rest = '';
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
        const lines = (rest + text).split('\n');
        rest = (lines.pop() ?? '').slice(-longestLine * 2);
        lines.filter((each) => each.trim() !== '').forEach(line);
    });
    stream.on('end', () => {
        if (rest.trim() !== '') {
            line(rest);
        }
    });
}
