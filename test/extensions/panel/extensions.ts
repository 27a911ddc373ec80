/** What people do with the three extensions, in the real panel, with a real log-in, over HTTP. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { WebSocket } from 'ws';

import { type Answer, type CallOptions, Client } from '../../support/panel/client.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { createPluginFolder, type PluginFolder, pluginModule } from '../../support/plugins/folder.ts';
import { openReceiver, type Receiver } from '../../support/servers/webhooks.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;
const files = '/api/plugins/filemanager';
const cron = '/api/plugins/cronjob';
const monitoring = '/api/plugins/monitoring';
const names = ['cronjob', 'filemanager', 'monitoring'];

let panel: TestPanel;
let others: PluginFolder;
let receiver: Receiver;
let root: string;
let operator: CallOptions;
let viewer: CallOptions;

const call = (method: string, path: string, options: CallOptions = {}): Promise<Answer> =>
    panel.client.call(method, path, options);
const running = (): Promise<unknown> =>
    until(async () => {
        const { data } = await panel.client.get('/api/plugins');
        return names.every(
            (name) => data.find((each: { name: string }) => each.name === name)?.state === 'running'
        );
    }, 'the extensions to run');
/**
 * Routes that assistants call at once and that take free words, of the extensions that reach the network. Each was looked at: its words go no further than this
 * machine, and the servers that the panel itself runs on. A new one that sends them to a service outside says `tool: false` instead.
 */
const keepWords: Readonly<Record<string, string>> = {
    ai: 'conversations redact tools',
    appstore: 'app apps',
    backup: 'search snapshots',
    container:
        'container containers exceptions hosts images network networks registries revisions stack stacks volume volumes',
    cronjob: 'previewSchedule searchOutput tasks',
    database: 'explain rows',
    filemanager:
        'addFavourite archiveEntries checksums entry list preview search searchContent size trash versions',
    firewall: 'bans elements nat rules services sets simulate zones',
    monitoring: 'checks history processes units',
    php: 'check'
};

interface Schema {
    readonly $ref?: string;
    readonly type?: string | readonly string[];
    readonly enum?: readonly unknown[];
    readonly const?: unknown;
    readonly format?: string;
    readonly pattern?: string;
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly additionalProperties?: boolean | Schema;
    readonly items?: Schema;
    readonly anyOf?: readonly Schema[];
    readonly oneOf?: readonly Schema[];
}

/** A parameter or a body of an operation. */
interface Part extends Schema {
    readonly in?: string;
    readonly name?: string;
    readonly schema?: Schema;
}

interface Operation {
    readonly operationId: string;
    readonly parameters?: readonly Part[];
    readonly requestBody?: { readonly content?: Readonly<Record<string, Part>> };
}

