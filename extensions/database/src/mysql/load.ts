/** How busy servers of MySQL and MariaDB are. */
import { errors } from '@portico/sdk';

import { type LoadStatements, mostSlow, type Session, type SlowStatement } from '../kinds/kind.ts';

const counters = {
    Threads_connected: 'connections',
    Questions: 'worked',
    Innodb_buffer_pool_read_requests: 'requests',
    Innodb_buffer_pool_reads: 'misses'
} as const;

/** How busy a server is. */
export const load: LoadStatements = {
    async measure(session) {
        const found = await variables(session, 'status', Object.keys(counters));
        const value = (name: keyof typeof counters): number => Number(found.get(name) ?? 0);
        const requests = value('Innodb_buffer_pool_read_requests');
        return {
            connections: value('Threads_connected'),
            worked: value('Questions'),
            cached: Math.max(0, requests - value('Innodb_buffer_pool_reads')),
            read: requests
        };
    },
    async slow(session) {
        const found = await variables(session, 'variables', [
            'performance_schema',
            'slow_query_log',
            'log_output'
        ]);
        if (found.get('performance_schema') === 'ON') {
            return select(
                session,
                `select digest_text as text, count_star as calls, sum_timer_wait / 1000000000 as ms, sum_rows_sent as number
                 from performance_schema.events_statements_summary_by_digest where digest_text is not null order by sum_timer_wait desc limit ${mostSlow}`
            );
        }
        if (found.get('slow_query_log') === 'ON' && /TABLE/.test(found.get('log_output') ?? '')) {
            return select(
                session,
                `select convert(sql_text using utf8mb4) as text, count(*) as calls,
                        sum(time_to_sec(query_time) * 1000 + microsecond(query_time) / 1000) as ms, sum(rows_sent) as number
                 from mysql.slow_log group by sql_text order by ms desc limit ${mostSlow}`
            );
        }
        throw errors.toolMissing(
            'the slow log',
            "set global log_output = 'TABLE', global slow_query_log = on"
        );
    }
};

async function select(session: Session, sql: string): Promise<readonly SlowStatement[]> {
    return (await session.all(sql)).map(({ text, calls, ms, number }) => ({
        sql: String(text),
        calls: Number(calls),
        totalMs: Number(ms),
        rows: Number(number)
    }));
}

async function variables(
    session: Session,
    what: 'status' | 'variables',
    names: readonly string[]
): Promise<ReadonlyMap<string, string>> {
    const list = names.map((name) => `'${name}'`).join(', ');
    const rows = await session.all(`show global ${what} where variable_name in (${list})`);
    return new Map(rows.map((row) => [String(row['Variable_name']), String(row['Value'])]));
}
