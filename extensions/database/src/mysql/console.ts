/** Statements of users on MySQL and MariaDB, and the sessions that run them. */
import { errors } from '@portico/sdk';

import type { Cell, ConsoleStatements, Session, SessionInfo, SessionStatements } from '../kinds/kind.ts';

/** How statements of users run. */
export const consoleStatements: ConsoleStatements = {
    reading: ['SELECT', 'WITH', 'VALUES', 'TABLE', 'SHOW', 'EXPLAIN', 'DESCRIBE'],
    async begin(session, { seconds, readOnly }) {
        await session.run(
            session.flavour === 'mariadb'
                ? `set session max_statement_time = ${Number(seconds)}`
                : `set session max_execution_time = ${Number(seconds) * 1_000}`
        );
        if (readOnly) {
            await session.run('start transaction read only');
        }
    },
    explain: (sql, analyze, flavour) =>
        analyze
            ? flavour === 'mariadb'
                ? `analyze format=json ${sql}`
                : `explain analyze ${sql}`
            : `explain format=json ${sql}`,
    planOf(cells) {
        const text = cells.map(([first]) => String(first)).join('\n');
        return { plan: planOf(text), text };
    }
};

/** Sessions of a server. */
export const sessions: SessionStatements = {
    async list(session) {
        const rows = (await session.all(
            `select id as id, user as user, db as db, command as command, state as state, time as seconds, info as sql_text
             from information_schema.processlist order by id`
        )) as {
            id: number;
            user: string;
            db: string | null;
            command: string;
            state: string | null;
            seconds: number;
            sql_text: string | null;
        }[];
        return rows
            .filter(({ id }) => String(id) !== session.id)
            .map(({ id, user, db, command, state, seconds, sql_text: sql }): SessionInfo => ({
                id: String(id),
                user,
                database: db,
                state: state === null || state === '' ? command.toLowerCase() : state,
                durationMs: Math.max(0, Number(seconds) * 1_000),
                sql
            }));
    },
    end: endSession
};

async function endSession(session: Session, id: string, mode: 'cancel' | 'end'): Promise<void> {
    const unknown = errors.notFound('There is no such session');
    if (!/^\d{1,19}$/.test(id)) {
        throw unknown;
    }
    const found = await session.all('select 1 from information_schema.processlist where id = ?', [id]);
    if (found.length === 0) {
        throw unknown;
    }
    await session.run(mode === 'cancel' ? `kill query ${id}` : `kill ${id}`);
}

function planOf(text: string): Cell {
    try {
        return JSON.parse(text) as Cell;
    } catch {
        return text;
    }
}
