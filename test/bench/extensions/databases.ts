/** Dumps, clones, rows and the console of the extension database against the bare client programs and drivers, on servers of its own. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { type Answer, type EndedTask, Harness } from '../../extensions/database/harness.ts';
import {
    type Instance,
    noMariadb,
    noPostgresql,
    startMariadb,
    startPostgresql
} from '../../extensions/database/instances.ts';
import { number, type Report } from '../report.ts';

const run = promisify(execFile);
const shopMegabytes = 200;
const shopRows = shopMegabytes * 1_000;
const fileRows = 100_000;
const consoleRows = 10_000;
const rounds = 3;
/** Each database of PostgreSQL takes 7 MB. */
const listed = { mysql: 1_000, postgresql: 50 } as const;

/** One server, the plugin that knows it, and a folder for files of the bare programs. */
interface Rig {
    readonly instance: Instance;
    readonly panel: Harness;
    readonly server: string;
    readonly folder: string;
}

export async function bench(report: Report): Promise<void> {
    const kinds = [
        { lacks: noMariadb, start: startMariadb },
        { lacks: noPostgresql, start: startPostgresql }
    ];
    for (const { lacks, start } of kinds) {
        if (lacks !== undefined) {
            console.log(`      (skipped: ${lacks})`);
            continue;
        }
        const folder = mkdtempSync(join(tmpdir(), 'portico-bench-databases-'));
        // The server writes its log there with an account of its own.
        chmodSync(folder, 0o777);
        const log = join(folder, 'statements.log');
        const instance = await start(logOptions(start === startMariadb, folder, log));
        const panel = await Harness.start();
        try {
            const rig = { instance, panel, server: await panel.register(instance), folder };
            await fill(rig);
            await measureConsole(report, rig);
            await measureBigResult(report, rig);
            await measureFiles(report, rig);
            await measureDumps(report, rig);
            await measureClones(report, rig);
            await measureList(report, rig, log);
        } finally {
            await panel.close();
            await instance.close();
            rmSync(folder, { recursive: true, force: true });
        }
    }
}

/** A server that writes down statements once it is asked to. */
function logOptions(isMariadb: boolean, folder: string, log: string): readonly string[] {
    return isMariadb
        ? [
              ...[`--general-log-file=${log}`, '--local-infile=1'],
              ...['--innodb-flush-method=fsync', '--innodb-log-file-size=96M']
          ]
        : [
              'logging_collector=on',
              `log_directory=${folder}`,
              'log_filename=statements.log',
              'log_file_mode=0644'
          ].flatMap((option) => ['-c', option]);
}

/** Rows of about a kilobyte, and rows for files. */
async function fill({ instance, panel, server }: Rig): Promise<void> {
    for (const name of ['shop', 'files']) {
        await ok(panel.ask('POST', `${server}/databases`, { name }));
    }
    const numbers = (count: number): string =>
        instance.kind === 'mysql'
            ? `(select seq as n from seq_1_to_${count}) s`
            : `generate_series(1, ${count}) n`;
    const text = `concat(${Array.from({ length: 28 }, (_, at) => `md5(concat(n, '-', ${at}))`).join(', ')})`;
    await instance.sql(
        `create table people (id int primary key, email varchar(80) not null unique, name varchar(40) not null, note text);
         insert into people select n, concat('p', n, '@example.net'), concat('Person ', n), ${text} from ${numbers(shopRows)};`,
        'shop'
    );
    await instance.sql(
        `create table items (id int primary key, name varchar(40) not null, amount int not null);
         insert into items select n, concat('Line ', n), n * 7 from ${numbers(fileRows)};
         create table target (id int primary key, name varchar(40) not null, amount int not null);`,
        'files'
    );
}

async function measureConsole(report: Report, { instance, panel, server }: Rig): Promise<void> {
    const sql = `select id, name, amount from items order by id limit ${consoleRows}`;
    const panelMs = await fastest(() =>
        ok(panel.ask('POST', `${server}/query`, { database: 'files', sql, maxRows: consoleRows }))
    );
    const driverMs = await fastest(() => instance.sql(sql, 'files'));
    compare(
        report,
        { target: 'sq1', what: `${instance.kind}: ${consoleRows} rows in the console ÷ driver` },
        [panelMs, driverMs, 1.8]
    );
}

