/** The past of MariaDB: `mariadb-backup` copies, and the binary log has what was changed since. */
import { type Child, errors } from '@portico/sdk';

import { clientFile, hasProgram, toolUser } from '../dumps/clients.ts';
import { tailOf } from '../dumps/streams.ts';
import { fail } from '../errors.ts';
import { kinds } from '../kinds/kinds.ts';
import { binaryLog } from '../managed/kinds/mariadb.ts';
import { startSeconds } from '../managed/states.ts';
import { waitUp } from '../managed/wait-up.ts';
import type { Connections } from '../servers/connections.ts';
import type { Ctx } from '../settings.ts';
import { type Archiver, copyFolder, type Filled, type Past } from './archiver.ts';

const tool = 'mariadb-backup';
const logFile = new RegExp(`^${binaryLog}\\.(\\d{6,})$`);

/** Keeps the past of servers of MariaDB. */
export function createMariadbArchiver(ctx: Ctx, connections: Connections): Archiver {
    return {
        async check() {
            if (!(await hasProgram(tool))) {
                throw errors.toolMissing(tool, `apt-get install ${tool}`);
            }
        },
        async logState(session) {
            const [row] = await session.all('select @@global.log_bin as kept');
            return { isKept: Number(row?.['kept']) === 1, problem: null };
        },
        copy: (folder, server, password, run) =>
            run(tool, ['--defaults-file=client.cnf', '--backup', `--target-dir=${folder}`], {
                privateFiles: { 'client.cnf': clientFile(server, password, null) },
                isLong: true
            }),
        label: {
            file: 'xtrabackup_binlog_info',
            firstLog: (text) => text.split('\t')[0] ?? ''
        },
        numberOf(file) {
            const number = logFile.exec(file)?.[1];
            return number === undefined ? null : Number(number);
        },
        purge: async (session, first) => void (await session.run(`purge binary logs to '${first}'`)),
        async restore(past, filled) {
            const { plan, login, run } = filled;
            await copyFolder(run, past.base, plan.dataFolder);
            await run(tool, ['--no-defaults', '--prepare', `--target-dir=${plan.dataFolder}`], {
                isLong: true
            });
            await run('mariadbd', ['--no-defaults', '--bootstrap', `--datadir=${plan.dataFolder}`], {
                stdin: `flush privileges;\n${passwordStatement(login)}`
            });
            await replay({ ctx, connections }, past, filled);
        }
    };
}

function passwordStatement({ username, password }: Filled['login']): string {
    return `alter user ${username}@localhost identified by '${password}';\n`;
}

/** Runs what the log has up to the time, on a server that only this replay can reach. */
async function replay(
    { ctx, connections }: { readonly ctx: Ctx; readonly connections: Connections },
    past: Past,
    { plan, login, user, signal }: Filled
): Promise<void> {
    const account = user === undefined ? {} : { user };
    const socket = `${plan.runFolder}/replay.sock`;
    const address = { host: null, port: plan.port, socket, tls: 'disable', ca: null } as const;
    await using server = await ctx.spawn(
        'mariadbd',
        [
            '--no-defaults',
            `--datadir=${plan.dataFolder}`,
            `--socket=${socket}`,
            '--skip-networking',
            '--skip-log-bin',
            '--event-scheduler=DISABLED'
        ],
        { ...account, cwd: '/', signal }
    );
    const said = Promise.all([tailOf(server.stderr), tailOf(server.stdout)]);
    let isDown = false;
    const whileUp = server.exited.then(async () => {
        isDown = true;
        throw fail.SERVER_OFFLINE({ message: (await said).join(' ').trim() });
    });
    whileUp.catch(() => undefined);
    await waitUp(() => connections.probe(kinds.mysql, address, login), {
        ...{ seconds: startSeconds, signal },
        hasEnded: async () => isDown && whileUp
    });
    await using reader = await ctx.spawn(
        'mariadb-binlog',
        [
            '--no-defaults',
            `--start-position=${past.label.split('\t')[1] ?? ''}`,
            `--stop-datetime=${past.at.toISOString().slice(0, 19).replace('T', ' ')}`,
            '--',
            ...past.logs
        ],
        { ...account, cwd: '/', env: { TZ: 'UTC' }, signal }
    );
    await using client = await ctx.spawn('mariadb', ['--defaults-file=client.cnf', '--binary-mode'], {
        ...toolUser,
        privateFiles: {
            'client.cnf': clientFile({ ...address, ...login }, login.password, null)
        },
        signal
    });
    await Promise.race([whileUp, pour(reader, client, passwordStatement(login))]);
    await server.kill('SIGTERM');
    await server.exited;
}

/** Gives one program what the other one writes, and a last statement. @throws SQL_FAILED 42250 when either fails */
async function pour(reader: Child, client: Child, last: string): Promise<void> {
    // It reads none, and may have ended already.
    await reader.stdin.close().catch(() => undefined);
    const said = Promise.all([tailOf(reader.stderr), tailOf(client.stderr), tailOf(client.stdout)]);
    const writer = client.stdin.getWriter();
    try {
        for await (const chunk of reader.stdout) {
            await writer.write(chunk);
        }
        await writer.write(Buffer.from(`\n${last}`));
        await writer.close();
    } catch {
        // The client has ended before it read all; its exit code says so.
        await reader.kill();
    }
    const ends = await Promise.all([reader.exited, client.exited]);
    if (ends.some(({ code }) => code !== 0)) {
        throw fail.SQL_FAILED({ sqlState: null, message: (await said).filter(Boolean).join('; ') });
    }
}
