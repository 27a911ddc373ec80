import { realpathSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../../../support/panel/panel.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const fixtures = realpathSync(join(import.meta.dirname, '../../../fixtures/plugins'));
const timing = { importMs: 700, setupMs: 700, startMs: 700, stopMs: 500, healthMs: 300 };
/** From the first byte to a login and a list, in the presence of everything that is broken; on a busy machine it takes longer. */
const bootTargetMs = 20_000;

/** Where each package of test/fixtures/plugins ends up: its state, and the stage and code of its failure. */
const expected: Readonly<Record<string, readonly unknown[]>> = {
    'no-manifest': ['failed', 'discovered', 'MANIFEST_MISSING'],
    'bad-package': ['failed', 'discovered', 'PACKAGE_INVALID'],
    'bad-manifest': ['failed', 'discovered', 'MANIFEST_INVALID'],
    'unknown-key': ['failed', 'discovered', 'MANIFEST_UNKNOWN_KEY'],
    'reserved-name': ['failed', 'discovered', 'NAME_RESERVED'],
    'no-sdk-range': ['failed', 'discovered', 'SDK_RANGE_MISSING'],
    'wrong-sdk': ['failed', 'resolved', 'SDK_RANGE'],
    'wrong-node': ['failed', 'resolved', 'NODE_RANGE'],
    'missing-requirement': ['failed', 'resolved', 'REQUIREMENT_MISSING'],
    'wrong-requirement': ['failed', 'resolved', 'REQUIREMENT_RANGE'],
    'cycle-one': ['failed', 'resolved', 'REQUIREMENT_FAILED'],
    'cycle-two': ['failed', 'resolved', 'CYCLE'],
    'failed-requirement': ['failed', 'resolved', 'REQUIREMENT_FAILED'],
    'duplicate-name-one': ['running'],
    'duplicate-name-two': ['failed', 'resolved', 'NAME_TAKEN'],
    'no-entry': ['failed', 'loaded', 'ENTRY_MISSING'],
    'entry-outside': ['failed', 'loaded', 'ENTRY_MISSING'],
    'throws-at-import': ['failed', 'loaded', 'IMPORT_FAILED'],
    'rejects-at-import': ['failed', 'loaded', 'IMPORT_FAILED'],
    'syntax-error': ['failed', 'loaded', 'IMPORT_FAILED'],
    'import-missing': ['failed', 'loaded', 'IMPORT_FAILED'],
    'no-definition': ['failed', 'loaded', 'DEFINITION_MISSING'],
    'no-default': ['failed', 'loaded', 'DEFINITION_MISSING'],
    'side-effect-timer': ['failed', 'loaded', 'SIDE_EFFECT'],
    'side-effect-listener': ['failed', 'loaded', 'SIDE_EFFECT'],
    'side-effect-server': ['failed', 'loaded', 'SIDE_EFFECT'],
    'side-effect-child': ['failed', 'loaded', 'SIDE_EFFECT'],
    'never-ends': ['failed', 'loaded', 'IMPORT_TIMEOUT'],
    'bundled-sdk': ['failed', 'loaded', 'SDK_BUNDLED'],
    'sdk-dependency': ['failed', 'loaded', 'SDK_BUNDLED'],
    'settings-required': ['failed', 'loaded', 'SETTINGS_REQUIRED'],
    'migration-fails': ['failed', 'mounted', 'MIGRATION_FAILED'],
    'setup-throws': ['failed', 'mounted', 'SETUP_FAILED'],
    'setup-half': ['failed', 'mounted', 'SETUP_FAILED'],
    'setup-hangs': ['failed', 'mounted', 'SETUP_TIMEOUT'],
    'no-access': ['failed', 'mounted', 'SETUP_FAILED'],
    'root-route': ['failed', 'mounted', 'SETUP_FAILED'],
    'foreign-access': ['failed', 'mounted', 'SETUP_FAILED'],
    'duplicate-route': ['failed', 'mounted', 'SETUP_FAILED'],
    'start-throws': ['failed', 'running', 'START_FAILED'],
    'start-hangs': ['failed', 'running', 'START_TIMEOUT'],
    'late-registration': ['failed', 'running', 'START_FAILED'],
    'handler-hangs': ['running'],
    'handler-throws': ['running'],
    'hook-hangs': ['running'],
    'hook-throws': ['running'],
    'stop-hangs': ['running'],
    'stop-throws': ['running'],
    sound: ['running']
};

interface Row {
    readonly name: string;
    readonly package: string | null;
    readonly state: string;
    readonly failure: { readonly stage: string; readonly code: string; readonly message: string } | null;
}

describe('createPlugins', { timeout: 120_000 }, () => {
    let panel: TestPanel;
    let bootMs: number;

    before({ timeout: 120_000 }, async () => {
        const began = performance.now();
        panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: fixtures }, pluginTiming: timing });
        bootMs = performance.now() - began;
    });
    after({ timeout: 60_000 }, () => panel.close());

    const rows = async (): Promise<readonly Row[]> =>
        (await panel.client.get('/api/plugins')).data as readonly Row[];
    const own = async (): Promise<readonly Row[]> =>
        (await rows()).filter((row) => row.package === null || row.package.startsWith('@portico-fixture/'));
    const put = (name: string, body: object) => panel.client.put(`/api/plugins/${name}`, body);

    it('has a login and a list in time, whatever hangs meanwhile', async () => {
        expect(bootMs).to.be.below(bootTargetMs);
        expect((await panel.client.get('/readyz')).status).to.equal(200);
        expect((await panel.client.get('/api/plugins')).status).to.equal(200);
    });

    it('leaves each broken package where it broke, with stage, code and a sentence', async () => {
        await panel.panel.settled();
        const found = Object.fromEntries(
            (await own()).map((row) => [(row.package ?? row.name).replace('@portico-fixture/', ''), row])
        );
        const ended = Object.fromEntries(
            Object.entries(found).map(([name, { state, failure }]) => [
                name,
                failure === null ? [state] : [state, failure.stage, failure.code]
            ])
        );
        expect(ended).to.equal(expected as typeof ended);
        expect(
            Object.values(found).filter(({ failure }) => failure !== null && failure.message.length < 10)
        ).to.equal([]);
        expect(found['start-throws']?.failure?.message).to.equal('The device does not answer');
    });

    it('serves what is sound, and answers for the others by what is wrong with them', async () => {
        expect((await panel.client.get('/api/plugins/sound/hello')).data).to.equal({ text: 'Hello' });
        const { status, code, data } = await panel.client.get('/api/plugins/setup-half/hello');
        expect([status, code, data]).to.equal([
            503,
            50303,
            { reason: 'PLUGIN_FAILED', plugin: 'setup-half', stage: 'mounted', cause: 'SETUP_FAILED' }
        ]);
        expect((await panel.client.get('/api/plugins/nobody/hello')).code).to.equal(40410);
    });

    it('goes on when handlers and taps throw or hang, and no plugin fails by that', async () => {
        expect((await panel.client.get('/api/plugins/handler-throws/boom')).code).to.equal(50000);
        expect((await panel.client.get('/api/plugins/handler-hangs/hang')).code).to.equal(50300);
        const { code, data } = await panel.client.post('/api/hosts', {
            domain: 'guarded.example',
            upstream: '127.0.0.1:1'
        });
        expect([code, data.reason]).to.equal([40920, 'REFUSED_BY_PLUGIN']); // a guard that fails refuses
        expect(
            (await rows()).filter(({ name }) => /^(handler|hook)-/.test(name)).map(({ state }) => state)
        ).to.equal(['running', 'running', 'running', 'running']);
        for (const name of ['hook-throws', 'hook-hangs']) {
            expect((await put(name, { enabled: false })).data).to.include({
                state: 'disabled',
                enabled: false
            });
        }
        expect(
            (await panel.client.post('/api/hosts', { domain: 'guarded.example', upstream: '127.0.0.1:1' }))
                .status
        ).to.equal(201);
    });

    it('says what a plugin that does not stop leaves behind, and takes it away all the same', async () => {
        const disabling = put('stop-hangs', { enabled: false });
        const refused = await until(async () => {
            const answer = await panel.client.get('/api/plugins/stop-hangs/x');
            return answer.code === 50300 ? answer : null;
        }, 'it stops');
        expect([refused.message, refused.headers['retry-after']]).to.equal([
            'The plugin stop-hangs is stopping',
            undefined
        ]);
        const hangs = await disabling;
        expect(hangs.data.state).to.equal('disabled');
        expect(hangs.data.released.failures).to.have.length(1);
        expect((await put('stop-throws', { enabled: false })).data.released.failures).to.equal([
            'The device does not let go'
        ]);
        expect((await put('stop-throws', { enabled: true })).data.state).to.equal('running');
    });

    it('puts a plugin into quarantine at the third failure of an hour, until an admin enables it again', async () => {
        const states: unknown[] = [];
        for (let attempt = 0; attempt < 4; attempt += 1) {
            const { data } = await put('setup-throws', { enabled: true });
            states.push([data.state, data.failure.code]);
        }
        // One fall at boot, the second and third by hand; the fourth attempt frees it, and it falls for the first time.
        expect(states).to.equal([
            ['failed', 'SETUP_FAILED'],
            ['quarantined', 'SETUP_FAILED'],
            ['failed', 'SETUP_FAILED'],
            ['failed', 'SETUP_FAILED']
        ]);
        expect((await put('setup-throws', { enabled: true })).data).to.include({ state: 'quarantined' });
        expect((await panel.client.get('/api/plugins/setup-throws')).data.quarantinedAt).to.be.a.string();
        expect((await panel.client.get('/api/plugins/setup-throws/x')).data).to.include({
            reason: 'PLUGIN_FAILED',
            cause: 'SETUP_FAILED'
        });
    });

    it('tries again what lacked a setting when the setting is saved, and never counts that', async () => {
        for (let attempt = 0; attempt < 4; attempt += 1) {
            expect((await put('settings-required', { enabled: true })).data).to.include({ state: 'failed' });
        }
        const wrong = await put('settings-required', { settings: { token: 7 } });
        expect([wrong.code, wrong.data.errors[0].path]).to.equal([40001, 'token']);
        const { data } = await put('settings-required', { settings: { token: 'four' } });
        expect([data.state, data.failure, data.settings]).to.equal(['running', null, { token: 'four' }]);
        expect((await panel.client.get('/api/plugins/settings-required/length')).data).to.equal({
            length: 4
        });
        await put('settings-required', { settings: { token: 'longer' } });
        expect((await panel.client.get('/api/plugins/settings-required/length')).data).to.equal({
            length: 6
        });
    });

    it('tells that a plugin failed', async () => {
        await until(
            () =>
                panel.lines.some(
                    (line) => line.includes('"plugin":"setup-throws"') && line.includes('"quarantined":true')
                ),
            'the log'
        );
        const { data } = await panel.client.get('/api/audit?resource=plugins&action=disable');
        expect(data.map(({ resourceId }: { resourceId: string }) => resourceId)).to.include([
            'hook-throws',
            'hook-hangs',
            'stop-hangs'
        ]);
    });

    it('keeps every route in the document of the API, those of plugins included', async () => {
        const { text } = await panel.client.get('/api/openapi.json');
        const { paths } = JSON.parse(text) as { paths: Record<string, unknown> };
        expect(Object.keys(paths)).to.include([
            '/api/plugins',
            '/api/plugins/{name}',
            '/api/plugins/sound/hello'
        ]);
    });
});