async function measureBigResult(report: Report, { instance, panel, server }: Rig): Promise<void> {
    const sql = `select repeat('x', 100000) from ${instance.kind === 'mysql' ? 'seq_1_to_10000' : 'generate_series(1, 10000)'}`;
    const before = process.memoryUsage.rss();
    let most = before;
    const timer = setInterval(() => {
        most = Math.max(most, process.memoryUsage.rss());
    }, 5);
    try {
        await ok(panel.ask('POST', `${server}/query`, { database: 'files', sql, maxRows: consoleRows }));
    } finally {
        clearInterval(timer);
    }
    report.add({
        target: 'sq2',
        what: `${instance.kind}: memory for a result of 1 GB in the console`,
        value: (Math.max(most, process.memoryUsage.rss()) - before) / 2 ** 20,
        unit: 'MiB',
        most: [64, 48]
    });
}

async function measureFiles(report: Report, rig: Rig): Promise<void> {
    const { instance, panel, server, folder } = rig;
    const base = `${server}/databases/files`;
    const exported = await panel.ask('GET', `${base}/export?table=items&format=csv`);
    const file = join(folder, 'lines.csv');
    writeFileSync(file, exported.text);
    const isMysql = instance.kind === 'mysql';
    const load = isMysql
        ? `load data local infile '${file}' into table target fields terminated by ',' optionally enclosed by '"' ignore 1 lines`
        : `\\copy target from '${file}' with (format csv, header)`;
    const empty = (): Promise<unknown> => instance.sql('truncate table target', 'files');
    const imported = await fastest(async () => {
        succeeded(
            await panel.task(await panel.upload(`${base}/import?table=target&format=csv`, exported.text))
        );
    }, empty);
    const loaded = await fastest(() => shell(rig, client(rig, 'files', load)), empty);
    compare(
        report,
        {
            target: 'sq3',
            what: `${instance.kind}: CSV of ${fileRows} rows in ÷ ${isMysql ? 'LOAD DATA' : 'COPY'}`
        },
        [imported, loaded, 2.5]
    );
    if (!isMysql) {
        const out = await fastest(() => ok(panel.ask('GET', `${base}/export?table=items&format=csv`)));
        const copied = await fastest(() =>
            shell(rig, client(rig, 'files', `\\copy items to '${file}' with (format csv, header)`))
        );
        compare(report, { target: 'sq4', what: `postgresql: CSV of ${fileRows} rows out ÷ COPY` }, [
            out,
            copied,
            2.5
        ]);
    }
}

async function measureDumps(report: Report, rig: Rig): Promise<void> {
    const { instance, panel, server, folder } = rig;
    const isMysql = instance.kind === 'mysql';
    const serverId = Number(server.split('/').at(-1));
    const file = join(folder, 'shop.dump');
    const began = performance.now();
    const dumped = succeeded(
        await panel.task(
            await panel.ask('POST', '/dumps', { serverId, databases: ['shop'], format: 'native' })
        )
    );
    const dumpMs = performance.now() - began;
    const bareDumpMs = await timed(() =>
        shell(
            rig,
            isMysql
                ? `mariadb-dump --defaults-file="$LOGIN" --single-transaction --quick shop | gzip > '${file}'`
                : `pg_dump -Fc -f '${file}' shop`
        )
    );
    compare(report, { target: 'sq5', what: `${instance.kind}: dump of ${shopMegabytes} MB ÷ bare client` }, [
        dumpMs,
        bareDumpMs,
        1.2
    ]);
    const [id] = dumped.result.dumpIds as number[];
    const restoreMs = await timed(async () => {
        succeeded(
            await panel.task(await panel.ask('POST', `/dumps/${id}/restore`, { serverId, database: 'back' }))
        );
    });
    await ok(panel.ask('DELETE', `${server}/databases/back?confirm=back`));
    await ok(panel.ask('POST', `${server}/databases`, { name: 'bare' }));
    const bareRestoreMs = await timed(() =>
        shell(
            rig,
            isMysql
                ? `gzip -dc '${file}' | mariadb --defaults-file="$LOGIN" bare`
                : `pg_restore --no-owner -d bare '${file}'`
        )
    );
    await ok(panel.ask('DELETE', `${server}/databases/bare?confirm=bare`));
    compare(
        report,
        { target: 'sq6', what: `${instance.kind}: restore of ${shopMegabytes} MB ÷ bare client` },
        [restoreMs, bareRestoreMs, 1.2]
    );
}

