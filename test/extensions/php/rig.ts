/** Sites of PHP as an admin has them: a real panel and engine, PHP-FPM of the machine, real accounts, and folders of the test's own. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
    chmodSync,
    chownSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    rmSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ServicesRig } from '../../support/machine/services.ts';
import type { Answer } from '../../support/panel/client.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { type Ended, ended } from '../../support/plugins/panel.ts';
import type { Instance } from '../database/instances.ts';

export const base = '/api/plugins/php';

const program = '/usr/sbin/php-fpm8.2';

/** Why sites cannot be tried on this machine; undefined where they can. */
export const withoutPhp: string | undefined = !existsSync(program)
    ? 'php-fpm8.2 is not installed'
    : process.getuid?.() === 0
      ? undefined
      : 'sites need root';

/** What the engine answered. */
export interface Page {
    readonly status: number;
    readonly type: string;
    readonly text: string;
}

/** A panel with this extension alone, and what it makes in folders of its own. */
export class PhpRig {
    readonly panel: TestPanel;
    readonly top: string;
    /** Names of sites begin with it, so that accounts of the test are known by name. */
    readonly prefix: string;
    readonly #accounts = new Set<string>();
    readonly #used = new DisposableStack();
    readonly #services: ServicesRig;

    constructor(panel: TestPanel, top: string) {
        this.panel = panel;
        this.top = top;
        this.prefix = `t${randomBytes(4).toString('hex')}`;
        this.#services = new ServicesRig(panel.config.dataDir);
    }

    /** Starts one, and lets `prepare` make what a test needs; when that fails, nothing stays behind. */
    static async start(
        prepare: (rig: PhpRig) => Promise<void> = () => Promise.resolve(),
        others: readonly string[] = []
    ): Promise<PhpRig> {
        process.umask(0o077); // as the process of the panel does; `startPanel` runs it in this one
        const top = mkdtempSync(join(tmpdir(), 'portico-php-'));
        chmodSync(top, 0o755);
        mkdirSync(join(top, 'plugins'));
        for (const name of ['php', ...others]) {
            const extension = fileURLToPath(new URL(`../../../extensions/${name}`, import.meta.url));
            symlinkSync(extension, join(top, 'plugins', name));
        }
        const panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: join(top, 'plugins') } });
        const rig = new PhpRig(panel, top);
        try {
            await panel.panel.settled();
            await rig.configure({});
            await prepare(rig);
            return rig;
        } catch (error) {
            await rig.close();
            throw error;
        }
    }

    /** Keeps something until the rig is closed. */
    use(resource: Disposable): void {
        this.#used.use(resource);
    }

    get(path: string): Promise<Answer> {
        return this.panel.client.get(base + path);
    }

    post(path: string, body: unknown = {}): Promise<Answer> {
        return this.panel.client.post(base + path, body);
    }

    put(path: string, body: unknown): Promise<Answer> {
        return this.panel.client.put(base + path, body);
    }

    delete(path: string): Promise<Answer> {
        return this.panel.client.delete(base + path);
    }

    /** The name of a site of this test. */
    name(word: string): string {
        const name = `${this.prefix}-${word}`;
        this.#accounts.add(`php-${name}`);
        return name;
    }

    /** Registers a server of the extension `database`, and returns its number. */
    async registerServer({ kind, port, username, password }: Instance): Promise<number> {
        const made = await this.panel.client.post('/api/plugins/database/servers', {
            name: 'main',
            kind,
            mode: 'registered',
            host: '127.0.0.1',
            port,
            username,
            password
        });
        if (made.status !== 201) {
            throw new Error(`The server is not registered: ${made.text}`);
        }
        return made.data.id as number;
    }

    /** Sets the plugin beside the folders of the test. */
    async configure(settings: object): Promise<void> {
        const set = await this.panel.client.put('/api/plugins/php', {
            settings: { sitesFolder: join(this.top, 'www'), runFolder: join(this.top, 'run'), ...settings }
        });
        if (set.status !== 200) {
            throw new Error(`The plugin does not run: ${set.text}`);
        }
    }

    /** Makes a site, and resolves with its number. */
    async create(word: string, more: object = {}): Promise<number> {
        const task = await this.finish(
            await this.post('/sites', { name: this.name(word), domain: `${word}.test`, ...more })
        );
        if (task.state !== 'succeeded') {
            throw new Error(`The site was not made: ${JSON.stringify(task.error)}`);
        }
        return (task.result as { siteId: number }).siteId;
    }

    finish(answer: Answer): Promise<Ended> {
        return ended(this.panel.client, answer);
    }

    /** Reads a stream of events until it has what is awaited. @param begun - runs when its first event came */
    async follow(path: string, awaited: string, begun: () => Promise<unknown>): Promise<void> {
        const ended_ = new AbortController();
        const answer = await fetch(`http://127.0.0.1:${this.panel.port}${base}${path}`, {
            headers: { authorization: `Bearer ${this.panel.client.token}` },
            signal: ended_.signal
        });
        let text = '';
        let beginning: Promise<unknown> | null = null;
        try {
            for await (const chunk of answer.body ?? []) {
                text += Buffer.from(chunk).toString();
                beginning ??= begun();
                if (text.includes(awaited)) {
                    return;
                }
            }
            throw new Error(`The stream ended without ${awaited}: ${text}`);
        } finally {
            await beginning;
            ended_.abort();
        }
    }

    /** Asks the engine. */
    page(domain: string, path = '/', headers: Readonly<Record<string, string>> = {}): Promise<Page> {
        return askEngine(this.panel.httpPort, domain, path, headers);
    }

    /** Writes a file of a site as a program of the site would: owned by its account, for the group to read. */
    write(word: string, path: string, text: string): void {
        const site = join(this.top, 'www', `${this.prefix}-${word}`);
        const { uid } = statSync(site);
        const folder = join(site, path, '..');
        if (!existsSync(folder)) {
            mkdirSync(folder);
            chownSync(folder, uid, statSync(join(folder, '..')).gid);
            chmodSync(folder, 0o2750);
        }
        const file = join(site, path);
        writeFileSync(file, text);
        chownSync(file, uid, statSync(folder).gid);
        chmodSync(file, 0o640);
    }

    async close(): Promise<void> {
        await this.#services.end();
        await this.panel.close();
        for (const account of this.#accounts) {
            removeAccount(account);
        }
        this.#used.dispose();
        rmSync(this.top, { recursive: true, force: true });
    }
}

/** Whether the machine has an account. */
export function hasAccount(name: string): boolean {
    try {
        execFileSync('getent', ['passwd', name], { stdio: 'ignore' });
        return true;
    } catch {
        return false;
    }
}

function removeAccount(name: string): void {
    if (hasAccount(name)) {
        execFileSync('userdel', ['--', name], { stdio: 'ignore' });
    }
}

/** One request on a connection of its own. The path is sent as it is written. */
export function askEngine(
    port: number,
    domain: string,
    path: string,
    headers: Readonly<Record<string, string>> = {}
): Promise<Page> {
    return new Promise((resolve, reject) => {
        const sent = request(
            { host: '127.0.0.1', port, path, agent: false, headers: { host: domain, ...headers } },
            (answer) => {
                const chunks: Buffer[] = [];
                answer.on('data', (chunk: Buffer) => chunks.push(chunk));
                answer.once('error', reject);
                answer.once('end', () =>
                    resolve({
                        status: answer.statusCode ?? 0,
                        type: String(answer.headers['content-type'] ?? ''),
                        text: Buffer.concat(chunks).toString()
                    })
                );
            }
        );
        sent.once('error', reject);
        sent.end();
    });
}
