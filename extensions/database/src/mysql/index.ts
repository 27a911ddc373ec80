/** MySQL and MariaDB. */
import type { Kind } from '../kinds/kind.ts';
import { accounts } from './accounts.ts';
import { consoleStatements, sessions } from './console.ts';
import { databases } from './databases.ts';
import { isDenied } from './failures.ts';
import { load } from './load.ts';
import { quote } from './names.ts';
import { swap } from './replacement/swap.ts';
import { connect } from './session.ts';
import { structure } from './structure.ts';

/** The kind `mysql`: MySQL and MariaDB. */
export const mysql: Kind = {
    name: 'mysql',
    defaultPort: 3306,
    connect,
    quote,
    placeholder: () => '?',
    isDenied,
    databases,
    swap,
    accounts,
    structure,
    sessions,
    load,
    console: consoleStatements,
    extensions: null,
    guide({ address: { host, port, socket, tls }, database, username }) {
        const [name] = username.split('@');
        const user = encodeURIComponent(name ?? '');
        const place = socket === null ? `${bracketed(host ?? 'localhost')}:${port}` : 'localhost';
        const query =
            socket === null
                ? tls === 'disable'
                    ? ''
                    : '?ssl-mode=REQUIRED'
                : `?socket=${encodeURIComponent(socket)}`;
        return {
            uri: `mysql://${user}@${place}/${encodeURIComponent(database)}${query}`,
            cli: [
                'mariadb',
                ...(socket === null
                    ? [`--host=${host ?? 'localhost'}`, `--port=${port}`]
                    : [`--socket=${socket}`]),
                `--user=${name ?? ''}`,
                '--password',
                `--database=${database}`
            ],
            env: {
                ...(socket === null
                    ? { MYSQL_HOST: host ?? 'localhost', MYSQL_TCP_PORT: String(port) }
                    : { MYSQL_UNIX_PORT: socket })
            }
        };
    }
};

function bracketed(host: string): string {
    return host.includes(':') ? `[${host}]` : host;
}
