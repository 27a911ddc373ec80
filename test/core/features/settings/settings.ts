import { readFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Change, Draft, Outcome } from '../../../../core/src/engine/change.ts';
import type { EngineSettings } from '../../../../core/src/engine/site.ts';
import { definitionOf, settingKeys } from '../../../../core/src/features/settings/definitions.ts';
import { settingsEntities, settingsMigrations } from '../../../../core/src/features/settings/entities.ts';
import { type EngineQueue, Settings } from '../../../../core/src/features/settings/settings.ts';
import { type Config, readConfig } from '../../../../core/src/platform/config.ts';
import { fail } from '../../../../core/src/platform/errors.ts';
import { callOf, handClock, openStore, person, type Store } from '../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const eab = { keyId: 'kid-1', macKey: 'canary-mac-key' };

/** An engine that takes everything, until it is told to refuse. */
class Queue implements EngineQueue {
    readonly plans: EngineSettings[] = [];
    refuse = false;
    readonly #store: Store;
    readonly #settings: () => EngineSettings;

    constructor(store: Store, settings: () => EngineSettings) {
        this.#store = store;
        this.#settings = settings;
    }

    async change<T>(change: Change<T>): Promise<{ value: T; outcome: Outcome }> {
        const plan = change.plan({ settings: this.#settings() } as Draft);
        if (this.refuse) {
            throw fail.ENGINE_REJECTED({ engine: 'listen tcp :81: bind: address already in use' });
        }
        this.plans.push(plan.settings as EngineSettings);
        const outcome = { revision: 1, applied: true, reloaded: true };
        return { value: await this.#store.db.write((tx) => change.commit(tx, outcome)), outcome };
    }
}

describe('Settings', () => {
    let store: Store;
    let settings: Settings;
    const admin = person('admin');

    const load = (config: Partial<Config> = {}): Promise<Settings> =>
        Settings.load({
            db: store.db,
            keyring: store.keyring,
            config: { ...readConfig({}, '/'), ...config },
            clock: handClock(),
            log: store.log,
            interfaces: () => ({
                lo: [
                    { address: '127.0.0.1', family: 'IPv4', internal: true, netmask: '', mac: '', cidr: null }
                ],
                eth0: [
                    {
                        address: '192.168.1.5',
                        family: 'IPv4',
                        internal: false,
                        netmask: '',
                        mac: '',
                        cidr: null
                    },
                    {
                        address: '198.41.0.4',
                        family: 'IPv4',
                        internal: false,
                        netmask: '',
                        mac: '',
                        cidr: null
                    },
                    {
                        address: 'fe80::1',
                        family: 'IPv6',
                        internal: false,
                        netmask: '',
                        mac: '',
                        cidr: null,
                        scopeid: 2
                    },
                    {
                        address: 'fd00::1',
                        family: 'IPv6',
                        internal: false,
                        netmask: '',
                        mac: '',
                        cidr: null,
                        scopeid: 0
                    }
                ]
            })
        });
    const refused = async (
        changes: Record<string, unknown>
    ): Promise<{ path: string; message: string }[]> => {
        const before = settings.list();
        const error = await expect(settings.update(changes, callOf(admin))).to.reject<{
            data: { errors: { path: string; message: string }[] };
        }>();
        expect(error).to.include({ code: 40001, reason: 'VALIDATION_FAILED' });
        expect(settings.list()).to.equal(before);
        return error.data.errors;
    };

    beforeEach(async () => {
        store = await openStore({ entities: settingsEntities, migrations: settingsMigrations });
        settings = await load();
    });

    afterEach(() => store.remove());

    it('begins with the defaults, each of which its own schema and check take', () => {
        for (const view of settings.list().data) {
            expect(view).to.include({ source: 'default', version: 0 });
            expect(view.value).to.equal(view.default);
        }
        expect(settings.list().data.map(({ key }) => key)).to.equal([...settingKeys]);
        expect(settings.get('engine.httpPort')).to.equal(80);
        for (const key of settingKeys) {
            const { default: value, check } = definitionOf(key);
            expect(check?.(value) ?? null, key).to.be.null();
        }
    });

    it('stores a change with its call, and has it after a restart', async () => {
        const call = callOf(admin);
        const { data } = await settings.update(
            { 'panel.accessTokenMinutes': 5, 'panel.trustedProxies': ['10.0.0.0/8'] },
            call
        );
        expect(data).to.equal(settings.list().data);
        expect(settings.read('panel.accessTokenMinutes')).to.include({
            value: 5,
            default: 30,
            source: 'stored',
            version: 1
        });
        expect(call.done).to.have.length(1);
        expect(call.done[0]).to.include({
            action: 'update',
            resource: 'settings',
            resourceId: null,
            before: { 'panel.accessTokenMinutes': 30, 'panel.trustedProxies': [] },
            after: { 'panel.accessTokenMinutes': 5, 'panel.trustedProxies': ['10.0.0.0/8'] }
        });
        const before = settings.list();
        await store.reopen();
        settings = await load();
        expect(settings.list()).to.equal(before);
    });

    it('puts a setting back to its default with null', async () => {
        await settings.update({ 'panel.requireTotp': true }, callOf(admin));
        await settings.update({ 'panel.requireTotp': null }, callOf(admin));
        expect(settings.read('panel.requireTotp')).to.include({
            value: false,
            source: 'default',
            version: 2
        });
        await store.reopen();
        settings = await load();
        expect(settings.read('panel.requireTotp')).to.include({
            value: false,
            source: 'default',
            version: 2
        });
    });

    it('refuses the whole write for each thing that is wrong, and names all of them', async () => {
        const errors = await refused({
            'panel.requireTotp': true,
            'engine.httpPort': '80',
            'panel.unknown': 1,
            'panel.trustedProxies': ['10.0.0.0/8', 'nonsense'],
            'panel.accessTokenMinutes': 0
        });
        expect(errors.map(({ path }) => path)).to.equal([
            'engine.httpPort',
            'panel.unknown',
            'panel.trustedProxies.1',
            'panel.accessTokenMinutes'
        ]);
    });

    it('refuses what is of the right type and wrong all the same', async () => {
        const wrong: [string, unknown][] = [
            ['server.ipv4', '1.2.3'],
            ['server.ipv4', '::1'],
            ['server.ipv6', '1.2.3.4'],
            ['server.ipv6', 'fe80::1%eth0'],
            ['engine.httpPort', 0],
            ['engine.httpPort', 65536],
            ['engine.httpPort', 80.5],
            ['engine.acmeEmail', 'nobody'],
            ['engine.acmeDirectory', 'ftp://ca.example/'],
            ['engine.acmeDirectory', 'https://{env.SECRET}/'],
            ['engine.acmeEab', { keyId: 'k' }],
            ['engine.acmeEab', { keyId: '{env.X}', macKey: 'abc' }],
            ['engine.acmeEab', { keyId: 'k', macKey: '{file./etc/shadow}' }],
            ['panel.url', 'javascript:alert(1)'],
            ['panel.trustedProxies', ['0.0.0.0/0']],
            ['panel.trustedProxies', ['::/0']],
            ['panel.trustedProxies', '10.0.0.1'],
            ['panel.corsOrigins', ['*']],
            ['panel.corsOrigins', ['https://a.example/path']],
            ['panel.corsOrigins', ['https://A.example']],
            ['panel.corsOrigins', ['https://a.example/']],
            ['panel.requireTotp', 'true'],
            ['dns.nameservers', ['dns.example']],
            ['audit.retentionDays', 0],
            ['panel.outboundAllow', ['10.0.0.0/33']]
        ];
        for (const [key, value] of wrong) {
            const errors = await refused({ [key]: value });
            expect(errors[0]?.path.startsWith(key), `${key} ${JSON.stringify(value)}`).to.be.true();
        }
        await refused({ 'engine.httpPort': 443 });
        await refused({ ['__proto__x']: 1, constructor: 1, toString: 1 });
    });

    it('reads a secret as set, keeps it when that is sent back, and seals it', async () => {
        const call = callOf(admin);
        await settings.update({ 'engine.acmeEab': eab }, call);
        expect(settings.read('engine.acmeEab')).to.include({
            value: { set: true },
            source: 'stored',
            secret: true,
            version: 1
        });
        await settings.update({ 'engine.acmeEab': { set: true } }, callOf(admin));
        expect(settings.get('engine.acmeEab')).to.equal(eab);
        expect(settings.read('engine.acmeEab').version).to.equal(1);
        expect(JSON.stringify(settings.list())).not.to.contain('canary');
        await store.reopen();
        expect(readFileSync(store.file).toString('latin1')).not.to.contain('canary');
        settings = await load();
        expect(settings.engine().acmeEab).to.equal(eab);
        await settings.update({ 'engine.acmeEab': null }, callOf(admin));
        expect(settings.read('engine.acmeEab').value).to.be.null();
    });

    it('lets the environment decide, and refuses to write over it', async () => {
        await settings.update({ 'engine.httpPort': 8080 }, callOf(admin));
        const tag = settings.list().headers['etag'];
        settings = await load({ engineHttpPort: 8081 });
        expect(settings.read('engine.httpPort')).to.include({ value: 8081, source: 'environment' });
        expect(settings.engine().httpPort).to.equal(8081);
        expect(settings.fixed?.()).to.equal({ httpPort: 8081 });
        expect(settings.list().headers['etag']).not.to.equal(tag);
        expect(await refused({ 'engine.httpPort': 8082 })).to.equal([
            { path: 'engine.httpPort', message: 'engine.httpPort is set by PORTICO_ENGINE_HTTP_PORT' }
        ]);
        await refused({ 'engine.httpPort': null });
        await settings.update({ 'engine.httpPort': 8081, 'panel.requireTotp': true }, callOf(admin));
        expect(settings.get('panel.requireTotp')).to.be.true();
        settings = await load();
        expect(settings.get('engine.httpPort')).to.equal(8080);
    });

    it('holds If-Match against the collection and against one setting', async () => {
        const tag = (settings.list().headers['etag'] ?? '').slice(1, -1);
        await settings.updateOne('panel.requireTotp', true, callOf(admin, { ifMatch: '0' }));
        const stale = await expect(
            settings.update({ 'panel.requireTotp': false }, callOf(admin, { ifMatch: tag }))
        ).to.reject();
        expect(stale).to.include({ code: 41200, reason: 'VERSION_STALE' });
        await expect(
            settings.updateOne('panel.requireTotp', false, callOf(admin, { ifMatch: '0' }))
        ).to.reject('The object has changed: its version is 1');
        await expect(settings.updateOne('panel.requireTotp', false, callOf(admin), 0)).to.reject(
            'The object has changed: its version is 1'
        );
        expect(settings.get('panel.requireTotp')).to.be.true();
        expect(
            (await settings.updateOne('panel.requireTotp', false, callOf(admin, { ifMatch: '1' }), 1)).data
        ).to.equal(settings.read('panel.requireTotp'));
    });

    it('lets one of two writers with the same version through', async () => {
        const outcomes = await Promise.allSettled(
            [1, 2, 3, 4].map((minutes) =>
                settings.updateOne('panel.accessTokenMinutes', minutes, callOf(admin, { ifMatch: '0' }))
            )
        );
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
        expect(settings.read('panel.accessTokenMinutes').version).to.equal(1);
    });

    it('does not know other names', async () => {
        for (const key of ['nope', '__proto__', 'constructor', '']) {
            expect(() => settings.read(key)).to.throw('There is nothing of that name here');
            await expect(settings.updateOne(key, 1, callOf(admin))).to.reject(
                'There is nothing of that name here'
            );
        }
    });

    it('takes what the engine is configured by through its queue, with everything else of the same write', async () => {
        const queue = new Queue(store, () => settings.engine());
        settings.attach(queue);
        const answer = await settings.update(
            { 'engine.httpPort': 8080, 'engine.autoReload': false },
            callOf(admin)
        );
        expect(answer.headers['x-engine-reload']).to.equal('true');
        expect(queue.plans).to.equal([
            {
                httpPort: 8080,
                httpsPort: 443,
                acmeEmail: null,
                acmeDirectory: null,
                acmeEab: null,
                accessLog: false
            }
        ]);
        expect(settings.autoReload()).to.be.false();
        await settings.update({ 'panel.requireTotp': true }, callOf(admin));
        expect(queue.plans).to.have.length(1);
    });

    it('stores nothing when the engine refuses', async () => {
        const queue = new Queue(store, () => settings.engine());
        queue.refuse = true;
        settings.attach(queue);
        const before = settings.list();
        const call = callOf(admin);
        const error = await expect(
            settings.update({ 'engine.httpPort': 81, 'panel.requireTotp': true }, call)
        ).to.reject();
        expect(error).to.include({ code: 42200, reason: 'ENGINE_REJECTED' });
        expect(settings.list()).to.equal(before);
        expect(call.done).to.equal([]);
        await store.reopen();
        settings = await load();
        expect(settings.list()).to.equal(before);
    });

    it('forgets a change whose transaction fails', async () => {
        const before = settings.list();
        await expect(
            settings.update(
                { 'panel.requireTotp': true },
                callOf(admin, { complete: () => Promise.reject(new Error('no entry')) })
            )
        ).to.reject('no entry');
        expect(settings.list()).to.equal(before);
        await settings.update({ 'panel.stepUpMinutes': 5 }, callOf(admin));
        expect(settings.get('panel.requireTotp')).to.be.false();
    });

    it('writes engine settings inside the transaction of a restore, but not what the environment decides', async () => {
        settings = await load({ engineHttpsPort: 8443 });
        const told: (readonly string[])[] = [];
        const heard = new Promise<void>((resolve) =>
            settings.onChange((keys) => {
                told.push(keys);
                resolve();
            })
        );
        await store.db.write(async (tx) =>
            settings.write?.(tx, {
                httpPort: 8080,
                httpsPort: 9443,
                acmeEmail: 'me@example.org',
                acmeDirectory: null,
                acmeEab: eab,
                accessLog: false
            })
        );
        await heard;
        expect(told).to.equal([['engine.httpPort', 'engine.acmeEmail', 'engine.acmeEab']]);
        expect(settings.engine()).to.equal({
            httpPort: 8080,
            httpsPort: 8443,
            acmeEmail: 'me@example.org',
            acmeDirectory: null,
            acmeEab: eab,
            accessLog: false
        });
    });

    it('tells listeners after the commit, where they may write and may fail', async () => {
        const heard = new Promise<number>((resolve, reject) => {
            settings.onChange(() => {
                throw new Error('a bad listener');
            });
            settings.onChange(
                () =>
                    void store.db.write(async () => settings.get('panel.stepUpMinutes')).then(resolve, reject)
            );
        });
        await settings.update({ 'panel.stepUpMinutes': 7 }, callOf(admin));
        expect(await heard).to.equal(7);
        expect(store.lines.some((line) => line.includes('A listener of settings failed'))).to.be.true();
    });

    it('believes forwarding headers as soon as the proxy is trusted', async () => {
        expect(settings.clientAddress('10.0.0.1', '198.51.100.9')).to.equal('10.0.0.1');
        await settings.update({ 'panel.trustedProxies': ['10.0.0.0/8'] }, callOf(admin));
        expect(settings.clientAddress('10.0.0.1', '198.51.100.9')).to.equal('198.51.100.9');
    });

    it('stores the public address of this machine and lists the private ones', async () => {
        const call = callOf(admin);
        expect(await settings.detect(call)).to.equal({
            ipv4: '198.41.0.4',
            ipv6: null,
            candidates: [
                { address: '198.41.0.4', family: 'ipv4', interface: 'eth0', public: true },
                { address: '192.168.1.5', family: 'ipv4', interface: 'eth0', public: false },
                { address: 'fd00::1', family: 'ipv6', interface: 'eth0', public: false }
            ]
        });
        expect(settings.read('server.ipv4')).to.include({ value: '198.41.0.4', source: 'stored' });
        expect(call.done).to.have.length(1);
    });
});
