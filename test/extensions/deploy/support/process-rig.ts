/** Deployments of a panel that is a process of its own: tests kill it, and may have it live beside a container engine, in the network namespace of that one. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ServicesRig } from '../../../support/machine/services.ts';
import { Client } from '../../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../../support/panel/process.ts';
import { until } from '../../../support/until.ts';
import { type EngineKind, TestEngine } from '../../container/engines.ts';
import { GitServer } from './git-server.ts';
import { Relay } from './relay.ts';
import { DeployClient, makeAccount, writePackage } from './rig.ts';

const container = fileURLToPath(new URL('../../../../extensions/container', import.meta.url));

/** A panel, a git server, an account and a folder of the test's own. */
export class DeployProcessRig extends DeployClient {
    readonly panel: PanelProcess;
    readonly top: string;
    readonly git: GitServer;
    readonly #account: { readonly name: string; remove(): void };
    readonly #engine: TestEngine | null;
    #relay: Relay | null = null;

    private constructor(
        panel: PanelProcess,
        top: string,
        git: GitServer,
        account: { readonly name: string; remove(): void },
        engine: TestEngine | null
    ) {
        super(new Client(panel.port), panel.httpPort);
        this.panel = panel;
        this.top = top;
        this.git = git;
        this.#account = account;
        this.#engine = engine;
    }

    /** @param kind - a container engine, with the plugin that drives it; null: neither */
    static async start(kind: EngineKind | null = null): Promise<DeployProcessRig> {
        process.umask(0o022); // the account of the test reads what git has
        const top = mkdtempSync(join(tmpdir(), 'portico-deploy-'));
        chmodSync(top, 0o755);
        const engine = kind === null ? null : await TestEngine.start(kind);
        const git = new GitServer(join(top, 'git'));
        const plugins = writePackage(top);
        if (engine !== null) {
            symlinkSync(container, join(plugins, 'container'));
        }
        const panel = await createPanelProcess({
            by: engine === null ? [] : ['nsenter', `--net=/proc/${engine.pid}/ns/net`],
            environment: { PORTICO_PLUGIN_DIRS: plugins }
        });
        const rig = new DeployProcessRig(panel, top, git, makeAccount(), engine);
        try {
            await rig.#begin();
            return rig;
        } catch (error) {
            await rig.close();
            throw error;
        }
    }

    /** The container engine. */
    get engine(): TestEngine {
        if (this.#engine === null) {
            throw new Error('This rig has no container engine');
        }
        return this.#engine;
    }

    /** The folder that stands for `/var/lib/portico-deploy`. */
    get folder(): string {
        return join(this.top, 'releases');
    }

    /** Starts the panel, and waits until the plugin answers. */
    async startPanel(): Promise<void> {
        await this.panel.start();
        this.client = await this.panel.login();
        await until(async () => (await this.get('/projects')).status === 200, 'the plugin to answer');
    }

    /** Kills the panel as a power failure would, and starts it again. */
    async killPanel(): Promise<void> {
        await this.panel.end('SIGKILL');
        await this.startPanel();
    }

    /** Kills the panel and the engine that serves, as a restart of the machine does, and starts them again. */
    async killAll(): Promise<void> {
        await this.panel.end('SIGKILL');
        process.kill(this.panel.enginePid() as number, 'SIGKILL');
        await this.startPanel();
    }

    async close(): Promise<void> {
        await new ServicesRig(this.panel.dataDir).end();
        await this.panel.close();
        await this.#relay?.close();
        await this.#engine?.close();
        await this.git.close();
        this.#account.remove();
        rmSync(this.top, { recursive: true, force: true });
    }

    async #begin(): Promise<void> {
        await this.git.start();
        if (this.#engine !== null) {
            const folder = join(this.top, 'relay');
            mkdirSync(folder, { mode: 0o700 });
            const inward = [this.panel.port, this.panel.httpPort];
            this.#relay = await Relay.start(this.#engine.pid, folder, inward, [this.git.port]);
        }
        await this.startPanel();
        await this.#set('deploy', { user: this.#account.name });
        if (this.#engine !== null) {
            const stackFolder = join(this.top, 'stacks');
            await this.#set('container', { socket: this.#engine.socket, stackFolder });
        }
    }

    async #set(plugin: string, settings: object): Promise<void> {
        const { data, text } = await this.client.put(`/api/plugins/${plugin}`, { settings });
        if (data?.state !== 'running') {
            throw new Error(`The plugin ${plugin} does not run: ${text}`);
        }
    }
}
