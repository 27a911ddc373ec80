/** The past of servers that the panel runs, of both kinds: real copies, real logs, and new servers that are as the others were. */
import {
    existsSync,
    globSync,
    readdirSync,
    readFileSync,
    rmSync,
    statSync,
    truncateSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { Harness, until } from '../harness.ts';
import { noMariadb, noPostgresql } from '../instances.ts';

export const lab = Lab.script();
const { after, before, describe } = lab;

const kinds = [
    { kind: 'mysql', lacks: noMariadb, log: 'binlog.0*' },
    { kind: 'postgresql', lacks: noPostgresql, log: '0*' }
] as const;

/** MariaDB tells times of its log in whole seconds. */
async function nextSecond(): Promise<string> {
    await wait(1_000 - (Date.now() % 1_000) + 50);
    const at = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 1_000).toISOString();
    await wait(1_000 - (Date.now() % 1_000) + 50);
    return at;
}

/** One server, as people work on it. */
class Server {
    readonly panel: Harness;
    readonly id: number;

    constructor(panel: Harness, id: number) {
        this.panel = panel;
        this.id = id;
    }

    get path(): string {
        return `/servers/${this.id}`;
    }

    get folder(): string {
        return join(this.panel.dataFolder, 'servers', String(this.id));
    }

    async write(sql: string): Promise<void> {
        const { status, text } = await this.panel.ask('POST', `${this.path}/query`, {
            database: 'shop',
            sql,
            write: true
        });
        expect([status, text]).to.equal([200, text]);
    }

    async numbers(): Promise<unknown> {
        const sql = 'select n from kept order by n';
        const { data, text } = await this.panel.ask('POST', `${this.path}/query`, { database: 'shop', sql });
        return data?.rows?.flat() ?? text;
    }

    /** Logs in as an account, and says what it reads. */
    async readAs(username: string, password: string): Promise<number> {
        const { data } = await this.panel.ask('GET', this.path);
        const { kind, listen } = data;
        const registered = await this.panel.ask('POST', '/servers', {
            name: `as ${username} ${this.id} ${Date.now()}`,
            kind,
            mode: 'registered',
            host: '127.0.0.1',
            port: listen.port,
            username,
            password
        });
        if (registered.status === 201) {
            await this.panel.ask('DELETE', `/servers/${registered.data.id}`);
        }
        return registered.status;
    }

    async past() {
        return (await this.panel.ask('GET', `${this.path}/point-in-time`, undefined, { as: 'viewer' })).data;
    }

    async change(to: 'start' | 'stop' | 'restart'): Promise<void> {
        const { state, error } = await this.panel.task(
            await this.panel.ask('POST', `${this.path}/${to}`, {})
        );
        expect([state, error]).to.equal(['succeeded', null]);
    }

    async copied(): Promise<void> {
        await this.panel.host.schedules.run('point-in-time');
        await until('the copy', async () => (await this.past()).from !== null);
    }

    async restore(at: string, name: string): Promise<Server> {
        const asked = await this.panel.ask('POST', `${this.path}/point-in-time/restore`, { at, name });
        const { state, error, result } = await this.panel.task(asked);
        expect([state, error]).to.equal(['succeeded', null]);
        return new Server(this.panel, result.serverId as number);
    }
}

async function make(panel: Harness, body: object): Promise<Server> {
    const made = await panel.task(
        await panel.ask('POST', '/servers', { mode: 'managed', preset: 'tiny', ...body })
    );
    expect([made.state, made.error]).to.equal(['succeeded', null]);
    const server = new Server(panel, made.result.serverId as number);
    await panel.ask('POST', `${server.path}/databases`, { name: 'shop' });
    return server;
}

