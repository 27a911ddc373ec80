/** Servers that the panel runs in containers: a real engine, the real plugin `container`, and images of the programs of this machine. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Call } from '@portico/sdk';

import type { ContainerContract } from '../../../../extensions/container/src/contract.ts';
import { ManagedEntity, type ManagedRow } from '../../../../extensions/database/src/entities.ts';
import { isNewer, isRelease } from '../../../../extensions/database/src/managed/releases.ts';
import { freePort } from '../../../support/ports.ts';
import { itUnless } from '../../../support/skip.ts';
import { noEngine } from '../../container/engines.ts';
import { ContainerRig } from '../../container/support/rig.ts';
import { Relay } from '../../deploy/support/relay.ts';
import { type Answer, Harness, until } from '../harness.ts';
import { noMariadb, noPostgresql } from '../instances.ts';
import { badRelease, importMariadb, importPostgresql } from '../server-images.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const mebibyte = 1024 * 1024;
const lacks = noEngine ?? noMariadb ?? noPostgresql;
const waiting = [
    ...['engine', 'plan', 'apply', 'stack', 'control', 'remove', 'pull'],
    ...['snapshot', 'restore', 'dropSnapshot']
];

type Method = (input: never, options: object) => Promise<unknown>;

/** The contract of the real plugin, as this plugin has it. */
function partnerOf(rig: ContainerRig) {
    const methods = rig.host.contract<ContainerContract>({ plugin: 'database' });
    // All methods of the list above take one plain input.
    const byName = methods as unknown as Record<string, Method>;
    return {
        ...Object.fromEntries(
            waiting.map((name) => [
                name,
                async (input: never, { signal }: Call) => byName[name]?.(input, { signal })
            ])
        ),
        logs: (input: never, { signal }: Call) => methods.logs(input, { signal })
    };
}

describe('releases of images', () => {
    it('are numbers, of which the greater is newer', () => {
        for (const text of ['11.4', '16', '10.11.6']) {
            expect([text, isRelease(text)]).to.equal([text, true]);
        }
        for (const text of ['latest', '../x', '16:1', '', '1.2.3.4', '16-alpine', '11.']) {
            expect([text, isRelease(text)]).to.equal([text, false]);
        }
        for (const [one, other] of [
            ['11.4', '10.11'],
            ['16', '9.6'],
            ['10.11', '10.6'],
            ['16.3', '16']
        ] as const) {
            expect([one, isNewer(one, other), isNewer(other, one), isNewer(one, one)]).to.equal([
                one,
                true,
                false,
                false
            ]);
        }
    });
});