interface ApiDocument {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

function reachesNetwork(plugin: string): boolean {
    const file = new URL(`../../../extensions/${plugin}/package.json`, import.meta.url);
    return (
        existsSync(file) &&
        'network' in
            (JSON.parse(readFileSync(file, 'utf8')) as { portico: { capabilities: object } }).portico
                .capabilities
    );
}

/** Whether a value of a schema may hold text of any form. */
function takesWords(schema: Schema, find: (ref: string) => Schema): boolean {
    const { $ref: ref, type, properties = {}, additionalProperties: more, items, anyOf, oneOf } = schema;
    if (ref !== undefined) {
        return takesWords(find(ref), find);
    }
    if (schema.enum !== undefined || schema.const !== undefined) {
        return false;
    }
    const below = [
        ...Object.values(properties),
        ...(typeof more === 'object' ? [more] : []),
        ...(items === undefined ? [] : [items]),
        ...(anyOf ?? oneOf ?? [])
    ];
    const isAny = type === undefined && below.length === 0;
    const isText =
        [type].flat().includes('string') && schema.format === undefined && schema.pattern === undefined;
    return isAny || isText || more === true || below.some((each) => takesWords(each, find));
}

const refused = ({ code, data }: Answer): readonly unknown[] => [code, data.permission];

describe('the extensions in a panel', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        root = mkdtempSync(join(tmpdir(), 'portico-root-'));
        mkdirSync(join(root, 'inbox'));
        receiver = await openReceiver();
        others = createPluginFolder();
        others.write(
            'slow-disk',
            pluginModule(
                `
                ctx.health('disk', () => ({ state: 'degraded', evidence: 'Writes take 3 s', remedy: { text: 'Replace the disk' } }));
                ctx.route({ method: 'POST', path: '/repair', id: 'repair', access: 'write', summary: 'Long work', validate: { payload: joi.object({ steps: joi.number().required() }) },
                    handler: async ({ payload: { steps }, actor }) => sdk.reply.accepted(await ctx.task({ kind: 'repair', access: 'write', actor }, async ({ signal, progress }) => {
                        if (steps < 0) { throw sdk.errors.conflict('disk'); }
                        for (let step = 0; step < steps && !signal.aborted; step += 1) {
                            progress(step / steps, 'step ' + step);
                            await new Promise((resolve) => setTimeout(resolve, 5));
                        }
                        signal.throwIfAborted();
                        return { steps };
                    })) });`,
                { head: "import * as sdk from '@portico/sdk';" }
            )
        );
        others.write('broken', pluginModule("throw new Error('no licence')"));
        panel = await startPanel({
            environment: {
                PORTICO_PLUGIN_DIRS: [
                    fileURLToPath(new URL('../../../extensions', import.meta.url)),
                    others.path
                ].join(':')
            }
        });
        await running();
        operator = { token: await panel.tokenOf('operator') };
        viewer = { token: await panel.tokenOf('viewer') };
    });
    after({ timeout: limitMs }, async () => {
        await panel?.close();
        await receiver?.close();
        others?.remove();
        rmSync(root, { recursive: true, force: true });
    });

    it('offer assistants no read that sends their words out', { timeout: 3 * limitMs }, async () => {
        await panel.panel.settled();
        const { data: tools } = await panel.client.get('/api/plugins/mcpserver/tools?effect=read&limit=500');
        const document = JSON.parse((await panel.client.get('/api/openapi.json')).text) as ApiDocument;
        const find = (ref: string): Part =>
            ref
                .split('/')
                .slice(1)
                .reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document) as Part;
        const operations = new Map(
            Object.values(document.paths)
                .flatMap((path) => Object.values(path))
                .map((operation) => [operation.operationId, operation])
        );
        const found: Record<string, string> = {};
        for (const { route, dangerous } of tools as { route: string; dangerous: boolean }[]) {
            const [plugin = '', name = ''] = route.split('.');
            const { parameters = [], requestBody = {} } = operations.get(route) ?? {};
            const given = [...parameters, ...Object.values(requestBody.content ?? {})]
                .map((part) => (part.$ref === undefined ? part : find(part.$ref)))
                .filter((part) => part.in !== 'header' && part.name !== 'cursor');
            if (
                reachesNetwork(plugin) &&
                !dangerous &&
                given.some(({ schema = {} }) => takesWords(schema, find))
            ) {
                found[plugin] = `${found[plugin] ?? ''} ${name}`.trim();
            }
        }
        expect(found).to.equal(keepWords);
        const sending = ['ai.memories', 'container.searchImages', 'deploy.repositories'];
        expect([...operations.keys()]).to.include(sending);
        expect(tools.map(({ route }: { route: string }) => route)).to.not.include(sending);
    });

    it('edit files, for those whose role reaches them', async () => {
        const set = await panel.client.put('/api/plugins/filemanager', {
            settings: { roots: [{ name: 'main', path: root, roles: ['operator', 'viewer'] }] }
        });
        expect([set.code, set.data.state]).to.equal([0, 'running']);
        const made = await call('PUT', `${files}/content?root=main&path=inbox/a.txt`, {
            ...operator,
            body: '0123456789',
            headers: { 'content-type': 'text/plain' }
        });
        expect([made.status, made.code]).to.equal([201, 0]);
        const part = await call('GET', `${files}/content?root=main&path=inbox/a.txt`, {
            ...operator,
            headers: { range: 'bytes=2-4' }
        });
        expect([part.status, part.text]).to.equal([206, '234']);
        expect(
            (await call('GET', `${files}/files?root=main&path=inbox`, viewer)).data.map(
                ({ name }: { name: string }) => name
            )
        ).to.equal(['a.txt']);
        expect(refused(await call('GET', `${files}/content?root=main&path=inbox/a.txt`, viewer))).to.equal([
            40300,
            'filemanager:content'
        ]);
        expect(refused(await call('DELETE', `${files}/files?root=main&path=inbox/a.txt`, viewer))).to.equal([
            40300,
            'filemanager:write'
        ]);
        expect(
            (await call('GET', `${files}/content?root=main&path=../../etc/passwd`, operator)).code
        ).to.equal(40350);
        const [entry] = (await panel.client.get('/api/audit?resource=file&limit=1')).data;
        expect([entry.action, entry.resourceId, entry.actor.username]).to.equal([
            'update',
            'main:inbox/a.txt',
            (await call('GET', '/api/auth/me', operator)).data.username
        ]);
    });

    it('hold the keys of the panel out of every root', async () => {
        const above = join(panel.config.dataDir, '..');
        await panel.client.put('/api/plugins/filemanager', {
            settings: {
                roots: [
                    { name: 'main', path: root, roles: ['operator', 'viewer'] },
                    { name: 'above', path: above, roles: [] }
                ]
            }
        });
        expect(existsSync(join(above, 'data', 'audit.head'))).to.be.true();
        for (const path of ['data', 'data/plugins.lock.json', 'data/audit.head']) {
            const listed = await call('GET', `${files}/files?root=above&path=${path}`);
            const read = await call('GET', `${files}/content?root=above&path=${path}`);
            expect(
                [listed.status >= 400, read.status >= 400],
                `${path}: ${listed.text.slice(0, 100)} ${read.text.slice(0, 100)}`
            ).to.equal([true, true]);
        }
    });

    it('go on with an upload after the panel was restarted', async () => {
        const tus = { 'tus-resumable': '1.0.0' };
        const base64 = (text: string): string => Buffer.from(text).toString('base64');
        const begun = await call('POST', `${files}/uploads`, {
            ...operator,
            headers: {
                ...tus,
                'upload-length': '10',
                'upload-metadata': `root ${base64('main')},path ${base64('inbox/big.bin')}`
            }
        });
        expect(begun.status).to.equal(201);
        const upload = new URL(String(begun.headers.location), 'http://panel').pathname;
        const chunk = (offset: number, body: string): Promise<Answer> =>
            call('PATCH', upload, {
                ...operator,
                body,
                headers: {
                    ...tus,
                    'content-type': 'application/offset+octet-stream',
                    'upload-offset': String(offset)
                }
            });
        expect((await chunk(0, 'hello')).headers['upload-offset']).to.equal('5');
        await panel.restart();
        await running();
        expect((await call('HEAD', upload, { ...operator, headers: tus })).headers['upload-offset']).to.equal(
            '5'
        );
        expect((await chunk(5, 'world')).status).to.equal(204);
        expect(readFileSync(join(root, 'inbox/big.bin'), 'utf8')).to.equal('helloworld');
    });

    it('open a terminal by a ticket that works once', async () => {
        expect(refused(await call('POST', `${files}/terminals`, { ...operator, body: {} }))).to.equal([
            40300,
            'filemanager:terminal'
        ]);
        const { status, data, text } = await panel.client.post(`${files}/terminals`, {
            columns: 80,
            rows: 24
        });
        expect(status, text).to.equal(200);
        const address = `ws://127.0.0.1:${panel.port}${data.path as string}`;
        const socket = new WebSocket(address);
        let shown = '';
        socket.on('message', (message: Buffer) => {
            shown += message.toString();
        });
        const closed = new Promise((resolve, reject) => socket.once('close', resolve).once('error', reject));
        await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
        socket.send(Buffer.from('echo $((20+3)) && exit 5\n'));
        await closed;
        expect(shown).to.contain('23');
        expect(shown).to.contain('"exitCode":5');
        const again = await new Promise<number>((resolve) => {
            const second = new WebSocket(address);
            second.once('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0));
            second.once('open', () => resolve(200));
            second.on('error', () => undefined);
        });
        expect(again).to.equal(401);
    });

    it('run a task now, and show what it prints to those who may see it', async () => {
        const made = await panel.client.post(`${cron}/tasks`, {
            name: 'greet',
            schedule: '0 0 1 1 *',
            command: ['/bin/sh', '-c', 'echo $WORD one; sleep 0.2; echo two'],
            env: { WORD: 'secretly' }
        });
        expect(made.status, made.text).to.equal(201);
        const { id } = made.data;
        expect(made.data.env).to.equal({ WORD: { set: true } });
        expect(
            refused(
                await call('POST', `${cron}/tasks`, {
                    ...operator,
                    body: { name: 'x', schedule: '@daily', command: ['true'] }
                })
            )
        ).to.equal([40300, 'cronjob:write']);
        expect(refused(await call('POST', `${cron}/tasks/${id}/run`, { ...viewer, body: {} }))).to.equal([
            40300,
            'cronjob:run'
        ]);
        const seen = await call('GET', `${cron}/tasks/${id}`, viewer);
        expect([seen.status, seen.text.includes('/bin/sh')]).to.equal([200, false]);
        const run = await call('POST', `${cron}/tasks/${id}/run`, { ...operator });
        expect(run.status, run.text).to.equal(202);
        const output = await call('GET', `${cron}/runs/${run.data.id}/output`, operator); // the stream ends with the run
        expect(String(output.headers['content-type'])).to.startWith('text/event-stream');
        expect([output.text.includes('secretly one'), output.text.includes('two')]).to.equal([true, true]);
        expect(refused(await call('GET', `${cron}/runs/${run.data.id}/output`, viewer))).to.equal([
            40300,
            'cronjob:output'
        ]);
        const done = (await call('GET', `${cron}/runs/${run.data.id}`, operator)).data;
        expect([done.state, done.exitCode]).to.equal(['succeeded', 0]);
        expect(
            (await call('GET', `${cron}/tasks/${id}/runs`, viewer)).data.map(
                ({ id: one }: { id: number }) => one
            )
        ).to.equal([done.id]);
    });

    it('follow long work that a task begins to its end, and cancel it when the run is stopped', async () => {
        const begin = async (steps: number): Promise<number> => {
            const { data: task } = await panel.client.post(`${cron}/tasks`, {
                name: `repair ${steps}`,
                schedule: '0 0 1 1 *',
                route: { id: 'slow-disk.repair', payload: { steps } }
            });
            const { code, text } = await panel.client.post(`${cron}/tasks/${task.id}/authorize`, {});
            expect(code, text).to.equal(0);
            return (await panel.client.post(`${cron}/tasks/${task.id}/run`, {})).data.id as number;
        };
        const ended = (run: number) =>
            until(
                async () => {
                    const { data } = await panel.client.get(`${cron}/runs/${run}`);
                    return data.finishedAt !== null && data;
                },
                'the run to end',
                limitMs
            );
        const newest = async () =>
            (await panel.client.get('/api/tasks?kind=slow-disk.repair&limit=1')).data[0];
        const done = await ended(await begin(3));
        expect(done).to.include({ state: 'succeeded', status: 200 });
        expect(done.output).to.contain('step 2\n').and.to.contain('"steps": 3');
        expect(await newest()).to.include({ state: 'succeeded', progress: 1 });

        const failed = await ended(await begin(-1));
        expect(failed).to.include({ state: 'failed', reason: 'ROUTE_FAILED' });
        expect(failed.message).to.equal('40900: The disk is taken');

        const endless = await begin(1e9);
        await until(async () => (await newest()).state === 'running', 'the work to begin', limitMs);
        expect((await panel.client.delete(`${cron}/runs/${endless}`)).data).to.include({
            state: 'stopped',
            reason: 'STOPPED'
        });
        await until(async () => (await newest()).state === 'cancelled', 'the work to end', limitMs);
    });

    it('tell a channel of an alert, and keep a history', async () => {
        await panel.client.put('/api/settings', { 'panel.outboundAllow': ['127.0.0.0/8'] });
        const channel = await panel.client.post('/api/settings/channels', {
            name: 'hook',
            type: 'webhook',
            url: receiver.url,
            events: ['monitoring.*', 'cronjob.*']
        });
        expect(channel.status, channel.text).to.equal(201);
        expect(
            (await panel.client.put('/api/plugins/monitoring', { settings: { intervalSeconds: 2 } })).data
                .state
        ).to.equal('running');
        expect((await call('GET', `${monitoring}/metrics`, viewer)).status).to.equal(200);
        expect(
            refused(
                await call('POST', `${monitoring}/rules`, {
                    ...viewer,
                    body: { name: 'x', metric: 'memory.usedPercent', operator: '>', threshold: 0 }
                })
            )
        ).to.equal([40300, 'monitoring:write']);
        const rule = await call('POST', `${monitoring}/rules`, {
            ...operator,
            body: {
                name: 'any memory',
                metric: 'memory.usedPercent',
                operator: '>',
                threshold: 0,
                recoverThreshold: 0,
                forSeconds: 0,
                severity: 'warning',
                enabled: true
            }
        });
        expect(rule.status, rule.text).to.equal(201);
        await until(
            async () => (await call('GET', `${monitoring}/alerts`, viewer)).data.length > 0,
            'an alert'
        );
        await until(
            async () => receiver.received.some(({ body }) => body.includes('monitoring.')),
            'the channel to hear of it'
        );
        const from = new Date(Date.now() - 60_000).toISOString();
        const history = await call(
            'GET',
            `${monitoring}/metrics/history?metric=memory.usedPercent&from=${from}&to=${new Date().toISOString()}&step=10`,
            viewer
        );
        expect([history.status, history.text.includes('memory.usedPercent')], history.text).to.equal([
            200,
            true
        ]);
        const exposition = await call('GET', `${monitoring}/prometheus`, viewer);
        expect([
            exposition.status,
            exposition.headers['content-type']?.startsWith('text/plain; version=0.0.4'),
            /^# TYPE /m.test(exposition.text)
        ]).to.equal([200, true, true]);
        const processes = await call('GET', `${monitoring}/processes?limit=5`, viewer);
        expect(
            processes.data.every(({ command = null }: { command?: string | null }) => command === null)
        ).to.be.true();
    });

    it('count the visits that the real engine records, over a restart of the panel too', async () => {
        const { status, text, data } = await panel.client.post('/api/hosts', {
            domain: 'visited.test',
            type: 'redirect',
            redirect: { to: 'https://away.test', code: 302 }
        });
        expect(status, text).to.equal(201);
        const visit = () =>
            new Client(panel.httpPort).call('GET', '/', { headers: { host: 'visited.test' } });
        const counted = async (least: number): Promise<unknown> =>
            until(async () => {
                expect((await visit()).status).to.equal(302);
                const { data: rows } = await call('GET', `${monitoring}/traffic?hostId=${data.id}`, viewer);
                const all = (rows as readonly { requests: number; statuses: { '3xx': number } }[]).reduce(
                    (sum, { requests, statuses }) => {
                        expect(statuses['3xx']).to.equal(requests);
                        return sum + requests;
                    },
                    0
                );
                return all >= least;
            }, `${least} visits to be counted`);
        await visit();
        expect((await call('GET', `${monitoring}/traffic`, viewer)).data).to.equal([]);
        expect((await panel.client.put('/api/settings', { 'engine.accessLog': true })).code).to.equal(0);
        await counted(3);
        await panel.restart();
        await running();
        await counted(6);
        expect((await panel.client.put('/api/settings', { 'engine.accessLog': false })).code).to.equal(0);
    });

    it("read and follow the engine's log as the caller", async () => {
        const { data: sources } = await call('GET', `${monitoring}/logs/sources`, operator);
        expect(sources[0]).to.equal({ id: 'engine', kind: 'engine', title: 'Proxy engine', bytes: null });
        const lines = async (query: string): Promise<readonly string[]> =>
            (await call('GET', `${monitoring}/logs/lines?source=engine${query}`, operator)).data.map(
                ({ at, level, text }: { at: string; level: string; text: string }) =>
                    `${Number.isFinite(Date.parse(at))} ${level} ${text}`
            );
        expect((await lines('&limit=1000')).length).to.be.above(2);
        for (const line of await lines('&limit=3&level=info')) {
            expect(line).to.match(/^true (info|warning|error) ./);
        }
        const leaving = new AbortController();
        const { body } = await fetch(
            `http://127.0.0.1:${panel.port}${monitoring}/logs/follow?source=engine&q=unchanged`,
            { headers: { authorization: `Bearer ${operator.token}` }, signal: leaving.signal }
        );
        // The stream shows what comes after it began: the engine says so at each load without a change.
        let followed = '';
        const reading = (async () => {
            for await (const part of body ?? []) {
                followed += Buffer.from(part).toString();
            }
        })().catch(() => undefined);
        await until(
            async () => {
                await panel.client.post('/api/proxyengine/reload', {});
                return followed.includes('config is unchanged');
            },
            'a line of the log',
            limitMs
        );
        leaving.abort();
        await reading;
        expect(refused(await call('GET', `${monitoring}/logs/lines?source=engine`, viewer))).to.equal([
            40300,
            'monitoring:logs'
        ]);
    });

    it('list what is unhealthy in the panel, from its real answers', async () => {
        const found = async (options: CallOptions = {}) =>
            (await call('GET', `${monitoring}/unhealthy`, options)).data as {
                readonly unseen: readonly string[];
                readonly findings: readonly Readonly<Record<string, string | null>>[];
            };
        await panel.client.get('/api/plugins/slow-disk'); // asks for its health now, not within the minute
        const { unseen, findings } = await found();
        expect(unseen).to.equal([]);
        expect(findings.find(({ subject }) => subject === 'slow-disk')).to.equal({
            kind: 'plugin',
            severity: 'warning',
            subject: 'slow-disk',
            message: 'disk: Writes take 3 s',
            since: null,
            remedy: 'Replace the disk'
        });
        const broken = findings.find(({ subject }) => subject === 'broken');
        expect(broken).to.include({ kind: 'plugin', severity: 'critical' });
        expect((await panel.client.post('/api/proxyengine/stop', {})).code).to.equal(0);
        expect((await found()).findings.find(({ kind }) => kind === 'engine')).to.include({
            severity: 'info',
            message: 'The proxy engine was stopped'
        });
        expect((await panel.client.post('/api/proxyengine/start', {})).code).to.equal(0);
        expect((await found()).findings.some(({ kind }) => kind === 'engine')).to.be.false();
    });

    it('are all taken away, and leave nothing', async () => {
        for (const name of names) {
            const { data } = await panel.client.put(`/api/plugins/${name}`, { enabled: false });
            expect([name, data.state, data.released.leaked, data.released.failures]).to.equal([
                name,
                'disabled',
                [],
                []
            ]);
        }
    });
});
