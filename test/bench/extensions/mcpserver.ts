/** What an agent's door costs: a call of a tool against the same call by REST, the list of tools, and sessions. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { base, type Mode, pluginFolder } from '../../extensions/mcpserver/rig.ts';
import type { Client as PanelClient } from '../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { createPluginFolder, type PluginFolder, pluginModule } from '../../support/plugins/folder.ts';
import { until } from '../../support/until.ts';
import { median, number, type Report } from '../report.ts';
import { startChild } from '../servers/child.ts';
import { compare, type Compared, memoryOf, ratio } from '../servers/load.ts';

/** Each has limits of its own, and sessions. */
const agents = 20;
const hosts = 20;
const sessionsOfEach = 10;
const mostCalls = 6_000;
/** Of a plugin of the bench, beside those of the panel. */
const listedRoutes = 300;

/** A request as a client of the protocol sent it. */
interface Sent {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
}

export async function bench(report: Report): Promise<void> {
    const folder = pluginFolder();
    const fleet = writeFleet();
    const panel = await createPanelProcess({
        environment: { PORTICO_PLUGIN_DIRS: `${join(folder, 'plugins')}:${fleet.path}` }
    });
    const scripts = mkdtempSync(join(tmpdir(), 'portico-mcp-bench-'));
    try {
        await panel.start();
        const admin = await panel.login();
        await until(
            async () =>
                (await admin.get('/api/plugins')).data.filter(
                    ({ state }: { state: string }) => state === 'running'
                ).length === 2,
            'the plugins to run'
        );
        await admin.put('/api/plugins/mcpserver', {
            settings: { callsPerMinute: mostCalls, parallelCalls: 64 }
        });
        for (let index = 0; index < hosts; index += 1) {
            const { text, status } = await admin.post('/api/hosts', {
                domain: `bench-${index}.test`,
                upstream: '127.0.0.1:9'
            });
            if (status !== 201) {
                throw new Error(text);
            }
        }
        const tokens = await makeTokens(admin);
        // First: memory that a load has left free would hide what the sessions take.
        await measureSessions(report, panel, { admin, tokens });
        await measureLists(report, panel, await makeToken(admin, 'lister', ['fleet:read']));
        await measureCalls(report, panel, { admin, tokens, scripts });
    } finally {
        await panel.close();
        rmSync(scripts, { recursive: true, force: true });
        rmSync(folder, { recursive: true, force: true });
        fleet.remove();
    }
}

/** A plugin with as many routes as the goal of a list of tools names. */
function writeFleet(): PluginFolder {
    const made = createPluginFolder();
    made.write(
        'fleet',
        pluginModule(`
            for (let n = 0; n < ${listedRoutes}; n += 1) {
                ctx.route({
                    method: 'GET', path: '/ships/{id}/parts' + n, id: 'parts' + n, access: 'read',
                    summary: 'Parts of a ship, list ' + n, description: 'The newest first, with what each is for and when it was last looked at.',
                    validate: {
                        params: joi.object({ id: joi.number().integer().min(1).required().label('Ship') }),
                        query: joi.object({
                            q: joi.string().max(200).label('Words'),
                            state: joi.string().valid('sound', 'worn', 'lost').label('State'),
                            from: joi.string().isoDate().label('From'),
                            to: joi.string().isoDate().label('To'),
                            limit: joi.number().integer().min(1).max(500).default(50).label('Most'),
                            cursor: joi.string().max(500).label('Where the page begins')
                        })
                    },
                    handler: () => []
                });
            }`)
    );
    return made;
}

async function makeTokens(admin: PanelClient): Promise<readonly string[]> {
    const tokens: string[] = [];
    for (let index = 0; index < agents; index += 1) {
        tokens.push(
            await makeToken(admin, `agent ${index}`, [
                'hosts:read',
                'settings:read',
                'users:read',
                'engine:read'
            ])
        );
    }
    return tokens;
}

async function makeToken(admin: PanelClient, name: string, permissions: readonly string[]): Promise<string> {
    const { data, text } = await admin.post('/api/auth/tokens', {
        name,
        permissions: ['mcpserver:use', ...permissions]
    });
    if (typeof data?.token !== 'string') {
        throw new Error(text);
    }
    return data.token;
}

async function measureCalls(
    report: Report,
    panel: PanelProcess,
    {
        admin,
        tokens,
        scripts
    }: { readonly admin: PanelClient; readonly tokens: readonly string[]; readonly scripts: string }
): Promise<void> {
    const rest = `http://127.0.0.1:${panel.port}/api/hosts?limit=${hosts}`;
    const script = (name: string, sent: readonly Sent[]): string => {
        const path = join(scripts, `${name}.lua`);
        writeFileSync(path, luaOf(sent));
        return path;
    };
    const plain = tokens.map((token) => ({ headers: { authorization: `Bearer ${token}` }, body: '' }));
    const sent = {
        auto: await Promise.all(tokens.map((token) => captureCall(panel, token, 'auto'))),
        legacy: await Promise.all(tokens.map((token) => captureCall(panel, token, 'legacy')))
    };
    const { pid } = panel;
    const url = `http://127.0.0.1:${panel.port}${base}/mcp`;
    const bare = await startChild<number>('bare-mcp.ts', 'done');
    const found = await compare(
        {
            rest: { url: rest, pid, script: script('rest', plain) },
            auto: { url, pid, script: script('auto', sent.auto) },
            legacy: { url, pid, script: script('legacy', sent.legacy) },
            bare: {
                url: `http://127.0.0.1:${bare.said}/mcp`,
                pid: bare.pid,
                script: script('bare', sent.auto)
            }
        },
        { rounds: 5, seconds: 2, connections: 16 }
    ).finally(() => bare.close());
    const { data: failed } = await admin.get(`${base}/calls?outcome=failure&limit=1`);
    if (failed.length > 0) {
        throw new Error(`A call that was counted failed: ${JSON.stringify(failed)}`);
    }
    const cost = (of: Compared): string => `${number(of.rate)} /s, ${number(of.cpu)} µs each`;
    for (const [mode, name] of [
        ['auto', 'without sessions (2026-07-28)'],
        ['legacy', 'in a session (2025-11-25)']
    ] as const) {
        report.add({
            target: 'mc1',
            what: `calls of hosts.list ${name}, against the same by REST`,
            value: ratio(found[mode], found.rest),
            least: [0.03, 0.5],
            of: `${cost(found[mode])}; REST ${cost(found.rest)}`
        });
    }
    report.add({
        target: 'mc1',
        what: "the protocol's library alone with a tool that does nothing, against REST",
        value: ratio(found.bare, found.rest),
        of: cost(found.bare)
    });
}

