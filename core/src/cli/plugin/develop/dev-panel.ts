/** The panel of `portico plugin dev`, which reloads the plugin after each save. */
import { watch } from 'node:fs';
import { cp, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import type { Found } from '@portico/registry';
import { Mutex } from '@portico/sdk';

import { engineHome } from '../../../engine/files/home.ts';
import { createPanel, type Panel } from '../../../panel.ts';
import type { Config } from '../../../platform/config.ts';
import { createLog } from '../../../platform/log/log.ts';
import { CommandError } from '../../command/command-error.ts';
import type { Output } from '../../command/output.ts';
import { tokenCreate } from '../../token/create.ts';
import { addPages, writePageTypes } from './dev-pages.ts';
import { StagedCopies } from './staged-copies.ts';

/** What `portico plugin dev` was called with. */
export interface DevOptions {
    readonly config: Config;
    readonly output: Output;
    /** The folder of the plugin. */
    readonly folder: string;
    readonly port: number;
    /** Whether the data folder is the author's own and is kept. */
    readonly keep: boolean;
}

/** A reload waits this long after the last change, since editors write a file in several steps. */
const quietMs = 150;

/** Runs the panel until a signal ends it. @returns the exit code */
export async function develop({ config, output, folder, port, keep }: DevOptions): Promise<number> {
    const plugin = await realpath(resolve(folder)).catch(() => {
        throw new CommandError(`There is no folder ${resolve(folder)}`);
    });
    const root = await mkdtemp(join(tmpdir(), 'portico-dev-'));
    // Listening from the beginning, so that a signal also ends a panel that is only starting.
    const ended = new Promise<void>((done) =>
        ['SIGINT', 'SIGTERM', 'SIGHUP'].forEach((signal) => process.on(signal, () => done()))
    );
    try {
        const stage = new StagedCopies(plugin, join(root, 'stage'));
        const place = await stage.copy();
        await stage.show(place);
        const [httpPort, httpsPort] = [await freePort(), await freePort()];
        const own: Config = {
            ...config,
            host: '127.0.0.1',
            port,
            pluginDirs: [stage.shown],
            ...(keep ? {} : { dataDir: join(root, 'data') }),
            engineHttpPort: config.engineHttpPort ?? httpPort,
            engineHttpsPort: config.engineHttpsPort ?? httpsPort,
            adminPassword: config.adminPassword ?? crypto.randomUUID()
        };
        const log = createLog({ level: 'warn', write: (line) => output.say(readable(line, stage)) });
        const panel = await createPanel({ config: own, log, show: () => undefined, checkReturns: true });
        process.on('uncaughtException', (error) => {
            if (!panel.handleUncaught(error)) {
                process.stderr.write(`${error.stack ?? error.message}\n`);
                process.exit(1);
            }
        });
        try {
            const hasPages = await addPages(panel, stage, own.nodeModules);
            const address = await panel.start();
            await panel.settled();
            const session = new DevSession(panel, stage, place, own, output);
            await session.greet(address.port, hasPages);
            await reloadUntil(ended, plugin, stage, () => session.reload());
            return 0;
        } finally {
            await panel.stop({ engine: !keep });
            if (!keep) {
                // Under root the engine lives outside the data folder.
                const { persistent, runtime } = engineHome(own.dataDir, own.engineUser);
                await Promise.all(
                    [persistent, runtime].map((place) => rm(place, { recursive: true, force: true }))
                );
            }
        }
    } finally {
        await rm(root, { recursive: true, force: true });
    }
}

/** Why a saved version does not run. `cause` is what its code threw. */
interface Refusal {
    readonly failure: { readonly code: string; readonly message: string };
    readonly cause?: unknown;
}

/** A line of the log for a person: an error with its stack, in the author's own files. */
function readable(line: string, stage: StagedCopies): string {
    const { level, msg, error } = JSON.parse(line) as {
        readonly level: string;
        readonly msg?: string;
        readonly error?: { readonly stack?: string };
    };
    return stage.translate(error?.stack === undefined ? line.trimEnd() : `${level}: ${msg}\n${error.stack}`);
}

/** The session of an author with one plugin. */
class DevSession {
    readonly #panel: Panel;
    readonly #stage: StagedCopies;
    readonly #config: Config;
    readonly #output: Output;
    #shown: string;

    constructor(panel: Panel, stage: StagedCopies, shown: string, config: Config, output: Output) {
        this.#panel = panel;
        this.#stage = stage;
        this.#shown = shown;
        this.#config = config;
        this.#output = output;
    }

    /** Shows the address of the plugin and a token for it, and the address of its pages. */
    async greet(port: number, hasPages: boolean): Promise<void> {
        const found = await this.#found(this.#shown);
        const name = pluginName(found);
        const { permissions = {} } = 'plugin' in found.result ? found.result.plugin.manifest : {};
        await this.#say(name);
        const asked = ['plugins:read', ...new Set(['read', 'write', ...Object.keys(permissions)])]
            .map((each) => (each.includes(':') ? each : `${name}:${each}`))
            .join(',');
        const values: Readonly<Record<string, string>> = {
            user: 'admin',
            name: `dev ${new Date().toISOString()}`,
            permissions: asked,
            expires: '12h'
        };
        let token = '';
        await tokenCreate
            .run({
                config: this.#config,
                positionals: [],
                flag: () => false,
                text: (option) => values[option],
                required: (option) => values[option] ?? '',
                output: {
                    json: false,
                    say: () => undefined,
                    result: (_document, text) => void (token = text ?? '')
                }
            })
            .catch((error: unknown) =>
                this.#output.say(`No token could be created: ${(error as Error).message}`)
            );
        const url = `http://127.0.0.1:${port}/api/plugins/${name}`;
        this.#output.result({ url, token }, `URL=${url}\nTOKEN=${token}`);
        if (hasPages) {
            this.#output.say(
                `Pages: http://127.0.0.1:${port}/p/${name}, as admin with the password ${this.#config.adminPassword}`
            );
        }
        this.#output.say(
            `Try: curl -H "Authorization: Bearer $TOKEN" $URL/…\nThe plugin is reloaded after every save. Ctrl+C ends the panel${this.#config.dataDir.startsWith(tmpdir()) ? ' and removes its data' : ''}.`
        );
    }

    /** Replaces the running version by the saved one. If the saved one has an error, the running one stays. */
    async reload(): Promise<void> {
        const { plugins } = this.#panel;
        const next = await this.#stage.copy();
        const found = await this.#found(next);
        const before = await this.#found(this.#shown);
        const name = pluginName(before);
        const problem =
            'fault' in found.result
                ? found.result.fault
                : pluginName(found) === name
                  ? null
                  : {
                        code: 'NAME_CHANGED',
                        message: `Its name is ${pluginName(found)} now: start \`portico plugin dev\` again`
                    };
        const loaded: Refusal | Awaited<ReturnType<typeof plugins.load>> =
            problem === null ? await plugins.load(name, found) : { failure: problem };
        const refused = 'failure' in loaded ? loaded : await this.#probe(name, found, loaded.definition);
        if (refused !== null) {
            await this.#stage.drop(next);
            return this.#output.say(
                `Not reloaded; the version before goes on running: ${this.#describe(refused.failure, refused.cause)}`
            );
        }
        const data = join(this.#config.dataDir, 'plugin-data', name);
        const kept = join(next, 'data');
        await this.#replace(name, next, () => cp(data, kept, { recursive: true }).catch(() => undefined));
        if (plugins.runtime(name)?.state === 'running') {
            await this.#stage.drop(this.#shown);
            this.#shown = next;
            return this.#say(name);
        }
        const runtime = plugins.runtime(name);
        const failure = runtime?.failure ?? {
            code: runtime?.state ?? 'unknown',
            message: 'it asks for more than it was granted; start `portico plugin dev` again'
        };
        this.#output.say(
            `Not reloaded; the version before is started again: ${this.#describe(failure, runtime?.thrown)}`
        );
        await this.#replace(name, this.#shown, async () => {
            await rm(data, { recursive: true, force: true });
            await cp(kept, data, { recursive: true }).catch(() => undefined);
        });
        await this.#stage.drop(next);
        await this.#say(name);
    }

    /** Stops the running version and starts a copy instead, as the panel itself does. */
    async #replace(name: string, place: string, between: () => Promise<void>): Promise<void> {
        const { plugins } = this.#panel;
        await plugins.withPlugin(name, async () => {
            const runtime = plugins.runtime(name);
            if (runtime !== null) {
                await plugins.stop(runtime, 'it was saved');
            }
            await between();
            await this.#stage.show(place);
            await plugins.refreshInventory();
            for (const record of plugins.records.of(name)) {
                // Failures during development do not lead to quarantine.
                await plugins.records.note(name, record.package, { failures: [], quarantinedAt: null });
            }
        });
        await plugins.reconcile(name, { retry: true });
    }

    /** Sets the saved version up with an empty data folder while the other one runs. @returns why that failed; null when it did not */
    async #probe(
        name: string,
        found: Found,
        definition: Parameters<Panel['plugins']['prepareGeneration']>[1]
    ): Promise<Refusal | null> {
        const dataDir = await mkdtemp(join(tmpdir(), 'portico-probe-'));
        const record = this.#panel.plugins.records.of(name).at(-1);
        try {
            await mkdir(dataDir, { recursive: true });
            const generation = await this.#panel.plugins.prepareGeneration(found, definition, {
                dataDir,
                settings: record?.settings ?? {},
                grants: () =>
                    'plugin' in found.result ? (found.result.plugin.manifest.capabilities ?? {}) : {}
            });
            await generation.close('it was only tried');
            return null;
        } catch (error) {
            const { code = 'UNKNOWN', message } = error as Error & { readonly code?: string };
            return { failure: { code, message }, cause: error };
        } finally {
            await rm(dataDir, { recursive: true, force: true });
        }
    }

    async #found(place: string): Promise<Found> {
        const [found] = (
            await this.#panel.plugins.registry.discover([{ origin: 'folder', path: place }])
        ).found.filter(({ folder }) => folder.startsWith(place));
        if (found === undefined) {
            throw new CommandError('The folder has no package.json that can be read');
        }
        return found;
    }

    async #say(name: string): Promise<void> {
        const runtime = this.#panel.plugins.runtime(name);
        const { state = 'unknown', failure = null } = runtime ?? {};
        this.#output.say(
            failure === null
                ? `${name} ${runtime?.generation?.version ?? ''} is ${state}: ${runtime?.generation?.document.routes.map(({ methods, path }) => `${methods.join('|')} ${path}`).join(', ') ?? ''}`
                : `${name} is ${state}: ${this.#describe(failure, runtime?.thrown)}`
        );
        const { result } = await this.#found(this.#shown);
        if (failure === null && 'plugin' in result) {
            await writePageTypes(this.#panel, result.plugin.manifest, this.#stage);
        }
    }

    /** A failure with the line of the author's file, where one is on the stack. */
    #describe({ code, message }: Refusal['failure'], cause: unknown): string {
        const place = this.#stage.placeOf(cause);
        return this.#stage.translate(`${code}: ${message}${place === null ? '' : `\n    at ${place}`}`);
    }
}

function pluginName({ result }: Found): string {
    if ('fault' in result) {
        throw new CommandError(`${result.fault.code}: ${result.fault.message}`);
    }
    return result.plugin.manifest.name;
}

/** Calls `saved` after each save, one call at a time, until `ended` resolves. */
async function reloadUntil(
    ended: Promise<void>,
    plugin: string,
    stage: StagedCopies,
    saved: () => Promise<void>
): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const runs = new Mutex();
    const watcher = watch(plugin, { recursive: true }, (_event, path) => {
        if (path !== null && !stage.isIgnored(path)) {
            clearTimeout(timer);
            timer = setTimeout(() => {
                runs.run(saved).catch(
                    (error: unknown) => void process.stderr.write(`${(error as Error).message}\n`)
                );
            }, quietMs);
        }
    });
    await ended;
    clearTimeout(timer);
    watcher.close();
    await runs.idle();
}

async function freePort(): Promise<number> {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    await new Promise((done) => server.close(done));
    return port;
}
