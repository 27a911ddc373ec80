/** Dumps, restores, files of rows, backups and the contract, with real servers and the real programs. */
import { createHash } from 'node:crypto';
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { DatabaseContract } from '../../../../extensions/database/src/contract.ts';
import { mountSmallDisk, noSmallDisk } from '../../../support/machine/small-disk.ts';
import { itUnless } from '../../../support/skip.ts';
import { type Answer, Harness, until } from '../harness.ts';
import { type Instance, noMariadb, noPostgresql, startMariadb, startPostgresql } from '../instances.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const kinds = [
    { kind: 'mysql', lacks: noMariadb, start: startMariadb },
    { kind: 'postgresql', lacks: noPostgresql, start: startPostgresql }
] as const;
/** What the one tap of a hook gave. */
function resultOf(outcomes: readonly { readonly ok: boolean; readonly result?: unknown }[]): unknown {
    return outcomes[0]?.ok === true ? outcomes[0].result : outcomes[0];
}

/** Programs of this name that this process started, also by others. */
function descendants(name: string): readonly number[] {
    const parents = new Map<number, number>();
    const found: number[] = [];
    for (const pid of readdirSync('/proc')
        .filter((each) => /^\d+$/.test(each))
        .map(Number)) {
        try {
            parents.set(
                pid,
                Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
            );
            const [file = '', first] = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
            found.push(...(file.endsWith(name) && first !== '--version' ? [pid] : []));
        } catch {
            // It has ended meanwhile.
        }
    }
    const isOurs = (pid: number): boolean =>
        pid === process.pid || ((parents.get(pid) ?? 0) > 1 && isOurs(parents.get(pid) ?? 0));
    return found.filter(isOurs);
}

const odd = `it's "odd"; host=x`;