/** The request that a real client sends for a call of `hosts.list`. */
async function captureCall(panel: PanelProcess, token: string, mode: Mode): Promise<Sent> {
    const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode } });
    let last: Sent | null = null;
    const transport = new StreamableHTTPClientTransport(
        new URL(`http://127.0.0.1:${panel.port}${base}/mcp`),
        {
            requestInit: { headers: { authorization: `Bearer ${token}` } },
            fetch: (address, init) => {
                const body = String(init?.body ?? '');
                if (body.includes('tools/call')) {
                    last = { headers: Object.fromEntries(new Headers(init?.headers)), body };
                }
                return fetch(address, init);
            }
        }
    );
    await client.connect(transport);
    const answer = await client.callTool({ name: 'hosts__list', arguments: { query: { limit: hosts } } });
    if (answer.isError === true || last === null) {
        throw new Error(JSON.stringify(answer));
    }
    return last;
}

/** A script of wrk: the requests in turn, each with an id of its own. */
function luaOf(sent: readonly Sent[]): string {
    const quoted = (text: string): string => `[==[${text}]==]`;
    const each = sent.map(({ headers, body }) => {
        const named = Object.entries(headers).map(([name, value]) => `[ ${quoted(name)} ]=${quoted(value)}`);
        return `{ headers = { ${named.join(', ')} }, body = ${quoted(body)} }`;
    });
    return `local sent = { ${each.join(',\n')} }
local count = 1000
request = function()
    count = count + 1
    local one = sent[count % #sent + 1]
    if one.body == '' then
        return wrk.format('GET', nil, one.headers)
    end
    return wrk.format('POST', nil, one.headers, (one.body:gsub('"id":%d+', '"id":' .. count)))
end
`;
}

async function measureLists(report: Report, panel: PanelProcess, token: string): Promise<void> {
    const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(
        new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${panel.port}${base}/mcp`), {
            requestInit: { headers: { authorization: `Bearer ${token}` } }
        })
    );
    const times: number[] = [];
    let tools = 0;
    for (let round = 0; round < 15; round += 1) {
        const began = performance.now();
        tools = (await client.listTools()).tools.length;
        times.push(performance.now() - began);
    }
    await client.close();
    if (tools < listedRoutes) {
        throw new Error(`Only ${tools} tools are listed`);
    }
    report.add({
        target: 'mc2',
        what: 'a list of tools, as a client reads it',
        value: median(times),
        unit: 'ms',
        most: [60, 30],
        of: `${tools} tools`
    });
}

async function measureSessions(
    report: Report,
    panel: PanelProcess,
    { admin, tokens }: { readonly admin: PanelClient; readonly tokens: readonly string[] }
): Promise<void> {
    await endAll(admin);
    const before = memoryOf(panel.pid);
    for (let index = 0; index < sessionsOfEach; index += 1) {
        for (const token of tokens) {
            await begin(panel, token);
        }
    }
    const { data } = await admin.get(`${base}/status`);
    report.add({
        target: 'mc3',
        what: `${data.sessions} idle sessions`,
        value: memoryOf(panel.pid) - before,
        unit: 'MB',
        most: [120, 60]
    });
    await endAll(admin);
    const settled = memoryOf(panel.pid);
    for (let index = 0; index < 1_000; index += 1) {
        await end(
            panel,
            tokens[index % tokens.length] ?? '',
            await begin(panel, tokens[index % tokens.length] ?? '')
        );
    }
    const left = (await admin.get(`${base}/status`)).data.sessions as number;
    report.add({
        target: 'mc4',
        what: '1000 sessions that were opened and closed: sessions that are left',
        value: left,
        most: [0, 0],
        of: `${number(memoryOf(panel.pid) - settled)} MB more`
    });
}

async function endAll(admin: PanelClient): Promise<void> {
    for (const { id } of (await admin.get(`${base}/sessions`)).data as { id: string }[]) {
        await admin.delete(`${base}/sessions/${id}`);
    }
}

const accept = 'application/json, text/event-stream';

async function begin(panel: PanelProcess, token: string): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${panel.port}${base}/mcp`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept },
        body: JSON.stringify({
            jsonrpc: '2.0',
            id: 1,
            method: 'initialize',
            params: {
                protocolVersion: '2025-11-25',
                capabilities: {},
                clientInfo: { name: 'bench', version: '1' }
            }
        })
    });
    const text = await answer.text();
    const session = answer.headers.get('mcp-session-id');
    if (session === null) {
        throw new Error(text);
    }
    return session;
}

async function end(panel: PanelProcess, token: string, session: string): Promise<void> {
    const answer = await fetch(`http://127.0.0.1:${panel.port}${base}/mcp`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${token}`, 'mcp-session-id': session }
    });
    await answer.arrayBuffer();
}
