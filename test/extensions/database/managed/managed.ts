/** Servers that the panel runs, of both kinds: real programs, services, accounts, folders and ports. */
import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';

import { makeCertificate } from '../../../../extensions/database/src/managed/network/certificate.ts';
import { itUnless } from '../../../support/skip.ts';
import { Harness, until } from '../harness.ts';
import { noMariadb, noPostgresql } from '../instances.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const kinds = [
    {
        kind: 'mysql',
        lacks: noMariadb,
        program: 'mariadbd',
        account: 'mysql',
        option: 'max_connections',
        later: 'innodb_log_file_size'
    },
    {
        kind: 'postgresql',
        lacks: noPostgresql,
        program: 'postgres',
        account: 'postgres',
        option: 'work_mem',
        later: 'max_connections'
    }
] as const;
const mebibyte = 1024 * 1024;

/** The account that a process runs as, by its number. */
function uidOf(pid: number): number {
    return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

/** Whether a secret stands in the arguments or the environment of any process, or in a file that other accounts can read. */
function isExposed(secret: string, folder: string): boolean {
    const shown = globSync('/proc/[0-9]*/{cmdline,environ}').some((path) => {
        try {
            return readFileSync(path, 'latin1').includes(secret);
        } catch {
            return false;
        }
    });
    return (
        shown ||
        globSync(join(folder, 'config/*')).some((path) => readFileSync(path, 'utf8').includes(secret))
    );
}

/** Logs in from an address that is not that of this machine's own programs. */
async function logIn(
    { kind, port, ca }: { kind: string; port: number; ca: string | null },
    { username, password }: { username: string; password: string },
    from: string
): Promise<string> {
    const socket = connect({ host: '127.0.0.1', port, localAddress: from });
    const ssl = ca === null ? undefined : { ca, rejectUnauthorized: true };
    if (kind === 'mysql') {
        const options = { user: username, password, stream: () => socket, host: '127.0.0.1' };
        const connection = await createConnection(
            ssl === undefined ? options : { ...options, ssl: { ...ssl, verifyIdentity: true } }
        );
        const [rows] = await connection.query("show session status like 'ssl_cipher'");
        connection.destroy();
        return (rows as { Value: string }[])[0]?.Value ?? '';
    }
    const stream = () => Object.assign(socket, { connect: () => socket });
    const client = new pg.Client({
        host: '127.0.0.1',
        port,
        user: username,
        password,
        database: 'shop',
        stream,
        ssl: ssl ?? false
    });
    client.on('error', () => undefined);
    try {
        await client.connect();
        const { rows } = await client.query('select cipher from pg_stat_ssl where pid = pg_backend_pid()');
        return rows[0].cipher as string;
    } finally {
        await client.end().catch(() => undefined);
    }
}

/** Opens a server to one network, and closes it again. */
async function checkRemote(panel: Harness, server: string, kind: string): Promise<void> {
    const [near, far] = ['127.0.0.5', '127.0.1.5'];
    const open = (body: object, as = 'admin') => panel.ask('PUT', `${server}/access`, body, { as });
    expect((await open({ remote: true, allow: [near] }, 'tired')).status).to.equal(403);
    expect((await open({ remote: true, allow: [near] }, 'operator')).code).to.equal(40300);
    for (const allow of [[], ['x'], ['10.0.0.1/8'], ['10.0.0.0/33'], ['::g']]) {
        expect([allow, (await open({ remote: true, allow })).code]).to.equal([allow, 40001]);
    }
    const grants = [{ database: 'shop', level: 'read' }];
    const account = async (username: string, host: string) =>
        panel.ask('POST', `${server}/users`, {
            username,
            grants,
            ...(kind === 'mysql' ? { host } : {})
        });
    if (kind === 'mysql') {
        await account('anywhere', '%');
        expect((await open({ remote: true, allow: ['127.0.0.4/30'] })).code).to.equal(40901);
        await panel.ask('DELETE', `${server}/users/${encodeURIComponent('anywhere@%')}`);
    }
    const opened = await panel.task(await open({ remote: true, allow: ['127.0.0.4/30'] }));
    expect([opened.state, opened.error]).to.equal(['succeeded', null]);
    const { data } = await panel.ask('GET', server);
    expect(data).to.include({ state: 'online', remote: true, allow: ['127.0.0.4/30'] });
    if (kind === 'mysql') {
        expect((await account('anywhere', '%')).code).to.equal(40001);
        expect((await account('elsewhere', far)).code).to.equal(40001);
    }
    const made = await account('away', near);
    expect(made.status, made.text).to.equal(201);
    const login = { username: 'away', password: made.data.password as string };
    const place = { kind, port: data.listen.port as number, ca: data.ca as string };
    expect(await logIn(place, login, near)).to.match(/^(TLS_|ECDHE)/);
    await expect(logIn({ ...place, ca: null }, login, near)).to.reject();
    await expect(logIn(place, login, far)).to.reject();
    const other = makeCertificate('other', ['127.0.0.1']).certificate;
    await expect(logIn({ ...place, ca: other }, login, near)).to.reject();
    const closed = await panel.task(await open({ remote: false, allow: [] }));
    expect([closed.state, closed.error]).to.equal(['succeeded', null]);
    expect((await panel.ask('GET', server)).data).to.include({ remote: false, allow: [] });
    await expect(logIn(place, login, near)).to.reject();
}

describe('servers that the panel runs', { timeout: 120_000 }, () => {
    let panel: Harness;
    before({ timeout: 60_000 }, async () => {
        panel = await Harness.start();
    });
    after({ timeout: 60_000 }, async () => {
        await panel?.close();
    });

    it('are offered by kind, and refuse what belongs to registered ones', async () => {
        const { data } = await panel.ask('GET', '/kinds', undefined, { as: 'viewer' });
        for (const { kind, lacks, option } of kinds) {
            const offered = data.find((each: { kind: string }) => each.kind === kind);
            expect(offered.presets).to.equal(['tiny', 'web', 'oltp', 'olap']);
            expect(offered.settings.map(({ name }: { name: string }) => name)).to.include(option);
            expect(offered.runtimes[0].available).to.equal(lacks === undefined);
        }
        const base = { name: 'x', kind: 'mysql', mode: 'managed' };
        for (const wrong of [
            { ...base, host: '127.0.0.1' },
            { ...base, username: 'root' },
            { ...base, memoryBytes: 1 },
            { ...base, release: '../../bin' },
            { ...base, mode: 'registered', username: 'x', host: '127.0.0.1', preset: 'web' }
        ]) {
            const refused = await panel.ask('POST', '/servers', wrong);
            expect([wrong, refused.status === 202, [40001, 50302].includes(refused.code ?? 0)]).to.equal([
                wrong,
                false,
                true
            ]);
        }
        expect((await panel.ask('GET', '/servers')).data).to.equal([]);
        expect((await panel.ask('POST', '/servers', base, { as: 'operator' })).code).to.equal(40300);
    });

    for (const { kind, lacks, program, option, later } of kinds) {
        itUnless(lacks, it)(
            `are made, stopped, started, changed and removed: ${kind}, and outlive the plugin`,
            async () => {
                const made = await panel.task(
                    await panel.ask('POST', '/servers', {
                        name: `own ${kind}`,
                        kind,
                        mode: 'managed',
                        preset: 'tiny'
                    })
                );
                expect([made.state, made.error]).to.equal(['succeeded', null]);
                const id = made.result.serverId as number;
                const server = `/servers/${id}`;
                const view = async () => (await panel.ask('GET', server)).data;
                const folder = join(panel.dataFolder, 'servers', String(id));
                const service = async () => (await panel.ask('GET', server)).data.state as string;

                const seen = await view();
                expect(seen).to.include({
                    state: 'online',
                    message: null,
                    mode: 'managed',
                    runtime: 'native',
                    preset: 'tiny',
                    passwordSet: true
                });
                expect(seen.listen.address).to.equal('127.0.0.1');
                const { from, to } = panel.host.settings['ports'] as { from: number; to: number };
                expect(seen.listen.port >= from && seen.listen.port <= to).to.be.true();
                // Its folder, account and port.
                expect(statSync(join(folder, 'data')).mode & 0o777).to.equal(0o700);
                const pid = Number(
                    readFileSync(
                        kind === 'mysql'
                            ? join(folder, 'run/mysqld.pid')
                            : join(folder, 'data/postmaster.pid'),
                        'utf8'
                    ).split('\n')[0]
                );
                expect(readFileSync(`/proc/${pid}/comm`, 'utf8').trim()).to.equal(program);
                expect(uidOf(pid)).to.equal(statSync(join(folder, 'data')).uid);
                if (process.getuid?.() === 0) {
                    expect(uidOf(pid)).to.not.equal(0);
                }

                // It does what other servers do: databases, accounts, rows, and the console that only reads.
                expect((await panel.ask('POST', `${server}/databases`, { name: 'shop' })).status).to.equal(
                    201
                );
                const user = await panel.ask('POST', `${server}/users`, {
                    username: 'web',
                    grants: [{ database: 'shop', level: 'owner' }]
                });
                expect(user.status).to.equal(201);
                expect(isExposed(user.data.password as string, folder)).to.be.false();
                const write = (sql: string) =>
                    panel.ask('POST', `${server}/query`, { database: 'shop', sql, write: true });
                await write('create table kept (n int primary key)');
                expect((await write('insert into kept values (7)')).data.affected).to.equal(1);
                const kept = async () =>
                    (
                        await panel.ask('POST', `${server}/query`, {
                            database: 'shop',
                            sql: 'select n from kept'
                        })
                    ).data?.rows;
                expect(await kept()).to.equal([[7]]);

                // The plugin ends and begins: the same process serves.
                await panel.host.restart();
                expect(await kept()).to.equal([[7]]);
                expect(existsSync(`/proc/${pid}`)).to.be.true();

                // Options: at once where the server can, else with the next start.
                const options = async () =>
                    (await panel.ask('GET', `${server}/config`)).data as {
                        name: string;
                        value: unknown;
                        source: string;
                        pending: boolean;
                    }[];
                const of = async (name: string) => (await options()).find((each) => each.name === name);
                const bad = await panel.ask('PUT', `${server}/config`, { values: { [option]: 'x\ny' } });
                expect(bad.code).to.equal(40001);
                expect(
                    (await panel.ask('PUT', `${server}/config`, { values: { datadir: '/' } })).code
                ).to.equal(40001);
                const values = {
                    [option]: kind === 'mysql' ? 55 : 3 * mebibyte,
                    [later]: kind === 'mysql' ? 24 * mebibyte : 44
                };
                expect((await panel.ask('PUT', `${server}/config`, { values })).status).to.equal(200);
                await until('the option', async () => (await of(option))?.value === values[option]);
                expect(await of(option)).to.include({ source: 'set', pending: false });
                expect((await of(later))?.pending).to.be.true();

                // How busy it is, and what took long.
                await panel.host.schedules.run('watch');
                await panel.host.schedules.run('watch');
                const points = (await panel.ask('GET', `${server}/metrics`)).data;
                expect(points.length > 0).to.be.true();
                expect(points.at(-1).connections > 0).to.be.true();
                expect(points.at(-1).perSecond > 0).to.be.true();
                const past = await panel.ask('GET', `${server}/metrics?to=2001-01-01T00:00:00Z`);
                expect(past.data).to.equal([]);
                await write(kind === 'mysql' ? 'select sleep(1.1)' : 'select pg_sleep(0.2)');
                const slow = await panel.ask('GET', `${server}/slow`, undefined, { as: 'operator' });
                const found = slow.data.find(({ sql }: { sql: string }) => /select (pg_)?sleep/i.test(sql));
                expect([found?.calls, found?.totalMs > 100, /password|identified/i.test(slow.text)]).to.equal(
                    [1, true, false]
                );
                expect((await panel.ask('GET', `${server}/slow`, undefined, { as: 'viewer' })).code).to.equal(
                    40300
                );

                await checkRemote(panel, server, kind);

                // Stop, start, restart.
                const change = async (to: string) =>
                    panel.task(await panel.ask('POST', `${server}/${to}`, {}, { as: 'operator' }));
                expect((await change('stop')).state).to.equal('succeeded');
                expect(await service()).to.equal('stopped');
                expect(existsSync(`/proc/${pid}`)).to.be.false();
                expect(
                    (await panel.ask('POST', `${server}/query`, { database: 'shop', sql: 'select 1' })).code
                ).to.equal(50350);
                await panel.host.schedules.run('watch');
                expect((await panel.host.health()).find(({ name }) => name === 'servers')?.state).to.equal(
                    'ok'
                );
                const started = await change('start');
                expect([started.state, started.error]).to.equal(['succeeded', null]);
                expect(await kept()).to.equal([[7]]);
                expect(await of(later)).to.include({ value: values[later], pending: false });
                // Its log goes on with what it says while it stops.
                const following = panel.events(`${server}/logs?lines=1&follow=true`);
                expect((await following.next()).value).to.include({ event: 'line' });
                const restarting = change('restart');
                let saidItsEnd = false;
                for await (const { data } of following) {
                    saidItsEnd = /shut(ting )?down/i.test(JSON.stringify(data));
                    if (saidItsEnd) {
                        break;
                    }
                }
                expect(saidItsEnd).to.be.true();
                expect((await restarting).state).to.equal('succeeded');
                expect(await kept()).to.equal([[7]]);

                const lines: unknown[] = [];
                for await (const { event, data } of panel.events(`${server}/logs?lines=50`)) {
                    if (event === 'line') {
                        lines.push(data);
                    }
                }
                expect(JSON.stringify(lines)).to.match(/ready (for|to accept) connections/);
                expect((await panel.ask('GET', `${server}/logs`, undefined, { as: 'viewer' })).code).to.equal(
                    40300
                );

                const renamed = await panel.ask('PUT', server, {
                    name: `renamed ${kind}`,
                    version: seen.version
                });
                expect([renamed.status, renamed.data.name]).to.equal([200, `renamed ${kind}`]);
                expect((await panel.ask('PUT', server, { host: '10.0.0.1' })).code).to.equal(40001);

                const gone = await panel.task(await panel.ask('DELETE', server));
                expect([gone.state, gone.error]).to.equal(['succeeded', null]);
                expect((await panel.ask('GET', server)).code).to.equal(40400);
                expect(existsSync(folder)).to.be.false();
                expect(readdirSync(gone.result.kept as string).length).to.be.above(3);
            }
        );
    }
});
