/** How busy servers of PostgreSQL are. */
import { errors } from '@portico/sdk';

import { type LoadStatements, mostSlow } from '../../kinds/kind.ts';

/** How busy a server is. */
export const load: LoadStatements = {
    async measure(session) {
        const [row] = await session.all(
            `select (select count(*) from pg_stat_activity where backend_type = 'client backend')::float8 as connections,
                    sum(xact_commit + xact_rollback)::float8 as worked, sum(blks_hit)::float8 as cached, sum(blks_hit + blks_read)::float8 as read from pg_stat_database`
        );
        const value = (name: string): number => Number(row?.[name] ?? 0);
        return {
            connections: value('connections'),
            worked: value('worked'),
            cached: value('cached'),
            read: value('read')
        };
    },
    async slow(session) {
        const [{ preloaded } = {}] = await session.all(
            "select current_setting('shared_preload_libraries') ~ 'pg_stat_statements' as preloaded"
        );
        const made = await session.all("select 1 from pg_extension where extname = 'pg_stat_statements'");
        if (preloaded !== true) {
            throw errors.toolMissing(
                'pg_stat_statements',
                "set shared_preload_libraries = 'pg_stat_statements' and restart the server"
            );
        }
        if (made.length === 0) {
            await session.run('create extension pg_stat_statements');
        }
        const rows = await session.all(
            `select query as text, sum(calls)::float8 as calls, sum(total_exec_time)::float8 as ms, sum(rows)::float8 as number
             from pg_stat_statements group by query order by 3 desc limit ${mostSlow}`
        );
        return rows.map(({ text, calls, ms, number }) => ({
            sql: String(text),
            calls: Number(calls),
            totalMs: Number(ms),
            rows: Number(number)
        }));
    }
};
