/** The plugin in a real panel with its real engine, and the official clients of both generations of the protocol. */
import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { type CallToolResult, Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { startPanel, type TestPanel, type TestPanelOptions } from '../../support/panel/panel.ts';
import { until } from '../../support/until.ts';

/** Below which the plugin's routes are. */
export const base = '/api/plugins/mcpserver';

/** The protocol's generations, as the client chooses them. */
export type Mode = 'auto' | 'legacy';

/** An envelope of the panel as a tool answers it. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
export type ToolData = any;

/** A panel with the plugin. */
export interface McpRig {
    readonly panel: TestPanel;
    /** The address of the agents' door. @param query - such as `?effect=read` */
    url(query?: string): URL;
    /** An API token with these permissions; `mcpserver:use` is added. @param session - of its user; default: the admin's */
    token(permissions: readonly string[], session?: string): Promise<string>;
    /** A client that is connected. */
    connect(token: string, mode: Mode, options?: ConnectOptions): Promise<Client>;
    /** Changes settings of the plugin. */
    set(settings: object): Promise<void>;
    close(): Promise<void>;
}

/** How a client connects. */
export interface ConnectOptions {
    readonly query?: string;
    /** Answers questions of the server; the client says that it can. */
    readonly answer?: (question: string) => 'accept' | 'decline';
}

/** What a tool answered. */
export function contentOf(result: CallToolResult): ToolData {
    return result.structuredContent;
}

/** Two seconds in pauses of a loop that has time: what else the machine does lengthens each of them, too. */
const pausesOfTwoSeconds = 200;

/** Watches what a client is told of its tools. @returns makes a change, and waits until the client is told of it, for two seconds at most */
export async function watchTools(
    client: Client,
    mode: Mode
): Promise<(change: () => Promise<unknown>) => Promise<void>> {
    let told = 0;
    client.setNotificationHandler('notifications/tools/list_changed', () => {
        told += 1;
    });
    if (mode === 'auto') {
        await client.listen({ toolsListChanged: true });
    }
    return async (change) => {
        const earlier = told;
        await change();
        let pauses = 0;
        for (; told === earlier && pauses < pausesOfTwoSeconds; pauses += 1) {
            await wait(10);
        }
        if (told === earlier) {
            throw new Error('The client was not told within two seconds');
        }
    };
}

/** Moves the end of an approval into the past; without an id, of all. */
export function letPass(dataDir: string, id: number | null = null): void {
    writeRows(
        dataDir,
        'update approvals set expires_at = ? where id = coalesce(?, id)',
        Date.now() - 1_000,
        id
    );
}

/** Writes to the table of the plugin. In a process of its own: closing a database ends the locks that this one has on its file. */
export function writeRows(
    dataDir: string,
    statement: string,
    ...values: readonly (string | number | null)[]
): void {
    const [file = ''] = globSync(join(dataDir, '**/mcpserver/*/data.db'));
    const code = `
        const [file, statement, values] = process.argv.slice(1);
        const db = new (require('node:sqlite').DatabaseSync)(file, { timeout: 60000 });
        db.prepare(statement).run(...JSON.parse(values));`;
    execFileSync(process.execPath, ['--no-warnings', '-e', code, file, statement, JSON.stringify(values)]);
}

/** A folder with a link to the plugin alone, for PORTICO_PLUGIN_DIRS. */
export function pluginFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'portico-mcp-'));
    mkdirSync(join(folder, 'plugins'));
    symlinkSync(
        fileURLToPath(new URL('../../../extensions/mcpserver', import.meta.url)),
        join(folder, 'plugins', 'mcpserver')
    );
    return folder;
}

/** Starts the panel. @param more - folders of further plugins */
export async function createRig({
    more = [],
    ...options
}: TestPanelOptions & { readonly more?: readonly string[] } = {}): Promise<McpRig> {
    const folder = pluginFolder();
    const panel = await startPanel({
        ...options,
        environment: {
            ...options.environment,
            PORTICO_PLUGIN_DIRS: [join(folder, 'plugins'), ...more].join(':')
        }
    });
    await until(async () => {
        const { data } = await panel.client.get('/api/plugins/mcpserver');
        if (data?.failure) {
            throw new Error(JSON.stringify(data));
        }
        return data.state === 'running';
    }, 'the plugin to run');
    const clients: Client[] = [];
    let made = 0;
    let current = {};
    const url = (query = ''): URL => new URL(`http://127.0.0.1:${panel.port}${base}/mcp${query}`);
    return {
        panel,
        url,
        async token(permissions, session) {
            const { data, text } = await panel.client.post(
                '/api/auth/tokens',
                {
                    name: `agent ${(made += 1)}`,
                    permissions: ['mcpserver:use', ...permissions]
                },
                session === undefined ? {} : { token: session }
            );
            if (typeof data?.token !== 'string') {
                throw new Error(text);
            }
            return data.token as string;
        },
        async connect(token, mode, { query = '', answer } = {}) {
            const client = new Client(
                { name: 'test agent', version: '1.0.0' },
                {
                    versionNegotiation: { mode },
                    capabilities: answer === undefined ? {} : { elicitation: { form: {} } }
                }
            );
            if (answer !== undefined) {
                client.setRequestHandler('elicitation/create', ({ params }) => {
                    const action = answer(params.message);
                    return action === 'accept' ? { action, content: {} } : { action };
                });
            }
            await client.connect(
                new StreamableHTTPClientTransport(url(query), {
                    requestInit: { headers: { authorization: `Bearer ${token}` } }
                })
            );
            clients.push(client);
            return client;
        },
        async set(settings) {
            current = { ...current, ...settings };
            const { code, text } = await panel.client.put('/api/plugins/mcpserver', { settings: current });
            if (code !== 0) {
                throw new Error(text);
            }
        },
        async close() {
            await Promise.allSettled(clients.map((client) => client.close()));
            await panel.close();
            rmSync(folder, { recursive: true, force: true });
        }
    };
}