describe('the past of servers', { timeout: 180_000 }, () => {
    let panel: Harness;
    /** Servers that had a past, and have none. */
    const later = new Map<string, Server>();
    const laterOf = async (kind: string): Promise<Server> => {
        const known = later.get(kind);
        if (known !== undefined) {
            return known;
        }
        const server = await make(panel, { name: `later ${kind}`, kind });
        await server.write('create table kept (n int primary key)');
        later.set(kind, server);
        return server;
    };
    before({ timeout: 60_000 }, async () => {
        panel = await Harness.start();
    });
    after({ timeout: 60_000 }, async () => {
        await panel?.close();
    });

    for (const { kind, lacks, log } of kinds) {
        itUnless(lacks, lab.it)(`comes back in a new server, at any time: ${kind}`, async () => {
            const server = await make(panel, { name: `shop ${kind}`, kind, pointInTime: true });
            expect((await panel.ask('GET', server.path)).data.pointInTime).to.be.true();
            expect(await server.past()).to.include({ enabled: true, from: null, to: null });
            const tooSoon = await panel.ask('POST', `${server.path}/point-in-time/restore`, {
                at: new Date().toISOString(),
                name: 'x'
            });
            expect([tooSoon.code, tooSoon.text]).to.equal([40001, tooSoon.text]);
            await server.copied();
            const { from, bytes, message } = await server.past();
            expect([bytes > 1_000_000, message]).to.equal([true, null]);
            const archive = join(server.folder, 'archive');
            expect(statSync(archive).mode & 0o777).to.equal(0o700);
            // How large a copy is was seen when it was made: its files are not looked at again.
            const [stray = ''] = globSync(join(archive, 'bases/*')).map((base) => join(base, 'stray'));
            writeFileSync(stray, '');
            truncateSync(stray, 2 ** 36);
            expect((await server.past()).bytes < 2 ** 36).to.be.true();
            rmSync(stray);

            // What is written after the copy.
            await server.write('create table kept (n int primary key)');
            await server.write('insert into kept values (1)');
            const grants = [{ database: 'shop', level: 'read' }];
            const web = (await panel.ask('POST', `${server.path}/users`, { username: 'web', grants })).data;
            const temporary = async (ttlSeconds: number) =>
                (await panel.ask('POST', `${server.path}/credentials`, { database: 'shop', ttlSeconds }))
                    .data;
            const [ended, lasting] = [await temporary(3_600), await temporary(3_600)];
            const good = await nextSecond();
            await server.write('insert into kept values (2)');
            await server.write('delete from kept where n = 1');
            await panel.ask('DELETE', `${server.path}/credentials/${ended.id}`);
            await panel.ask('POST', `${server.path}/users/web/rotate`, {});
            // The panel's own password of that time is another one.
            expect((await panel.ask('POST', `${server.path}/rotate`, {})).status).to.equal(200);

            const back = await server.restore(good, `back ${kind}`);
            expect(await back.numbers()).to.equal([1]);
            expect(await server.numbers()).to.equal([2]);
            expect((await panel.ask('GET', back.path)).data).to.include({
                state: 'online',
                preset: 'tiny',
                pointInTime: false
            });
            expect(await back.readAs('web', web.password as string)).to.equal(201);
            expect(await back.readAs(lasting.username, lasting.password)).to.equal(201);
            expect(await back.readAs(ended.username, ended.password)).to.equal(422);
            const credentials = (await panel.ask('GET', `${back.path}/credentials`)).data;
            expect(credentials.map(({ account }: { account: string }) => account)).to.equal([
                lasting.account
            ]);
            // The new one goes on by itself, and its files are its own.
            await back.write('insert into kept values (3)');
            await back.change('restart');
            expect(await back.numbers()).to.equal([1, 3]);
            expect(globSync(join(back.folder, '{archive,data/recovery.signal,run/replay*}'))).to.equal([]);

            // The end of the log, of a server that does not run.
            await nextSecond();
            await server.change('stop');
            const { to } = await server.past();
            const down = await server.restore(to, `down ${kind}`);
            expect(await down.numbers()).to.equal([2]);

            // Times that it does not reach.
            const refuse = async (at: unknown) =>
                (await panel.ask('POST', `${server.path}/point-in-time/restore`, { at, name: 'no' })).code;
            const before = new Date(new Date(from).getTime() - 1_000).toISOString();
            const later = new Date(Date.now() + 60_000).toISOString();
            expect([await refuse(before), await refuse(later), await refuse('x')]).to.equal([
                40001, 40001, 40001
            ]);

            // A file of the log that is gone is seen: nothing is restored without it.
            await server.change('start');
            if (kind === 'mysql') {
                await server.change('restart');
            } else {
                await server.write(
                    "create table large as select n, repeat('x', 1000) from generate_series(1, 60000) n"
                );
            }
            await until(
                'more log',
                async () => globSync(join(archive, 'log', log)).length > (kind === 'mysql' ? 2 : 4)
            );
            const logs = globSync(join(archive, 'log', log))
                .filter((path) => !path.endsWith('.backup'))
                .sort();
            expect(logs.length).to.be.above(1);
            rmSync(logs.at(-2) as string);
            const torn = await panel.task(
                await panel.ask('POST', `${server.path}/point-in-time/restore`, { at: good, name: 'torn' })
            );
            expect([torn.state, torn.error?.code]).to.equal(['failed', 40001]);
            expect((await panel.ask('GET', '/servers')).text).to.not.include('torn');
        });

        itUnless(lacks, lab.it)(`begins and ends with a start of the server: ${kind}`, async () => {
            const server = await laterOf(kind);
            expect(await server.past()).to.equal({
                enabled: false,
                from: null,
                to: null,
                bytes: 0,
                message: null
            });
            const turn = async (pointInTime: boolean) =>
                expect((await panel.ask('PUT', server.path, { pointInTime })).data.pointInTime).to.equal(
                    pointInTime
                );
            await turn(true);
            await panel.host.schedules.run('point-in-time');
            expect(await server.past()).to.include({ enabled: true, from: null });
            expect((await server.past()).message).to.match(/next start/);
            await server.change('restart');
            await server.copied();
            await server.write('insert into kept values (1)');
            const bases = join(server.folder, 'archive/bases');
            const [only] = readdirSync(bases);
            // A copy that is new enough is not made again.
            await panel.host.schedules.run('point-in-time');
            expect(readdirSync(bases)).to.equal([only]);

            await turn(false);
            expect(await server.past()).to.include({ enabled: false, from: null, to: null });
            await panel.host.schedules.run('point-in-time');
            expect(existsSync(bases)).to.be.true();
            // On again before the restart: nothing is missing in the log, so the copy counts.
            await turn(true);
            expect((await server.past()).from).to.be.a.string();
            await turn(false);
            await server.change('restart');
            // On again after it: what was written since is in no log, so the former copy is gone.
            await turn(true);
            expect(await server.past()).to.include({ enabled: true, from: null });
            await turn(false);
            await panel.host.schedules.run('point-in-time');
            expect(existsSync(join(server.folder, 'archive'))).to.be.false();
            expect(await server.numbers()).to.equal([1]);
        });
    }

    for (const { kind, lacks, log } of kinds) {
        itUnless(lacks, lab.it)(`is copied again and forgotten in time: ${kind}`, async () => {
            const server = await laterOf(kind);
            await panel.ask('PUT', server.path, { pointInTime: true });
            await server.change('restart');
            const archive = join(server.folder, 'archive');
            const names = (of: string) => readdirSync(join(archive, of)).sort();
            await server.copied();
            const [first] = names('bases');
            const logs = globSync(join(archive, 'log', log)).sort();
            const realNow = Date.now;
            try {
                for (const [days, copies] of [
                    [6, 1],
                    [8, 2],
                    [16, 2]
                ] as const) {
                    Date.now = () => realNow() + days * 86_400_000;
                    // Another file of the log.
                    await server.change('restart');
                    await server.write(`insert into kept values (${days})`);
                    await panel.host.schedules.run('point-in-time');
                    await until(`${copies} copies`, async () => names('bases').length === copies);
                    // Also those of other servers, which are due on the same day.
                    for (const { id } of panel.host.tasks.list()) {
                        await panel.host.tasks.wait(id);
                    }
                }
                await until(
                    'the first copy to be forgotten',
                    async () => !names('bases').includes(first ?? '')
                );
                expect(names('bases')).to.have.length(2);
            } finally {
                Date.now = realNow;
            }
            expect(logs.length).to.be.above(0);
            await until('its log to be forgotten', async () => !logs.some((path) => existsSync(path)));
        });
    }

    itUnless(noPostgresql, lab.it)('that cannot be copied is told, and the copy leaves nothing', async () => {
        const server = await make(panel, { name: 'broken', kind: 'postgresql', pointInTime: true });
        // Another admin changed who may copy.
        const rules = join(server.folder, 'config/pg_hba.conf');
        const text = readFileSync(rules, 'utf8');
        expect(text).to.include('local replication portico');
        writeFileSync(rules, text.replace(/local replication.*/, ''));
        await server.change('restart');
        await panel.host.schedules.run('point-in-time');
        await until('the failure', async () => (await server.past()).message !== null);
        await until('the end', async () => /copy of its data failed/.test((await server.past()).message));
        expect(readdirSync(join(server.folder, 'archive/bases'))).to.equal([]);
        const health = (await panel.host.health()).find(({ name }) => name === 'point-in-time');
        expect([health?.state, health?.evidence]).to.equal(['degraded', health?.evidence]);
        expect(health?.evidence).to.match(/broken/);
    });
});
