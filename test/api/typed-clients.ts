import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createClient } from '@hey-api/openapi-ts';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import openapiTS, { astToString } from 'openapi-typescript';

import { root } from '../support/docs/markdown.ts';
import { startPanel, type TestPanel } from '../support/panel/panel.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

/** What a consumer writes with openapi-typescript and openapi-fetch. */
const fetchClient = `
import createClient from 'openapi-fetch';
import type { components, paths } from './schema.d.ts';

type Followed = components['schemas']['TasksFollowEvent'];

/** The data of an event is a text; its name says which schema holds for it. */
export function lineOf(event: Followed): string | null {
    if (event.event !== 'log') {
        return null;
    }
    const log = JSON.parse(event.data) as components['schemas']['TasksFollowLogEvent'];
    return log.line;
}

export async function run(baseUrl: string, token: string): Promise<readonly (string | number)[]> {
    const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } });
    const made = await client.POST('/api/hosts', { body: { domain: 'fetch.example', upstream: '127.0.0.1:9' } });
    if (made.data === undefined) {
        throw new Error(made.error.message);
    }
    const { id, domain, state } = made.data.data;
    const list = await client.GET('/api/hosts', { params: { query: { q: 'fetch.example', limit: 10 } } });
    const first = list.data?.data[0]?.domain ?? 'none';
    const changed = await client.PUT('/api/hosts/{id}', { params: { path: { id } }, body: { maintenance: true } });
    const missing = await client.GET('/api/hosts/{id}', { params: { path: { id: 999_999 } } });
    const code: number = missing.error?.code ?? 0;
    const task = await client.POST('/api/plugins/cronjob/tasks', {
        body: { name: 'typed', schedule: '0 3 * * *', command: ['true'] }
    });
    return [domain, state, first, String(changed.data?.data.maintenance), code, task.response.status];
}
`;

/** The same with the client of Hey API. */
const heyClient = `
import { createClient } from './hey/client/index.ts';
import { hostsCreate, hostsGet, hostsList, hostsUpdate } from './hey/sdk.gen.ts';

export async function run(baseUrl: string, token: string): Promise<readonly (string | number)[]> {
    const client = createClient({ baseUrl, auth: token });
    const made = await hostsCreate({ client, body: { domain: 'hey.example', upstream: '127.0.0.1:9' } });
    if (made.data === undefined) {
        throw new Error('not made');
    }
    const { id, domain, state } = made.data.data;
    const list = await hostsList({ client, query: { q: 'hey.example' } });
    const changed = await hostsUpdate({ client, path: { id }, body: { maintenance: true } });
    const missing = await hostsGet({ client, path: { id: 999_999 } });
    return [domain, state, list.data?.data[0]?.domain ?? 'none', String(changed.data?.data.maintenance), missing.response?.status ?? 0];
}
`;

const compilerOptions = {
    target: 'es2024',
    lib: ['es2024', 'dom', 'dom.iterable'],
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: false,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    rewriteRelativeImportExtensions: true,
    skipLibCheck: true,
    types: [],
    outDir: 'out'
};

describe('clients that are generated from GET /api/openapi.json', { timeout: 180_000 }, () => {
    let panel: TestPanel;
    let folder: string;
    let text: string;

    before({ timeout: 180_000 }, async () => {
        panel = await startPanel({
            environment: { PORTICO_PLUGIN_DIRS: realpathSync(join(root, 'extensions')) }
        });
        await pollUntilRunning(panel, 'cronjob');
        ({ text } = await panel.client.get('/api/openapi.json'));
        folder = mkdtempSync(join(process.env['TMPDIR'] ?? '/tmp', 'clients-'));
        writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
        mkdirSync(join(folder, 'node_modules'));
        symlinkSync(packageFolder('openapi-fetch'), join(folder, 'node_modules', 'openapi-fetch'));
        writeFileSync(join(folder, 'openapi.json'), text);
        writeFileSync(
            join(folder, 'schema.d.ts'),
            astToString(await openapiTS(JSON.parse(text) as Parameters<typeof openapiTS>[0]))
        );
        await createClient({
            input: join(folder, 'openapi.json'),
            output: { path: join(folder, 'hey'), module: { extension: '.ts' } },
            logs: { level: 'silent' },
            plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch']
        });
        writeFileSync(join(folder, 'fetch-client.ts'), fetchClient);
        writeFileSync(join(folder, 'hey-client.ts'), heyClient);
        writeFileSync(
            join(folder, 'tsconfig.json'),
            JSON.stringify({ compilerOptions, files: ['fetch-client.ts', 'hey-client.ts'] })
        );
    });

    after({ timeout: 60_000 }, async () => {
        // hey-api's resolver keeps it.
        Reflect.deleteProperty(globalThis, '__EXSOLVE_CACHE__');
        await panel?.close();
        rmSync(folder, { recursive: true, force: true });
    });

    it('compile under strict rules, and do what they say against a panel', async () => {
        const compiled = compile(folder);
        expect(compiled).to.equal('');
        const [base, token] = [`http://127.0.0.1:${panel.port}`, panel.client.token ?? ''];
        const run = async (name: string): Promise<readonly (string | number)[]> => {
            const client = (await import(pathToFileURL(join(folder, 'out', name)).href)) as {
                run(base: string, token: string): Promise<readonly (string | number)[]>;
            };
            return client.run(base, token);
        };
        expect(await run('fetch-client.js')).to.equal([
            'fetch.example',
            'applied',
            'fetch.example',
            'true',
            40400,
            201
        ]);
        expect(await run('hey-client.js')).to.equal(['hey.example', 'applied', 'hey.example', 'true', 404]);
    });

    it('refuse a value of another type', () => {
        writeFileSync(
            join(folder, 'fetch-client.ts'),
            fetchClient.replace("domain: 'fetch.example'", 'domain: 7')
        );
        expect(compile(folder)).to.include("Type 'number' is not assignable to type 'string'");
        writeFileSync(join(folder, 'fetch-client.ts'), fetchClient.replace('log.line', 'log.text'));
        expect(compile(folder)).to.include("Property 'text' does not exist");
    });

    it('come from a document that redocly finds nothing wrong with', async () => {
        const config = await createConfig({
            extends: ['recommended'],
            // `/users/roles/{name}` beside `/users/{id}/sessions`: the paths are the API's, and the panel tells them apart.
            rules: { 'no-ambiguous-paths': 'off' }
        });
        const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
        expect(
            problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`)
        ).to.equal([]);
    });
});

/** Plugins start after the panel answers. */
async function pollUntilRunning({ client }: TestPanel, plugin: string): Promise<void> {
    for (let tries = 0; tries < 300; tries += 1) {
        const { data } = await client.get(`/api/plugins/${plugin}`);
        if (data?.state === 'running') {
            return;
        }
        await wait(100);
    }
    throw new Error(`${plugin} does not run after 30 s`);
}

/** The folder of a package that the tests depend on. */
function packageFolder(name: string): string {
    return join(root, 'node_modules', name);
}

/** What the compiler says; empty when it accepts everything. */
function compile(folder: string): string {
    try {
        execFileSync(
            process.execPath,
            [join(root, 'node_modules/.bin/tsc'), '-p', join(folder, 'tsconfig.json')],
            { cwd: folder, encoding: 'utf8', stdio: 'pipe' }
        );
        return '';
    } catch (error) {
        return String((error as { stdout?: string }).stdout);
    }
}
