/** A real panel in this process: a temporary data folder, a real database, and a real Caddy on free ports. Tests ask it over its real port. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { engineHome } from '../../../core/src/engine/files/home.ts';
import { createPanel, type Panel, type PanelOptions } from '../../../core/src/panel.ts';
import { type Config, readConfig } from '../../../core/src/platform/config.ts';
import { createLog } from '../../../core/src/platform/log/log.ts';
import { freePort } from '../ports.ts';
import { Client, type Watch } from './client.ts';

export const adminPassword = 'a quiet harbour at dawn';

export interface TestPanel {
    readonly panel: Panel;
    readonly config: Config;
    /** Logged in as `admin`. */
    readonly client: Client;
    readonly port: number;
    readonly httpPort: number;
    readonly httpsPort: number;
    /** The lines of the log. */
    readonly lines: string[];
    /** The lines that were shown on the console. */
    readonly shown: string[];
    /** Makes a user and logs in; resolves with a bearer token. */
    tokenOf(role: string, username?: string): Promise<string>;
    /** Ends the panel, not the engine, and starts another one on the same folder and ports. @param more - what is different this time */
    restart(more?: Partial<Config>): Promise<void>;
    /** Ends panel and engine, and removes their files. */
    close(): Promise<void>;
}

export interface TestPanelOptions extends Partial<
    Pick<PanelOptions, 'driver' | 'clock' | 'drainMs' | 'pluginTiming' | 'hookTiming'>
> {
    readonly environment?: Readonly<Record<string, string>>;
    readonly watch?: Watch;
    /** An existing folder whose panel has ended. It is not removed at the end. */
    readonly dataDir?: string;
}

export async function startPanel(options: TestPanelOptions = {}): Promise<TestPanel> {
    const root = mkdtempSync(join(tmpdir(), 'portico-panel-'));
    chmodSync(root, 0o755);
    const [httpPort, httpsPort] = [await freePort(), await freePort()];
    let port = 0;
    const lines: string[] = [];
    const shown: string[] = [];
    const config = readConfig(
        {
            PORTICO_HOST: '127.0.0.1',
            PORTICO_PORT: '0',
            PORTICO_DATA_DIR: options.dataDir ?? join(root, 'data'),
            PORTICO_ADMIN_PASSWORD: adminPassword,
            PORTICO_ENGINE_HTTP_PORT: String(httpPort),
            PORTICO_ENGINE_HTTPS_PORT: String(httpsPort),
            PORTICO_LOG_LEVEL: 'debug',
            PORTICO_PLUGIN_DIRS: '',
            PORTICO_SERVICES: 'supervisor',
            ...options.environment
        },
        root
    );
    const start = async (more: Partial<Config> = {}): Promise<Panel> => {
        const panel = await createPanel({
            config: { ...config, port, ...more },
            log: createLog({ level: config.logLevel, write: (line) => lines.push(line) }),
            show: (text) => shown.push(text),
            checkReturns: true,
            drainMs: 2_000,
            reloadWindowMs: 100, // a visitor of a test does not wait for the second that an admin may
            ...(options.driver === undefined ? {} : { driver: options.driver }),
            ...(options.clock === undefined ? {} : { clock: options.clock }),
            ...(options.drainMs === undefined ? {} : { drainMs: options.drainMs }),
            ...(options.pluginTiming === undefined ? {} : { pluginTiming: options.pluginTiming }),
            ...(options.hookTiming === undefined ? {} : { hookTiming: options.hookTiming })
        });
        ({ port } = await panel.start());
        return panel;
    };
    let panel = await start();
    const client = new Client(port, options.watch);
    const login = async (username: string, password: string): Promise<string> => {
        const { data, text } = await client.login(username, password);
        if (typeof data?.token !== 'string') {
            throw new Error(`${username} could not log in: ${text}`);
        }
        return data.token as string;
    };
    client.token = await login('admin', adminPassword);
    let made = 0;
    return {
        get panel() {
            return panel;
        },
        config,
        client,
        port,
        httpPort,
        httpsPort,
        lines,
        shown,
        async tokenOf(role, username = `${role}${(made += 1)}`) {
            const password = `${username} walks along the quay`;
            const { status, text } = await client.post('/api/users', {
                username,
                password,
                role,
                mustChangePassword: false
            });
            if (status !== 201) {
                throw new Error(`${username} could not be made: ${text}`);
            }
            return login(username, password);
        },
        async restart(more) {
            await panel.stop();
            panel = await start(more);
        },
        async close() {
            await panel.stop({ engine: true });
            const { persistent, runtime } = engineHome(config.dataDir, config.engineUser);
            for (const folder of [root, persistent, runtime]) {
                rmSync(folder, { recursive: true, force: true });
            }
        }
    };
}
