import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { engineHome } from '../../core/src/engine/files/home.ts';
import { blocksOf, readPage, root, rowsOf } from '../support/docs/markdown.ts';
import { commandOf } from '../support/panel/process.ts';
import { freePort } from '../support/ports.ts';
import { until } from '../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const page = readPage('README.md');
const blocks = blocksOf(page);
/** The ports that the page names. */
const shown = ['39921', '8080', '8443', '3000'] as const;
const limitMs = 120_000;

type Json = { readonly code: number; readonly data: any }; // eslint-disable-line @typescript-eslint/no-explicit-any -- answers of every shape; what a test expects there is what it checks

describe('README.md', { timeout: limitMs }, () => {
    let folder: string;
    let dataDir: string;
    let ports: ReadonlyMap<string, number>;
    let panel: Terminal;
    let shell: Terminal;

    /** A block with free ports in place of those that it names. */
    const textOf = (name: string): string => {
        const text = blocks.find((block) => block.language === 'sh' && block.name === name)?.text;
        if (text === undefined) {
            throw new Error(`README.md has no block ${name}`);
        }
        return text.replaceAll(/\b(39921|8080|8443|3000)\b/g, (port) => String(ports.get(port)));
    };
    const run = (name: string): Promise<readonly string[]> => shell.run(textOf(name));
    const listening = (): string => `The panel listens on http://127.0.0.1:${ports.get('39921')}`;
    const startPanel = async (text: string): Promise<Terminal> => {
        const terminal = openTerminal(dataDir);
        terminal.type(`${text}\n`);
        await until(
            () => terminal.output.includes(listening()),
            `the panel to listen:\n${terminal.output}`,
            limitMs
        );
        return terminal;
    };

    before({ timeout: limitMs }, async () => {
        folder = mkdtempSync(join(tmpdir(), 'portico-readme-'));
        chmodSync(folder, 0o755);
        dataDir = join(folder, 'data');
        const free = await Promise.all(shown.map(async (port) => [port, await freePort()] as const));
        ports = new Map(free);
        shell = openTerminal(dataDir);
    });

    after({ timeout: limitMs }, async () => {
        await panel?.close();
        await shell?.close();
        await endEngine(dataDir);
        rmSync(folder, { recursive: true, force: true });
    });

    it('starts the panel, and something to put a proxy in front of', async () => {
        panel = await startPanel(textOf('panel'));
        await run('upstream');
        await until(() => answers(ports.get('3000') ?? 0), 'the upstream');
    });

    it('shows the challenge as it is', async () => {
        const [answer = ''] = await run('challenge');
        const example = blocks.find(({ language }) => language === 'json')?.text ?? '';
        expect(Object.keys(json(answer).data)).to.equal(Object.keys(json(example).data));
        expect(json(answer)).to.include({ code: 0, message: 'ok' });
    });

    it('logs in by the script that it shows', async () => {
        const [answer = ''] = await run('login');
        expect(json(answer).data).to.include({ username: 'admin', role: 'admin', mustChangePassword: false });
    });

    it('creates a host that is served through the engine', async () => {
        const [answer = '', site] = await run('host');
        expect(json(answer).data).to.include({ id: 1, domain: 'first.example', state: 'applied' });
        expect(blocks.filter(({ language }) => language === 'text').map(({ text }) => text)).to.include(
            `${site}\n`
        );
        expect(site).to.equal('hello from the upstream');
    });

    it('is refused what the engine does not take, and nothing changes', async () => {
        const [answer = '', site] = await run('refused');
        expect(json(answer)).to.include({ code: 42200 });
        expect(json(answer).data.engine).to.include('rate_limit');
        expect(site).to.equal('hello from the upstream');
        const [host = ''] = await shell.run(
            'curl -sw \'\\n\' $PANEL/api/hosts/1 -H "Authorization: Bearer $TOKEN"\n'
        );
        expect(json(host).data).to.include({ version: 1, state: 'applied', advanced: [] });
    });

    it('finds the refusal in the audit log, and the log whole', async () => {
        const [list = '', verified = ''] = await run('audit');
        expect(json(list).data).to.have.length(1);
        expect(json(list).data[0]).to.include({
            action: 'update',
            resource: 'hosts',
            outcome: 'failure',
            code: 42200
        });
        expect(json(verified).data).to.include({ holds: true, break: null });
    });

    it('adds a viewer who reads and cannot remove', async () => {
        const [user = '', hosts = '', refused = ''] = await run('viewer');
        expect(json(user).data).to.include({ username: 'vera', role: 'viewer' });
        expect(json(hosts).data.map(({ domain }: { domain: string }) => domain)).to.equal(['first.example']);
        expect(json(refused)).to.include({ code: 40300 });
    });

    it('names as working what is there, and as missing what is not', async () => {
        // The panel answers before its extensions run.
        await until(
            async () => {
                const [list = ''] = await shell.run(
                    'curl -sw \'\\n\' $PANEL/api/plugins -H "Authorization: Bearer $TOKEN"\n'
                );
                const plugins = (JSON.parse(list) as { data: { state: string }[] }).data;
                return plugins.length > 0 && plugins.every(({ state }) => state === 'running');
            },
            'the extensions to start',
            limitMs
        );
        const [document = ''] = await shell.run(
            'curl -sw \'\\n\' $PANEL/api/openapi.json -H "Authorization: Bearer $TOKEN"\n'
        );
        const paths = Object.keys((JSON.parse(document) as { paths: object }).paths);
        const [, today = ''] = /## What works today[^\n]*\n([\s\S]*?)\n## /.exec(page) ?? [];
        const [works = '', missing = ''] = today.split('| Not yet');
        const pathsIn = (text: string): string[] =>
            rowsOf(text).flatMap((cells) =>
                [...(cells[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
            );
        const [pages = ''] = await shell.run('curl -s $PANEL/ | grep -c \'id="root"\'\n');
        const isThere = (path: string): boolean =>
            path === '/'
                ? pages === '1'
                : paths.some((known) => known === path || known.startsWith(`${path}/`));
        expect(
            pathsIn(works).filter((path) => !isThere(path)),
            'said to work'
        ).to.equal([]);
        expect(pathsIn(works).length).to.be.above(8);
        expect(
            pathsIn(`${missing}`).filter(isThere),
            'said to be missing: it is there now, so move its row up'
        ).to.equal([]);
    });

    it('serves on when the panel is ended by Ctrl-C, and ends the engine when that is asked for', async () => {
        await panel.interrupt();
        expect(await run('outlives')).to.equal(['hello from the upstream']);
        panel = await startPanel(textOf('panel').replace('npm start', 'npm start -- --stop-engine'));
        expect(panel.output).to.include('Engine found running');
        await panel.interrupt();
        expect(await answers(ports.get('8080') ?? 0)).to.be.false();
    });
});

interface Terminal {
    readonly output: string;
    type(text: string): void;
    /** Types a block and waits for its end. @returns the lines that it wrote */
    run(text: string): Promise<readonly string[]>;
    /** Ctrl-C: everything in the foreground gets the signal. Waits until the shell has ended. */
    interrupt(): Promise<void>;
    close(): Promise<void>;
}

function openTerminal(dataDir: string): Terminal {
    const inherited = Object.entries(process.env).filter(
        ([name]) => !/^(npm_|PORTICO_(?!TEST_FILE)|NODE_OPTIONS)/.test(name)
    );
    const child: ChildProcess = spawn('sh', [], {
        cwd: root,
        detached: true,
        stdio: ['pipe', 'pipe', 'pipe'],
        env: { ...Object.fromEntries(inherited), PORTICO_DATA_DIR: dataDir }
    });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    let output = '';
    let errors = '';
    let marks = 0;
    child.stdout?.on('data', (chunk: Buffer) => {
        output += chunk.toString();
    });
    child.stderr?.on('data', (chunk: Buffer) => {
        errors += chunk.toString();
    });
    const signal = (name: NodeJS.Signals): void => {
        try {
            process.kill(-(child.pid ?? 0), name);
        } catch {
            // They have all ended.
        }
    };
    return {
        get output() {
            return output + errors;
        },
        type: (text) => void child.stdin?.write(text),
        async run(text) {
            const from = output.length;
            const mark = `--- end of block ${(marks += 1)} ---`;
            child.stdin?.write(`${text}\necho '${mark}'\n`);
            await until(() => output.includes(`${mark}\n`), `the end of\n${text}`, limitMs);
            return output
                .slice(from, output.indexOf(`${mark}\n`))
                .trimEnd()
                .split('\n');
        },
        async interrupt() {
            child.stdin?.end();
            signal('SIGINT');
            await ended;
            await until(() => !groupLives(child.pid ?? 0), 'the panel to end', limitMs);
        },
        async close() {
            child.stdin?.end();
            signal('SIGKILL');
            await ended;
        }
    };
}

function groupLives(pid: number): boolean {
    try {
        process.kill(-pid, 0);
        return true;
    } catch {
        return false;
    }
}

function answers(port: number): Promise<boolean> {
    return new Promise((resolve) => {
        const socket = connect(port, '127.0.0.1', () => {
            socket.destroy();
            resolve(true);
        });
        socket.on('error', () => resolve(false));
    });
}

/** Whatever a test that failed has left. */
async function endEngine(dataDir: string): Promise<void> {
    let home;
    try {
        home = engineHome(dataDir, null);
    } catch {
        return; // the panel never made its folder
    }
    try {
        const pid = Number.parseInt(readFileSync(home.pidFile, 'utf8'), 10);
        if (commandOf(pid).includes(home.startFile)) {
            process.kill(pid, 'SIGKILL');
            await until(() => commandOf(pid) === '', 'the engine to end');
        }
    } catch {
        // It has ended.
    }
    for (const path of [home.persistent, home.runtime]) {
        rmSync(path, { recursive: true, force: true });
    }
}

function json(text: string): Json {
    return JSON.parse(text) as Json;
}