describe('servers that the panel runs in containers', { timeout: 240_000 }, () => {
    let container: ContainerRig;
    let panel: Harness;
    let folder: string;
    const relays: Relay[] = [];
    before({ timeout: 240_000 }, async () => {
        if (lacks === undefined) {
            folder = mkdtempSync(join(tmpdir(), 'pdc-'));
            container = await ContainerRig.start();
            await importMariadb(container.engine, ['10.11', '11.4', badRelease]);
            await importPostgresql(container.engine, ['15']);
            panel = await Harness.start({}, { container: partnerOf(container) });
        }
    });
    after({ timeout: 120_000 }, async () => {
        await panel?.close();
        await Promise.all(relays.map((relay) => relay.close()));
        await container?.close();
        if (folder !== undefined) {
            rmSync(folder, { recursive: true, force: true });
        }
    });

    /** The ports of the containers are in the namespace of their engine. */
    async function reach(port: number): Promise<void> {
        relays.push(await Relay.start(container.engine.pid, folder, [port], []));
    }

    async function make(body: object): Promise<string> {
        const port = await freePort();
        const begun = await panel.ask('POST', '/servers', {
            ...{ mode: 'managed', runtime: 'container', preset: 'tiny', memoryBytes: 256 * mebibyte, port },
            ...body
        });
        expect(begun.status, begun.text).to.equal(202);
        await reach(port);
        const { state, error, result } = await panel.task(begun);
        expect([state, error]).to.equal(['succeeded', null]);
        return `/servers/${result.serverId}`;
    }

    async function done(method: string, path: string, body?: object): Promise<Answer['data']> {
        const { state, error, result } = await panel.task(await panel.ask(method, path, body));
        expect([path, state, error]).to.equal([path, 'succeeded', null]);
        return result;
    }

    const view = async (server: string) => (await panel.ask('GET', server)).data;
    const read = async (server: string) =>
        (await panel.ask('POST', `${server}/query`, { database: 'shop', sql: 'select n from kept' })).data
            ?.rows;
    const write = async (server: string, sql: string) => {
        const { status, text } = await panel.ask('POST', `${server}/query`, {
            ...{ database: 'shop', sql, write: true }
        });
        expect(status, text).to.equal(200);
    };

    /** Has the plugin find what a panel leaves that is killed in the middle of an upgrade: the server stopped, and this in its row. */
    async function cutAt(server: string, change: Partial<ManagedRow>): Promise<void> {
        await done('POST', `${server}/stop`, {});
        const id = Number(server.split('/').at(-1));
        await panel.host.db.write(async (em) => void (await em.nativeUpdate(ManagedEntity, { id }, change)));
        await panel.host.restart();
        await until('the end of the upgrade', async () => (await view(server)).state === 'online');
    }

    for (const { kind, release, option, value } of [
        { kind: 'mysql', release: '10.11', option: 'innodb_log_file_size', value: 24 * mebibyte },
        { kind: 'postgresql', release: '15', option: 'max_connections', value: 44 }
    ]) {
        itUnless(lacks, it)(`are made, used, changed, stopped, started, and removed: ${kind}`, async () => {
            const server = await make({ name: `boxed ${kind}`, kind, release });
            const stack = `database-${server.split('/').at(-1)}`;
            expect(await view(server)).to.include({
                ...{ state: 'online', message: null, runtime: 'container', release, remote: false }
            });
            expect((await view(server)).serverVersion as string).to.startWith(release);
            const [listed] = (await container.get(`/stacks/${stack}`)).data.services;
            expect(listed.ports[0].hostIp).to.equal('127.0.0.1');

            // What other servers do: databases, accounts of programs of this machine, and rows.
            expect((await panel.ask('POST', `${server}/databases`, { name: 'shop' })).status).to.equal(201);
            const user = await panel.ask('POST', `${server}/users`, {
                username: 'web',
                grants: [{ database: 'shop', level: 'owner' }]
            });
            expect(user.status, user.text).to.equal(201);
            const { listen } = await view(server);
            const registered = await panel.ask('POST', '/servers', {
                ...{ name: `as web ${kind}`, kind, mode: 'registered', host: '127.0.0.1' },
                ...{ port: listen.port, username: 'web', password: user.data.password }
            });
            expect(registered.status, registered.text).to.equal(201);
            await panel.ask('DELETE', `/servers/${registered.data.id}`);
            await write(server, 'create table kept (n int primary key)');
            await write(server, 'insert into kept values (7)');
            expect(await read(server)).to.equal([[7]]);
            // The password is in no argument and no variable of the container.
            const inspected = (await container.get(`/containers/${stack}-server-1/inspect`)).text;
            const rotated = await panel.ask('POST', `${server}/rotate`);
            expect(rotated.status, rotated.text).to.equal(200);
            expect(inspected).to.match(/PASSWORD_FILE=\/run\/secrets\/password/);
            expect(inspected).to.not.match(/PASSWORD=|identified by/i);

            // Options count from the next start on, and the data stay.
            const changed = await panel.ask('PUT', `${server}/config`, { values: { [option]: value } });
            expect(changed.status, changed.text).to.equal(200);
            const of = async () =>
                (await panel.ask('GET', `${server}/config`)).data.find(
                    ({ name }: { name: string }) => name === option
                );
            expect((await of()).pending).to.be.true();
            await done('POST', `${server}/restart`, {});
            expect(await of()).to.include({ value, pending: false, source: 'set' });
            expect(await read(server)).to.equal([[7]]);

            await done('POST', `${server}/stop`, {});
            expect((await view(server)).state).to.equal('stopped');
            // It is no server that fails, and the plugin's start leaves it so.
            await panel.host.restart();
            expect((await view(server)).state).to.equal('stopped');
            const health = (await panel.host.health()).find(({ name }) => name === 'servers');
            expect(health?.state).to.equal('ok');
            await done('POST', `${server}/start`, {});
            expect(await read(server)).to.equal([[7]]);
            const lines: unknown[] = [];
            for await (const { data } of panel.events(`${server}/logs?lines=5`)) {
                lines.push(data);
            }
            expect(lines.length > 0).to.be.true();

            // What only servers of this machine can.
            for (const [method, path, body] of [
                ['PUT', server, { pointInTime: true }],
                ['PUT', `${server}/access`, { remote: true, allow: ['10.0.0.0/8'] }]
            ] as const) {
                expect([path, (await panel.ask(method, path, body)).code]).to.equal([path, 40001]);
            }

            // Its data are kept in its volume; without it, nothing stays.
            const { kept } = await done('DELETE', `${server}?data=keep`);
            expect(kept).to.equal(`volume ${stack}_data`);
            expect((await panel.ask('GET', server)).code).to.equal(40400);
            expect((await container.get(`/volumes/${stack}_data`)).status).to.equal(200);
            expect(await container.engine.names()).to.not.include(`${stack}-server-1`);
        });
    }

    itUnless(lacks, it)('get to a newer release and back, with the data that belong to it', async () => {
        const server = await make({ name: 'upgraded', kind: 'mysql', release: '10.11' });
        await panel.ask('POST', `${server}/databases`, { name: 'shop' });
        await write(server, 'create table kept (n int primary key)');
        await write(server, 'insert into kept values (1)');
        for (const release of ['10.11', '10.6', 'latest', '../x']) {
            const refused = await panel.ask('POST', `${server}/upgrade`, { release });
            expect([release, refused.code]).to.equal([release, 40001]);
        }
        await done('POST', `${server}/upgrade`, { release: '11.4' });
        const upgraded = await view(server);
        expect(upgraded).to.include({ release: '11.4', state: 'online', serverVersion: '11.4.1' });
        expect(upgraded.previous.release).to.equal('10.11');
        expect(upgraded.previous.bytes > mebibyte).to.be.true();
        await write(server, 'insert into kept values (2)');
        expect((await panel.ask('POST', `${server}/upgrade`, { release: badRelease })).code).to.equal(40901);

        await done('POST', `${server}/rollback`, { confirm: 'upgraded' });
        expect(await view(server)).to.include({ release: '10.11', previous: null, state: 'online' });
        expect(await read(server)).to.equal([[1]]);

        // A release that spoils the data, one that is nowhere, for which the server never stops, and one that lasts.
        const stack = `database-${server.split('/').at(-1)}`;
        const startedAt = async (): Promise<unknown> =>
            (await container.get(`/containers/${stack}-server-1/inspect`)).data.State.StartedAt;
        for (const release of [badRelease, '12.0']) {
            const before = await startedAt();
            const failed = await panel.task(await panel.ask('POST', `${server}/upgrade`, { release }));
            expect([release, failed.state, failed.error?.code]).to.equal([release, 'failed', 50350]);
            expect(await view(server)).to.include({ release: '10.11', previous: null, state: 'online' });
            expect(await read(server)).to.equal([[1]]);
            expect([release, (await startedAt()) === before]).to.equal([release, release === '12.0']);
        }
        const files = (await container.get(`/volumes/${stack}_data/files?path=/`)).data;
        expect(files.map(({ name }: { name: string }) => name))
            .to.include('upgraded')
            .and.to.not.include('spoilt');
        await done('POST', `${server}/upgrade`, { release: '11.4' });
        // What panels leave that are killed: before the image changed, after it, and on the way back.
        for (const [release, phase, expected] of [
            ['11.4', 'switching', '11.4'],
            ['10.11', 'upgrading', '10.11']
        ] as const) {
            await cutAt(server, { release, phase });
            expect(await view(server)).to.include({ release: expected, state: 'online' });
            expect(await read(server)).to.equal([[1]]);
        }
        await cutAt(server, { phase: 'upgrading' });
        expect(await view(server)).to.include({ release: '10.11', previous: null, state: 'online' });
        await done('POST', `${server}/upgrade`, { release: '11.4' });
        await done('DELETE', `${server}/previous`);
        expect(await view(server)).to.include({ release: '11.4', previous: null });
        expect((await panel.ask('POST', `${server}/rollback`, { confirm: 'upgraded' })).code).to.equal(40400);
        await done('DELETE', `${server}?data=delete`);
        expect((await container.get(`/volumes/${stack}_data`)).status).to.equal(404);
    });

    itUnless(lacks, it)(
        'leave nothing where they cannot be made, and are offered where they can',
        async () => {
            const { data: kinds } = await panel.ask('GET', '/kinds');
            for (const { runtimes } of kinds) {
                expect(runtimes[1]).to.include({ runtime: 'container', available: true });
            }
            const base = { name: 'never', kind: 'mysql', mode: 'managed', runtime: 'container' };
            for (const wrong of [
                { ...base, release: 'latest' },
                { ...base, pointInTime: true },
                { ...base, runtime: 'jail' },
                { ...base, socket: '/run/x' }
            ]) {
                expect([wrong, (await panel.ask('POST', '/servers', wrong)).code]).to.equal([wrong, 40001]);
            }
            const before = (await panel.ask('GET', '/servers')).data.length;
            for (const release of [badRelease, '12.0']) {
                const failed = await panel.task(await panel.ask('POST', '/servers', { ...base, release }));
                expect([release, failed.state, failed.error?.code]).to.equal([release, 'failed', 50350]);
            }
            expect((await panel.ask('GET', '/servers')).data.length).to.equal(before);

            // Another major release of PostgreSQL cannot read the data.
            const server = await make({ name: 'post', kind: 'postgresql', release: '15' });
            expect((await panel.ask('POST', `${server}/upgrade`, { release: '16' })).code).to.equal(40001);

            // Without the plugin, what needs it says so, and nothing is forgotten.
            await panel.host.partners.set('container', null);
            expect((await panel.ask('POST', '/servers', base)).code).to.equal(50302);
            expect((await panel.ask('GET', '/kinds')).data[0].runtimes[1].available).to.be.false();
            expect(await view(server)).to.include({ state: 'online' });
            const failed = await panel.task(await panel.ask('POST', `${server}/stop`, {}));
            expect([failed.state, failed.error?.code]).to.equal(['failed', 50302]);
        }
    );
});
