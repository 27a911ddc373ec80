/** Images of servers for a private engine: the programs of this machine, behind entry points that take what those of the official images take. */
import { execFileSync } from 'node:child_process';
import {
    chmodSync,
    chownSync,
    copyFileSync,
    cpSync,
    globSync,
    mkdirSync,
    mkdtempSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import type { TestEngine } from '../container/engines.ts';

/** The number of the account in the images. */
const account = 999;
/** A release that spoils the data, and ends. */
export const badRelease = '11.8';

const applets = ['sh', 'cat', 'cp', 'chmod', 'mkdir', 'test', 'echo', 'ls'];
/** What is there of the official entry point of MariaDB: the password of root, the files of SQL, and that a new release is told of old data. */
const mariadbEntry = `#!/bin/sh
set -e
data=/var/lib/mysql
[ "$RELEASE" != ${badRelease} ] || { echo spoilt > $data/spoilt; echo "cannot read these data"; exit 3; }
if [ ! -d $data/mysql ]; then
    cp -r /skeleton/. $data/
    { echo "flush privileges;"; echo "create user root@$MARIADB_ROOT_HOST identified by '$(cat $MARIADB_ROOT_PASSWORD_FILE)';"; cat /docker-entrypoint-initdb.d/*.sql; } |
        mariadbd --no-defaults --bootstrap --datadir=$data
fi
[ "$MARIADB_AUTO_UPGRADE" = 1 ] && echo "$RELEASE" > $data/upgraded
program=$1
shift
exec $program --defaults-file=/etc/mysql/my.cnf --version=$RELEASE.1-MariaDB --socket=/tmp/mysqld.sock "$@"
`;
/** The same of PostgreSQL: the first account, and the options of its data folder. */
const postgresEntry = `#!/bin/sh
set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    mkdir -p "$PGDATA"
    initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" $POSTGRES_INITDB_ARGS
fi
exec "$@"
`;

/** Puts MariaDB into an engine, as images of these releases. The programs are those of this machine; only what they call themselves differs. */
export async function importMariadb(engine: TestEngine, releases: readonly string[]): Promise<void> {
    const tar = pack((root) => {
        addPrograms(root, ['/usr/sbin/mariadbd']);
        for (const folder of ['english', 'charsets']) {
            cpSync(join('/usr/share/mysql', folder), join(root, 'usr/share/mysql', folder), {
                recursive: true
            });
        }
        execFileSync(
            'mariadb-install-db',
            [
                ...['--no-defaults', `--datadir=${join(root, 'skeleton')}`, '--skip-test-db'],
                ...['--auth-root-authentication-method=normal', '--skip-name-resolve'],
                '--innodb-log-file-size=4M'
            ],
            { stdio: 'ignore' }
        );
        // The image makes its accounts itself.
        execFileSync(
            'mariadbd',
            ['--no-defaults', '--user=root', '--bootstrap', `--datadir=${join(root, 'skeleton')}`],
            {
                input: "delete from mysql.global_priv where user != 'mariadb.sys';\ndelete from mysql.proxies_priv;\n",
                stdio: ['pipe', 'ignore', 'ignore']
            }
        );
        makeFile(root, 'etc/mysql/my.cnf', '[mariadbd]\n!includedir /etc/mysql/conf.d/\n');
        makeFile(root, 'etc/passwd', `mysql:x:${account}:${account}::/:/bin/sh\n`);
        makeFile(root, 'entry.sh', mariadbEntry, 0o755);
        own(root, 'var/lib/mysql');
        execFileSync('chown', ['-R', `${account}:${account}`, join(root, 'skeleton')]);
    });
    for (const release of releases) {
        await importTar(engine, `mariadb:${release}`, tar, [`ENV RELEASE=${release}`]);
    }
}

/** Puts PostgreSQL of this machine into an engine, as images of these releases. */
export async function importPostgresql(engine: TestEngine, releases: readonly string[]): Promise<void> {
    const [folder = ''] = globSync('/usr/lib/postgresql/15');
    const tar = pack((root) => {
        const programs = ['postgres', 'initdb'].map((name) => join(folder, 'bin', name));
        addPrograms(root, programs);
        for (const path of [
            ...['/usr/share/postgresql/15', join(folder, 'lib')],
            ...['/usr/share/zoneinfo/Etc', '/usr/share/zoneinfo/UTC', '/usr/lib/locale/C.utf8']
        ]) {
            cpSync(path, join(root, path), {
                recursive: true,
                dereference: true,
                // Code that is compiled while a statement runs takes as much room as all the rest.
                filter: (each) => !/bitcode|llvmjit/.test(each)
            });
        }
        makeFile(root, 'etc/passwd', `postgres:x:${account}:${account}::/:/bin/sh\n`);
        makeFile(root, 'entry.sh', postgresEntry, 0o755);
        own(root, 'var/lib/postgresql');
        own(root, 'var/run/postgresql');
    });
    for (const release of releases) {
        await importTar(engine, `postgres:${release}`, tar, [`ENV PATH=/bin:${join(folder, 'bin')}`]);
    }
}

async function importTar(
    engine: TestEngine,
    name: string,
    tar: Buffer,
    more: readonly string[]
): Promise<void> {
    const [repo = '', tag = ''] = name.split(':');
    const changes = [`USER ${account}`, 'ENTRYPOINT ["/entry.sh"]', ...more]
        .map((line) => `&changes=${encodeURIComponent(line)}`)
        .join('');
    const { status, data } = await engine.ask(
        'POST',
        `/images/create?fromSrc=-&repo=${repo}&tag=${tag}${changes}`,
        tar
    );
    if (status !== 200) {
        throw new Error(`${status} ${JSON.stringify(data)}`);
    }
}

/** A root file system with a shell and what `fill` adds, as a tar archive. */
function pack(fill: (root: string) => void): Buffer {
    const root = mkdtempSync(join(tmpdir(), 'pdi-'));
    try {
        const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim();
        addPrograms(root, [busybox]);
        mkdirSync(join(root, 'bin'), { recursive: true });
        applets.forEach((applet) => symlinkSync(busybox, join(root, 'bin', applet)));
        mkdirSync(join(root, 'tmp'));
        chmodSync(join(root, 'tmp'), 0o1777);
        fill(root);
        return execFileSync('tar', ['-C', root, '-cf', '-', '.'], { maxBuffer: 2 ** 30 });
    } finally {
        rmSync(root, { recursive: true, force: true });
    }
}

/** Programs with their libraries. */
function addPrograms(root: string, paths: readonly string[]): void {
    for (const path of paths) {
        const libraries = execFileSync('sh', ['-c', 'ldd "$0" 2>/dev/null || true', path], {
            encoding: 'utf8'
        });
        for (const file of [path, ...[...libraries.matchAll(/\/\S+\.so\S*/g)].map(([library]) => library)]) {
            mkdirSync(join(root, dirname(file)), { recursive: true });
            copyFileSync(file, join(root, file));
        }
    }
}

function makeFile(root: string, path: string, text: string, mode = 0o644): void {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    chmodSync(join(root, path), mode);
}

/** A folder of the account. */
function own(root: string, path: string): void {
    mkdirSync(join(root, path), { recursive: true });
    chownSync(join(root, path), account, account);
}
