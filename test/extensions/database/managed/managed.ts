/** Servers that the panel runs, of both kinds: real programs, services, accounts, folders and ports. */
import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

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
                expect((await change('restart')).state).to.equal('succeeded');
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
