/** The official images of servers: what each is told, and where it keeps its data. */
import type { KindName } from '../../kinds/kind.ts';
import type { OptionValue } from '../engine.ts';
import { mariadbConfiguration } from '../kinds/mariadb.ts';
import { containerConfiguration } from '../kinds/postgres.ts';
import { ownUsername } from '../rows.ts';

/** Where images read the password of their first account. */
const passwordFile = '/run/secrets/password';

/** How an image is run. */
export interface ImageRun {
    readonly command: readonly string[];
    readonly environment: Readonly<Record<string, string>>;
    /** Files of its configuration, by path. */
    readonly files: Readonly<Record<string, string>>;
    /** Files with the password, by path. */
    readonly secrets: Readonly<Record<string, string>>;
}

/** The image of a kind of server. */
export interface ServerImage {
    readonly name: string;
    /** Releases that are offered, newest first; each other one can be named. */
    readonly releases: readonly string[];
    readonly port: number;
    /** Where the volume of its data is. */
    readonly folder: string;
    /** Whether the server itself takes data of one release to another one. */
    readsData(of: string, release: string): boolean;
    run(options: Readonly<Record<string, OptionValue>>, password: string): ImageRun;
}

/** The images of both kinds. */
export const images: Readonly<Record<KindName, ServerImage>> = {
    mysql: {
        name: 'mariadb',
        releases: ['11.8', '11.4', '10.11'],
        port: 3306,
        folder: '/var/lib/mysql',
        readsData: () => true,
        run: (options, password) => ({
            command: ['mariadbd', '--skip-log-bin', '--skip-name-resolve', '--log-output=TABLE'],
            environment: {
                MARIADB_ROOT_PASSWORD_FILE: passwordFile,
                MARIADB_ROOT_HOST: 'localhost',
                MARIADB_AUTO_UPGRADE: '1'
            },
            files: { '/etc/mysql/conf.d/portico.cnf': mariadbConfiguration(options) },
            secrets: {
                [passwordFile]: password,
                // The image runs it once, when it has filled its data folder. Programs of this machine come through the network of the container.
                '/docker-entrypoint-initdb.d/portico.sql': [
                    `create user ${ownUsername}@'%' identified by '${password}';`,
                    `grant all privileges on *.* to ${ownUsername}@'%' with grant option;`,
                    'drop user root@localhost;',
                    ''
                ].join('\n')
            }
        })
    },
    postgresql: {
        name: 'postgres',
        releases: ['18', '17', '16', '15'],
        port: 5432,
        folder: '/var/lib/postgresql',
        readsData: (of, release) => of.split('.')[0] === release.split('.')[0],
        run: (options, password) => ({
            command: [
                'postgres',
                ...['config_file=/etc/portico/postgresql.conf', 'hba_file=/etc/portico/pg_hba.conf'].flatMap(
                    (setting) => ['-c', setting]
                )
            ],
            environment: {
                POSTGRES_USER: ownUsername,
                POSTGRES_PASSWORD_FILE: passwordFile,
                POSTGRES_INITDB_ARGS:
                    '--auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 --data-checksums',
                // Releases differ in their default; only a folder below the volume is kept.
                PGDATA: '/var/lib/postgresql/portico'
            },
            files: {
                '/etc/portico/postgresql.conf': containerConfiguration(options),
                '/etc/portico/pg_hba.conf': 'local all all scram-sha-256\nhost all all all scram-sha-256\n'
            },
            secrets: { [passwordFile]: password }
        })
    }
};
