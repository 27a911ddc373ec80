/** Statements of users on PostgreSQL, and the sessions that run them. */
import { errors } from '@portico/sdk';

import type { Cell, ConsoleStatements, Session, SessionInfo, SessionStatements } from '../../kinds/kind.ts';
import { quote } from '../accounts/names.ts';

/** How often a server of release 14 and newer looks whether the client of a statement is still there. */
const lookSeconds = 2;

/** How statements of users run. */
export const consoleStatements: ConsoleStatements = {
    reading: ['SELECT', 'WITH', 'VALUES', 'TABLE', 'SHOW', 'EXPLAIN'],
    async begin(session, { seconds, readOnly }) {
        // Otherwise the server notices that a client is gone, such as a panel that was killed, when it next writes to it.
        const looks = Number.parseInt(session.serverVersion, 10) >= 14;
        await session.run(
            `set statement_timeout = ${Number(seconds) * 1_000}${looks ? `; set client_connection_check_interval = '${lookSeconds}s'` : ''}`
        );
        if (readOnly) {
            await session.run('begin read only');
            return;
        }
        // What the panel makes belongs to the owner of the database, not to the panel's own account.
        const [owner] = await session.all(
            `select r.rolname as name from pg_database d join pg_roles r on r.oid = d.datdba
             where d.datname = current_database() and not r.rolsuper and pg_has_role(r.oid, 'member')`
        );
        if (owner !== undefined) {
            await session.run(`set role ${quote(String(owner['name']))}`);
        }
    },
    explain: (sql, analyze) => `explain (format json${analyze ? ', analyze, buffers' : ''}) ${sql}`,
    planOf(cells) {
        const text = cells.map(([first]) => String(first)).join('\n');
        const plan = JSON.parse(text) as Cell;
        return { plan, text: JSON.stringify(plan, null, 2) };
    }
};

/** Sessions of a server. */
export const sessions: SessionStatements = {
    async list(session) {
        const rows = (await session.all(
            `select pid as id, usename as "user", datname as database, state, query as sql,
                    (extract(epoch from clock_timestamp() - coalesce(case when state = 'active' then query_start end, state_change)) * 1000)::float8 as duration
             from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() order by pid`
        )) as {
            id: number;
            user: string | null;
            database: string | null;
            state: string | null;
            sql: string | null;
            duration: number | null;
        }[];
        return rows.map(({ id, duration, ...row }): SessionInfo => ({
            ...row,
            id: String(id),
            durationMs: duration === null ? null : Math.max(0, Math.round(duration))
        }));
    },
    end: endSession
};

async function endSession(session: Session, id: string, mode: 'cancel' | 'end'): Promise<void> {
    const act = mode === 'cancel' ? 'pg_cancel_backend' : 'pg_terminate_backend';
    const rows = /^\d{1,9}$/.test(id)
        ? await session.all(
              `select ${act}(pid) from pg_stat_activity where pid = $1 and backend_type = 'client backend'`,
              [Number(id)]
          )
        : [];
    if (rows.length === 0) {
        throw errors.notFound('There is no such session');
    }
}