async function measureClones(report: Report, { instance, panel, server }: Rig): Promise<void> {
    const clone = async (name: string, more: object): Promise<number> => {
        const ms = await timed(async () => {
            succeeded(
                await panel.task(await panel.ask('POST', `${server}/databases/shop/clone`, { name, ...more }))
            );
        });
        await ok(panel.ask('DELETE', `${server}/databases/${name}?confirm=${name}`));
        return ms;
    };
    const plain = await clone('plain', {});
    const masked = await clone('masked', {
        mask: [
            { table: 'people', column: 'email', rule: 'email' },
            { table: 'people', column: 'name', rule: 'name' }
        ]
    });
    compare(
        report,
        { target: 'sq7', what: `${instance.kind}: masked clone of ${shopMegabytes} MB ÷ plain` },
        [masked, plain, 3]
    );
}

/** Counts what the server itself wrote down. */
async function measureList(report: Report, { instance, panel, server }: Rig, log: string): Promise<void> {
    const isMysql = instance.kind === 'mysql';
    const count = listed[instance.kind];
    for (let at = 0; at < count; at += 1) {
        await instance.sql(`create database many_${at}`);
    }
    await instance.sql(isMysql ? 'set global general_log = 1' : "alter system set log_statement = 'all'");
    if (!isMysql) {
        await instance.sql('select pg_reload_conf()');
    }
    const wanted = isMysql ? /\d (Query|Execute)\t/g : /LOG: {2}(statement|execute [^:]+): /g;
    const statements = (): number => readFileSync(log, 'latin1').match(wanted)?.length ?? 0;
    await instance.sql('select 1');
    const before = statements();
    if (before === 0) {
        throw new Error('The server did not write down its statements');
    }
    let found = 0;
    for (let path: string | undefined = `${server}/databases?limit=500`; path !== undefined;) {
        const page: Answer = await ok(panel.ask('GET', path));
        found += (page.data as unknown[]).length;
        const cursor: string | undefined = /[?&](cursor=[^&>]+)[^>]*>; rel="next"/.exec(
            page.headers.get('link') ?? ''
        )?.[1];
        path = cursor === undefined ? undefined : `${server}/databases?limit=500&${cursor}`;
    }
    report.add({
        target: 'sq8',
        what: `${instance.kind}: statements for all pages of ${count} databases`,
        value: found < count ? NaN : statements() - before,
        unit: '',
        most: [3, 2],
        of: `${found} were listed`
    });
}

/** The client program with one command. */
function client({ instance, folder }: Rig, database: string, command: string): string {
    const file = join(folder, 'command.sql');
    writeFileSync(file, `${command}\n`);
    return instance.kind === 'mysql'
        ? `mariadb --defaults-file="$LOGIN" --local-infile=1 ${database} < '${file}'`
        : `psql -q -v ON_ERROR_STOP=1 -d ${database} -f '${file}'`;
}

async function shell({ instance, folder }: Rig, line: string): Promise<void> {
    const { port, username, password } = instance;
    const login = join(folder, 'login.cnf');
    writeFileSync(login, `[client]\nhost=127.0.0.1\nport=${port}\nuser=${username}\npassword=${password}\n`);
    await run('bash', ['-ec', `set -o pipefail; ${line}`], {
        env: {
            ...process.env,
            LOGIN: login,
            PGHOST: '127.0.0.1',
            PGPORT: String(port),
            PGUSER: username,
            PGPASSWORD: password
        }
    });
}

function compare(
    report: Report,
    figure: { readonly target: string; readonly what: string },
    [mine, bare, floor]: readonly [mine: number, bare: number, floor: number]
): void {
    report.add({
        ...figure,
        value: mine / bare,
        most: [floor, 1 + (floor - 1) / 2],
        of: `${number(mine)} ms ÷ ${number(bare)} ms`
    });
}

async function ok<A extends { readonly status: number; readonly text: string }>(
    asked: Promise<A>
): Promise<A> {
    const answer = await asked;
    if (answer.status >= 300) {
        throw new Error(`${answer.status} ${answer.text.slice(0, 500)}`);
    }
    return answer;
}

function succeeded(task: EndedTask): EndedTask {
    if (task.state !== 'succeeded') {
        throw new Error(`The task ${task.state}: ${task.error?.message}`);
    }
    return task;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
    const began = performance.now();
    await work();
    return performance.now() - began;
}

async function fastest(work: () => Promise<unknown>, prepare?: () => Promise<unknown>): Promise<number> {
    let best = Infinity;
    for (let round = 0; round < rounds; round += 1) {
        await prepare?.();
        best = Math.min(best, await timed(work));
    }
    return best;
}
