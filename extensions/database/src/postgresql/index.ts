/** PostgreSQL. */
import type { Kind } from '../kinds/kind.ts';
import { accounts } from './accounts/accounts.ts';
import { quote } from './accounts/names.ts';
import { consoleStatements, sessions } from './console/console.ts';
import { load } from './console/load.ts';
import { databases, swap } from './databases.ts';
import { isDenied } from './failures.ts';
import { connect } from './session.ts';
import { structure } from './structure.ts';

/** The kind `postgresql`: PostgreSQL and its dialect. */
export const postgresql: Kind = {
    name: 'postgresql',
    defaultPort: 5432,
    connect,
    quote,
    placeholder: (number) => `$${number}`,
    isDenied,
    databases,
    swap,
    accounts,
    structure,
    sessions,
    load,
    console: consoleStatements,
    extensions: {
        async list(session) {
            const rows = await session.all(
                'select name, installed_version as installed, default_version as available from pg_available_extensions order by name'
            );
            return rows as readonly unknown[] as readonly {
                name: string;
                installed: string | null;
                available: string;
            }[]; // the columns of the statement
        },
        async install(session, name) {
            await session.run(`create extension if not exists ${quote(name)}`);
        }
    },
    guide({ address: { host, port, socket, tls }, database, username }) {
        const place = socket ?? host ?? 'localhost';
        const mode = { disable: 'disable', require: 'require', verify: 'verify-full' }[tls];
        const query = socket === null ? `?sslmode=${mode}` : `?host=${encodeURIComponent(socket)}`;
        const at = socket === null ? `${place.includes(':') ? `[${place}]` : place}:${port}` : '';
        return {
            uri: `postgresql://${encodeURIComponent(username)}@${at}/${encodeURIComponent(database)}${query}`,
            cli: [
                'psql',
                `--host=${place}`,
                `--port=${port}`,
                `--username=${username}`,
                `--dbname=${database}`
            ],
            env: {
                PGHOST: place,
                PGPORT: String(port),
                PGUSER: username,
                PGDATABASE: database,
                ...(socket === null ? { PGSSLMODE: mode } : {})
            }
        };
    }
};