for (const { kind, lacks, start } of kinds) {
    const isMysql = kind === 'mysql';
    describe(`dumps: ${kind}`, { timeout: 180_000 }, () => {
        const run = itUnless(lacks, it);
        let instance: Instance;
        let panel: Harness;
        let server: string;
        let id: number;

        const task = (answer: Pick<Answer, 'status' | 'data' | 'text'>) => panel.task(answer);
        const names = async (): Promise<string[]> =>
            ((await panel.ask('GET', `${server}/databases?limit=500`)).data as { name: string }[]).map(
                ({ name }) => name
            );
        const files = (folder: string): string[] => {
            try {
                return readdirSync(join(panel.dataFolder, folder));
            } catch {
                return [];
            }
        };
        const upload = async (text: string, name = 'given'): Promise<number> =>
            (await panel.upload(`/dumps/upload?kind=${kind}&name=${name}`, text)).data.id as number;
        const restore = (dump: number, database: string, more: object = {}) =>
            panel.ask('POST', `/dumps/${dump}/restore`, { serverId: id, database, ...more });

        before({ timeout: 90_000 }, async () => {
            if (lacks !== undefined) {
                return;
            }
            [instance, panel] = await Promise.all([start(), Harness.start()]);
            server = await panel.register(instance);
            id = Number(server.split('/').at(-1));
            await panel.ask('POST', `${server}/databases`, { name: odd });
            await instance.sql(
                isMysql
                    ? `create table notes (id int auto_increment primary key, text longtext, raw blob);
                       insert into notes (text, raw) values ('it''s; \\\\ "x"\\nü🙂', x'00ff27'), (null, null), ('', '');
                       create view seen as select id from notes;
                       create trigger stamp before insert on notes for each row set new.text = concat(new.text, ';');
                       create procedure two() begin select 1; select 2; end`
                    : `create table notes (id serial primary key, text text, raw bytea);
                       insert into notes (text, raw) values (E'it''s; \\\\ "x"\\nü🙂', '\\x00ff27'), (null, null), ('', '');
                       create view seen as select id from notes;
                       create function two() returns int language sql as $$ select 2; $$`,
                odd
            );
        });
        after({ timeout: 90_000 }, async () => {
            await panel?.close();
            await instance?.close();
        });

        run('are made, read and restored into new databases, in both formats', async () => {
            for (const format of ['native', 'sql']) {
                const begun = await panel.ask(
                    'POST',
                    '/dumps',
                    { serverId: id, databases: [odd], format },
                    { as: 'operator' }
                );
                const made = await task(begun);
                expect([format, made.state, made.error]).to.equal([format, 'succeeded', null]);
                const [dump] = made.result.dumpIds as [number];
                const { data } = await panel.ask('GET', `/dumps/${dump}`);
                const bytes = Buffer.from(
                    (await panel.ask('GET', `/dumps/${dump}/content`, undefined, { as: 'operator' })).bytes
                );
                expect([data.state, data.bytes, data.sha256]).to.equal([
                    'ready',
                    bytes.length,
                    createHash('sha256').update(bytes).digest('hex')
                ]);
                const name = `back ${format}`;
                const back = await task(await restore(dump, name));
                expect([format, back.state, back.error]).to.equal([format, 'succeeded', null]);
                const rows = `select id, text, raw from notes order by id`;
                expect(await instance.sql(rows, name)).to.equal(await instance.sql(rows, odd));
                expect((await instance.sql('select id from seen', name)).length).to.equal(3);
                await instance.sql(isMysql ? 'call two()' : 'select two()', name);
                expect((await restore(dump, name)).code).to.equal(40900);
                await panel.ask(
                    'DELETE',
                    `${server}/databases/${encodeURIComponent(name)}?confirm=${encodeURIComponent(name)}`
                );
                await instance.sql('delete from notes', odd);
                const replaced = await task(await restore(dump, odd, { replace: true }));
                expect([replaced.state, replaced.error]).to.equal(['succeeded', null]);
                expect((await instance.sql(rows, odd)).length).to.equal(3);
            }
            await until(
                'only the database',
                async () => (await names()).filter((name) => name.startsWith('portico')).length === 0
            );
            expect(files('dumps').length).to.equal(2);
            expect((await panel.ask('GET', '/dumps')).data.length).to.equal(2);
            expect((await panel.ask('GET', '/dumps', undefined, { as: 'viewer' })).status).to.equal(200);
        });

        run('hold nothing that a client program would run, and reach no other database', async () => {
            await panel.ask('POST', `${server}/databases`, { name: 'victim' });
            await instance.sql('create table kept (n int)', 'victim');
            for (const [text, code] of [
                ['create table a (n int);\n\\! touch /tmp/portico-stolen\n', 42253],
                [
                    isMysql
                        ? 'drop table victim.kept;'
                        : "copy (select 1) to program 'touch /tmp/portico-stolen';",
                    42250
                ],
                [
                    isMysql
                        ? "select 1 into outfile '/tmp/portico-stolen';"
                        : "select pg_read_file('/etc/passwd');",
                    42250
                ],
                [
                    isMysql
                        ? "load data local infile '/etc/passwd' into table t;"
                        : 'create role portico_evil superuser;',
                    42250
                ],
                [isMysql ? "create user evil@'%';" : 'reset role; set role postgres;', 42250],
                ['create table half (n int); insert into nope values (1);', 42250]
            ] as const) {
                const dump = await upload(text);
                const failed = await task(await restore(dump, 'given'));
                expect([text, failed.state, failed.error?.code]).to.equal([text, 'failed', code]);
                expect(await names()).to.not.include('given');
                await panel.ask('DELETE', `/dumps/${dump}`);
            }
            expect(await instance.sql('select * from kept', 'victim')).to.equal([]);
            const { text } = await panel.ask('GET', `${server}/users?limit=500`);
            expect(text).to.not.include('evil').and.not.include('portico_guest');
        });

        run('leave nothing of a restore or dump that was cut', async () => {
            const slow = isMysql
                ? 'create table a (n int);\nselect sleep(20);'
                : 'create table a (n int);\nselect pg_sleep(20);';
            const dump = await upload(slow);
            const begun = await restore(dump, 'cut');
            await until('the database', async () => (await names()).includes('cut'));
            expect((await restore(dump, 'cut', { replace: true })).code).to.equal(40901);
            const report = await panel.host.stop();
            expect([report.leaked, report.failures]).to.equal([[], []]);
            await panel.host.start();
            await panel.host.schedules.run('watch');
            expect(await names()).to.not.include('cut');
            expect((await task(begun)).state).to.not.equal('succeeded');
            const users = (await panel.ask('GET', `${server}/users?limit=500`)).text;
            expect(users).to.not.include('portico_guest');
            await panel.ask('DELETE', `/dumps/${dump}`);
        });

        run('are not made by a client that is older than the server', async () => {
            const said = async (): Promise<string> =>
                (await panel.ask('GET', server)).data.serverVersion as string;
            const write = (version: string) =>
                panel.host.db.write((em) =>
                    em.execute('update servers set server_version = ? where id = ?', [version, id])
                );
            const version = await said();
            await write('99.1');
            const { error } = await task(
                await panel.ask('POST', '/dumps', { serverId: id, databases: [odd] })
            );
            await write(version);
            expect(error, JSON.stringify(error)).to.include({ code: 42252 });
            expect((error as { data?: object } | null)?.data).to.include({ serverVersion: '99.1' });
        });

        itUnless(lacks ?? noSmallDisk, it)('change nothing where a disk is full', async () => {
            await instance.sql('create table small (id int primary key)', odd);
            await instance.sql('insert into small values (1)', odd);
            const at = `${server}/databases/${encodeURIComponent(odd)}/import?table=small`;
            const list = async () => (await panel.ask('GET', '/dumps?limit=500')).text;
            const rows = () => instance.sql('select id from small', odd);
            const [dumps, had] = [await list(), await rows()];
            const code = async (answer: Answer): Promise<number | null | undefined> =>
                answer.status === 202 ? (await task(answer)).error?.code : answer.code;
            const dump = () => panel.ask('POST', '/dumps', { serverId: id, databases: [odd] });
            // The last page is taken, and less is left than the panel leaves free.
            for (const [folder, isFull] of [
                ['dumps', true],
                ['uploads', true],
                ['', false]
            ] as const) {
                const disk = mountSmallDisk(join(panel.dataFolder, folder), 65_536);
                try {
                    isFull && disk.fill();
                    if (folder !== 'uploads') {
                        expect([folder, await code(await dump())]).to.equal([folder, 50700]);
                    }
                    if (folder !== 'dumps') {
                        expect([folder, await code(await panel.upload(at, 'id\n2\n'))]).to.equal([
                            folder,
                            50700
                        ]);
                    }
                    const left = readdirSync(disk.folder, { recursive: true }).filter(
                        (name) => !['filler', 'dumps', 'uploads'].includes(String(name))
                    );
                    expect([folder, left]).to.equal([folder, []]);
                } finally {
                    disk.close();
                }
            }
            expect([await list(), await rows()]).to.equal([dumps, had]);
        });

        itUnless(lacks ?? noSmallDisk, it)(
            'leave nothing half done where the disk of the server is full',
            async () => {
                const disk = mountSmallDisk(join(instance.folder, isMysql ? 'data/tight' : 'tight'), 2 ** 20);
                try {
                    const { uid, gid } = statSync(instance.folder);
                    chownSync(disk.folder, uid, gid);
                    const database = isMysql ? 'tight' : odd;
                    await instance.sql(
                        isMysql
                            ? 'create table tight.longs (id int primary key, text varchar(1000)); insert into tight.longs values (1, 1)'
                            : `create tablespace tight location '${disk.folder}'`
                    );
                    if (!isMysql) {
                        await instance.sql('grant create on tablespace tight to public');
                        await instance.sql("alter role all set default_tablespace = 'tight'");
                        await instance.sql(
                            "create table longs (id int primary key, text varchar(1000)); insert into longs values (1, '1')",
                            odd
                        );
                        const big = await upload(
                            "create table big (n int, text text);\ninsert into big select n, repeat('x', 900) from generate_series(1, 5000) n;\n"
                        );
                        const before = await names();
                        const { error } = await task(await restore(big, 'never'));
                        expect([error?.code, error?.message]).to.equal([42250, error?.message]);
                        expect(error?.message).to.match(/no space left/i);
                        expect(await names()).to.equal(before);
                        await panel.ask('DELETE', `/dumps/${big}`);
                    }
                    const many = Array.from(
                        { length: 5_000 },
                        (_, index) => `${index + 10},${'x'.repeat(900)}`
                    );
                    for (const mode of ['append', 'replace']) {
                        const { error } = await task(
                            await panel.upload(
                                `${server}/databases/${encodeURIComponent(database)}/import?table=longs&mode=${mode}`,
                                `id,text\n${many.join('\n')}\n`
                            )
                        );
                        expect([mode, error?.code, error?.message]).to.equal([mode, 42250, error?.message]);
                        expect(error?.message).to.match(/no space left|is full/i);
                        expect(
                            (await instance.sql('select id from longs', database)).map((row) => ({ ...row }))
                        ).to.equal([{ id: 1 }]);
                    }
                    expect(files('uploads')).to.equal([]);
                    expect((await panel.ask('GET', `${server}/users?limit=500`)).text).to.not.include(
                        'portico_guest'
                    );
                    await instance.sql(isMysql ? 'drop table tight.longs' : 'drop table longs', database);
                } finally {
                    if (!isMysql) {
                        await instance.sql('alter role all reset default_tablespace');
                        await instance.sql('drop tablespace tight').catch(() => undefined);
                    }
                    disk.close();
                }
            }
        );

        run('rows go out and come in as CSV and JSON lines, all or none', async () => {
            const base = `${server}/databases/${encodeURIComponent(odd)}`;
            const out = async (format: string): Promise<string> =>
                (
                    await panel.ask('GET', `${base}/export?table=notes&format=${format}`, undefined, {
                        as: 'operator'
                    })
                ).text;
            const csv = await out('csv');
            expect(csv.split('\r\n').slice(0, 1)).to.equal(['id,text,raw']);
            expect(csv).to.include('\r\n2,,\r\n').and.include('\r\n3,"');
            expect(JSON.parse((await out('jsonl')).split('\n')[1] ?? '')).to.equal({
                id: 2,
                text: null,
                raw: null
            });
            expect(await out('sql')).to.include('insert into');
            await instance.sql('create table copies (id int primary key, text text)', odd);
            const bring = async (text: string, query: string) =>
                task(await panel.upload(`${base}/import?table=copies&${query}`, text));
            const rows = () => instance.sql('select id, text from copies order by id', odd);
            expect(
                (await bring('id,text\r\n1,"a, ""b""\n;"\r\n2,\r\n3,""\r\n', 'format=csv')).state
            ).to.equal('succeeded');
            const first = [
                { id: 1, text: 'a, "b"\n;' },
                { id: 2, text: null },
                { id: 3, text: '' }
            ];
            expect((await rows()).map((row) => ({ ...row }))).to.equal(first);
            for (const wrong of [
                'id,text\n9,x\n1,again\n',
                'id,nope\n1,2\n',
                'id,text\n"9',
                'id,text\n9,x,y,z\n'
            ]) {
                expect([
                    wrong,
                    (await bring(wrong, 'mode=replace').catch(() => ({ state: 'failed' }))).state ===
                        'failed' || (await rows()).length > 0
                ]).to.equal([wrong, true]);
            }
            expect(
                (await bring('{"id":7,"text":"x"}\n{"id":8}\n', 'format=jsonl&mode=replace')).state
            ).to.equal('succeeded');
            expect((await rows()).map((row) => ({ ...row }))).to.equal([
                { id: 7, text: 'x' },
                { id: 8, text: null }
            ]);
            expect(files('uploads')).to.equal([]);
        });

        run('rows of every type come in as the server reads their texts, and none is cut', async () => {
            await panel.ask('POST', `${server}/databases`, { name: 'typed' });
            await instance.sql(
                isMysql
                    ? `create table typed (k int auto_increment primary key, c char(3), v varchar(3), d varchar(3), n numeric(5, 2), b blob, a varchar(9), j json, t boolean)`
                    : `create domain word as varchar(3); create domain short as word;
                       create table typed (k serial primary key, c char(3), v varchar(3), d short, n numeric(5, 2), b bytea, a text[], j jsonb, t boolean)`,
                'typed'
            );
            const bring = async (lines: readonly object[]) =>
                task(
                    await panel.upload(
                        `${server}/databases/typed/import?table=typed&format=jsonl`,
                        lines.map((line) => JSON.stringify(line)).join('\n')
                    )
                );
            const row = {
                c: 'ab',
                v: 'ü"\\',
                d: 'x,y',
                n: '1.25',
                b: { base64: 'AP8n' },
                a: isMysql ? '{}' : ['a "b"', '\\', null],
                j: { deep: [1, 'x'] },
                t: true
            };
            const made = await bring([row, { v: null }]);
            expect([made.state, made.error]).to.equal(['succeeded', null]);
            const there = (await instance.sql('select * from typed order by k', 'typed')).map((each) => ({
                ...each
            }));
            expect(there.map(({ k }) => k)).to.equal([1, 2]);
            expect(there[0]).to.include({ v: 'ü"\\', d: 'x,y', n: '1.25' });
            expect(String(there[0]?.['c']).trim()).to.equal('ab');
            expect(Buffer.from(there[0]?.['b'] as Buffer).toString('base64')).to.equal('AP8n');
            expect(there[0]?.['a']).to.equal(row.a);
            expect(there[0]?.['j']).to.equal(row.j);
            for (const [column, value] of [
                ['c', 'abcd'],
                ['v', 'abcd'],
                ['d', 'abcd'],
                ['n', '12345'],
                ['n', 'x']
            ] as const) {
                const failed = await bring([{ [column]: value }]);
                expect([column, failed.error?.code]).to.equal([column, 42250]);
            }
            expect((await instance.sql('select k from typed', 'typed')).length).to.equal(2);
        });

        run('a file of SQL runs in a database that is there, and in no other one', async () => {
            await panel.ask('POST', `${server}/databases`, { name: 'app' });
            await panel.ask('POST', `${server}/databases`, { name: 'foreign' });
            await instance.sql('create table kept (n int)', 'foreign');
            const bring = async (text: string | Buffer, query = 'format=sql') => {
                const answer = await panel.upload(`${server}/databases/app/import?${query}`, text);
                return task(answer);
            };
            const tables = async (): Promise<string[]> =>
                (await panel.ask('GET', `${server}/databases/app/tables`)).data.map(
                    (each: { name: string }) => each.name
                );
            const made = await bring('create table one (n int);\ninsert into one values (1), (2);\n');
            expect([made.state, made.error]).to.equal(['succeeded', null]);
            const again = await bring(gzipSync('create table two (n int); insert into one values (3);'));
            expect([again.state, again.error]).to.equal(['succeeded', null]);
            expect((await instance.sql('select n from one', 'app')).length).to.equal(3);
            for (const [text, code] of [
                ['create table three (n int);\n\\! touch /tmp/portico-stolen\n', 42253],
                [isMysql ? 'insert into foreign.kept values (1);' : 'create role portico_evil;', 42250],
                ['insert into one values (4); insert into nope values (1);', 42250]
            ] as const) {
                const failed = await bring(text);
                expect([text, failed.state, failed.error?.code]).to.equal([text, 'failed', code]);
            }
            expect(await tables()).to.equal(['one', 'two']);
            expect((await instance.sql('select n from one', 'app')).length).to.equal(isMysql ? 4 : 3);
            // An owner made since goes on with what the file made.
            const owner = { username: 'appowner', grants: [{ database: 'app', level: 'owner' }] };
            const { data } = await panel.ask('POST', `${server}/users`, owner);
            const login = { username: 'appowner', password: data.password as string };
            if (!isMysql) {
                await instance.sql('alter table two add column m int', 'app', login);
            }
            for (const query of ['format=sql&table=one', 'format=sql&mode=replace', 'format=csv']) {
                const refused = await panel.upload(`${server}/databases/app/import?${query}`, 'x');
                expect([query, refused.code]).to.equal([query, 40001]);
            }
            expect(files('uploads')).to.equal([]);
        });

        run(
            'end with their program, and leave no file when it is killed or the task is cancelled',
            async () => {
                const tool = isMysql ? 'mariadb-dump' : 'pg_dump';
                const programs = (): readonly number[] => descendants(tool);
                const before = files('dumps').length;
                const locked = instance.sql(
                    isMysql
                        ? 'lock tables notes write; select sleep(600)'
                        : 'begin; lock table notes in access exclusive mode; select pg_sleep(600)',
                    odd
                );
                locked.catch(() => undefined);
                await until('the lock', async () =>
                    JSON.stringify(
                        await instance.sql(
                            isMysql
                                ? 'select info from information_schema.processlist'
                                : 'select query as info from pg_stat_activity'
                        )
                    ).includes('sleep(600)')
                );
                for (const end of ['kill', 'cancel'] as const) {
                    const begun = await panel.ask('POST', '/dumps', { serverId: id, databases: [odd] });
                    const pid = await until('the program', async () => programs()[0]);
                    const own = process.getuid?.() ?? 0;
                    expect(statSync(`/proc/${pid}`).uid).to.equal(own === 0 ? 65_534 : own);
                    if (end === 'kill') {
                        process.kill(pid, 'SIGKILL');
                    } else {
                        await panel.host.tasks.cancel(begun.data.id as number);
                    }
                    const task_ = await task(begun);
                    expect([end, task_.state]).to.equal([end, end === 'kill' ? 'failed' : 'cancelled']);
                    await until('its end', async () => programs().length === 0);
                    expect(files('dumps').length).to.equal(before);
                }
                expect((await panel.ask('GET', '/dumps')).text).to.not.include('"running"');
                const waiting = await instance.sql(
                    isMysql
                        ? "select id from information_schema.processlist where info like '%sleep(600)%' and id <> connection_id()"
                        : "select pid as id from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> pg_backend_pid()"
                );
                for (const { id: session } of waiting) {
                    await instance.sql(
                        isMysql
                            ? `kill ${String(session)}`
                            : `select pg_terminate_backend(${String(session)})`
                    );
                }
                // What reads a dump that came from elsewhere has no network either.
                const readers = panel.host.programs.calls.filter(({ file }) => file.endsWith('/pg_restore'));
                expect(readers.length > 0).to.equal(!isMysql);
                for (const { options } of readers) {
                    expect(options).to.include({
                        isolate: { network: false },
                        ...(process.getuid?.() === 0 ? { user: 'nobody' } : {})
                    });
                }
                await expect(locked).to.reject();
            }
        );

        run('other plugins get a database by contract, by the permissions of who asks', async () => {
            const contract = panel.contract<DatabaseContract>('admin');
            const { servers } = await contract.list({});
            expect(servers.map(({ id: each, kind: its }) => [each, its])).to.equal([[id, kind]]);
            const given = await contract.provision({ serverId: id, database: 'site', level: 'owner' });
            await instance.sql('create table pages (n int)', 'site', given);
            await expect(contract.provision({ serverId: id, database: 'site', level: 'read' })).to.reject();
            expect(await contract.clone({ serverId: id, database: 'site', name: 'staging' })).to.equal({
                cloned: true
            });
            expect(await instance.sql('select n from pages', 'staging')).to.equal([]);
            await expect(contract.clone({ serverId: id, database: 'site', name: 'a/b' })).to.reject();
            const reader = await contract.provision({
                serverId: id,
                database: 'site',
                level: 'read',
                existing: true
            });
            await expect(instance.sql('insert into pages values (1)', 'site', reader)).to.reject();
            await expect(
                panel
                    .contract<DatabaseContract>('operator')
                    .provision({ serverId: id, database: 'no', level: 'read' })
            ).to.reject();
            expect(await contract.drop({ serverId: id, database: 'site', account: given.account })).to.equal({
                dropped: true
            });
            expect(await contract.drop({ serverId: id, database: 'site', account: reader.account })).to.equal(
                { dropped: false }
            );
            await expect(instance.sql('select 1', undefined, given)).to.reject();
        });

        run('are made by a schedule, and only so many are kept', async () => {
            const dumpsOf = async () =>
                (await panel.ask('GET', '/dumps?limit=500')).data as { database: string }[];
            for (const cron of ['x', '99 * * * *']) {
                const bad = await panel.ask('PUT', server, { dumpSchedule: { cron } });
                expect([cron, bad.code]).to.equal([cron, 40001]);
            }
            expect((await panel.ask('GET', server)).data.dumpSchedule).to.be.null();
            const dumpSchedule = { cron: '0 3 * * *', timezone: 'UTC', keep: 1 };
            expect((await panel.ask('PUT', server, { dumpSchedule })).data.dumpSchedule).to.equal(
                dumpSchedule
            );
            const next = await panel.host.schedules.next(`dumps-${id}`);
            expect(next?.toISOString()).to.match(/T03:00:00/);
            await panel.host.schedules.run(`dumps-${id}`);
            expect((await panel.host.tasks.wait()).state).to.equal('succeeded');
            const made = (await dumpsOf()).map(({ database }) => database);
            expect(made).to.include(odd);
            expect(new Set(made).size).to.equal(made.length);
            await panel.ask('PUT', server, { dumpSchedule: null });
            expect((await panel.ask('GET', server)).data.dumpSchedule).to.be.null();
        });

        run('go into a backup and come back from it beside what is there', async () => {
            const folder = mkdtempSync(join(tmpdir(), 'portico-lent-'));
            const given = await panel.host.hooks.run('backup.list', {});
            const listed = resultOf(given) as { name: string }[];
            const name = `${kind} ${instance.port}:it's "odd"; host=x`;
            expect(listed.map((each) => each.name)).to.include(name);
            const collected = await panel.host.hooks.run('backup.collect', { folder, only: [name] });
            const items = resultOf(collected) as { name: string; title: string; path: string }[];
            expect(items.map((each) => each.name)).to.equal([name]);
            expect(statSync(join(items[0]?.path ?? '', 'database.dump')).size).to.be.above(100);
            const back = await panel.host.hooks.run('backup.restore', { folder, version: '1.0.0', items });
            const [outcome] = resultOf(back) as { ok: boolean; message: string }[];
            const restored = `${odd}_restored1`;
            expect(outcome).to.include({
                ok: true,
                message: `Restored as ${restored}, without accounts, because ${odd} is there`
            });
            const rows = 'select id, text, raw from notes order by id';
            expect(await instance.sql(rows, restored)).to.equal(await instance.sql(rows, odd));
            const strange = [{ name: 'gone:x', title: 'x', path: items[0]?.path ?? '' }];
            const refused = await panel.host.hooks.run('backup.restore', {
                folder,
                version: '1.0.0',
                items: strange
            });
            expect((resultOf(refused) as { ok: boolean }[])[0]?.ok).to.be.false();
            expect(panel.host.hooks.failures).to.equal([]);
            rmSync(folder, { recursive: true });
        });

        run(
            'come back from a backup with the accounts that may use them, and with their passwords',
            async () => {
                const folder = mkdtempSync(join(tmpdir(), 'portico-lent-'));
                await panel.ask('POST', `${server}/databases`, { name: 'shop' });
                const login = async (username: string) => {
                    const grants = [{ database: 'shop', level: 'write' }];
                    const made = await panel.ask('POST', `${server}/users`, { username, grants });
                    expect(made.code, made.text).to.equal(0);
                    return {
                        name: made.data.user as string,
                        username,
                        password: made.data.password as string
                    };
                };
                const [stays, goes] = [await login('stays'), await login('goes')];
                const only = [`${kind} ${instance.port}:shop`];
                const collected = await panel.host.hooks.run('backup.collect', { folder, only });
                const items = resultOf(collected) as { name: string; title: string; path: string }[];
                expect((await panel.ask('DELETE', `${server}/databases/shop?confirm=shop`)).code).to.equal(0);
                const gone = encodeURIComponent(goes.name);
                expect((await panel.ask('DELETE', `${server}/users/${gone}`)).code).to.equal(0);
                const bring = async () => {
                    const back = await panel.host.hooks.run('backup.restore', {
                        folder,
                        version: '1.0.0',
                        items
                    });
                    return (resultOf(back) as { ok: boolean; message: string }[])[0];
                };
                expect(await bring()).to.include({ ok: true, message: 'Restored as shop' });
                for (const { username, password } of [stays, goes]) {
                    expect(await instance.sql('select 1 as one', 'shop', { username, password })).to.equal([
                        { one: 1 }
                    ]);
                }
                // What a backup says of accounts is no way to the account of the server, to another password or into a statement.
                const own = { username: instance.username, host: isMysql ? '%' : null };
                const strange = { username: `x'; drop`, host: isMysql ? '%' : null };
                const accounts = [
                    { ...own, level: 'read', verifier: null },
                    { ...strange, level: 'owner', verifier: `*${'0'.repeat(39)}'` }
                ];
                writeFileSync(join(items[0]?.path ?? '', 'accounts.json'), JSON.stringify(accounts));
                await panel.ask('DELETE', `${server}/databases/shop?confirm=shop`);
                expect((await bring())?.message).to.match(
                    /^Restored as shop; make these accounts again: .*x'; drop/
                );
                expect((await panel.ask('DELETE', `${server}/databases/shop?confirm=shop`)).code).to.equal(0);
                rmSync(folder, { recursive: true });
            }
        );

        run('the server goes into an export with its password, and comes back', async () => {
            const [document] = resultOf(
                await panel.host.hooks.run('export.collect', { maxBytes: 1_000_000 })
            ) as { name: string; data: unknown }[];
            const items = [{ name: document?.name ?? '', data: document?.data }];
            await panel.ask('DELETE', server);
            for (const mode of ['merge', 'replace'] as const) {
                const outcome = await panel.host.hooks.run('import.restore', {
                    version: '1.0.0',
                    mode,
                    items
                });
                expect(resultOf(outcome)).to.equal([{ item: 'servers', ok: true }]);
            }
            const { data } = await panel.ask('GET', '/servers');
            expect(data.map((each: { name: string }) => each.name)).to.equal([`${kind} ${instance.port}`]);
            server = `/servers/${data[0].id}`;
            id = data[0].id as number;
            expect((await panel.ask('POST', `${server}/test`)).data.ok).to.be.true();
            const bad = {
                version: '1.0.0',
                mode: 'merge' as const,
                items: [{ name: 'servers', data: { servers: [{ name: 1 }] } }]
            };
            expect((await panel.host.hooks.run('import.restore', bad))[0]?.ok).to.be.false();
        });

        run('show no secret to other programs of the machine, nor in the log', async () => {
            const seen = JSON.stringify(panel.host.log);
            expect(seen).to.not.include(instance.password);
        });
    });
}
