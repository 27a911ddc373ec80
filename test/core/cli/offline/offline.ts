import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
    chownSync,
    closeSync,
    existsSync,
    mkdtempSync,
    openSync,
    readdirSync,
    readFileSync,
    renameSync,
    statSync,
    watch,
    writeSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Sqlite from 'better-sqlite3';

import { parseExpiry } from '../../../../core/src/cli/token/create.ts';
import {
    auditOf,
    command,
    contentOf,
    environmentOf,
    oldNode,
    panelFolder,
    portico,
    type Ran,
    removeFolder,
    shim
} from '../../../support/panel/console.ts';
import { itUnless } from '../../../support/skip.ts';

export const lab = Lab.script();
const { describe, it, before, after, beforeEach, afterEach } = lab;

const made = /^[a-z2-9]{4}(-[a-z2-9]{4}){4}\n$/;
const old = oldNode();
const notRoot = process.getuid?.() === 0 ? undefined : 'only root can make files of another user';
const nobody = 65534;

function query<T>(dataDir: string, sql: string): T[] {
    const db = new Sqlite(join(dataDir, 'portico.db'), { readonly: true });
    try {
        return db.prepare(sql).all() as T[];
    } finally {
        db.close();
    }
}

function change(dataDir: string, sql: string): void {
    const db = new Sqlite(join(dataDir, 'portico.db'));
    db.exec(sql);
    db.close();
}

interface UserRow {
    readonly username: string;
    readonly role: string;
    readonly disabled: number;
    readonly must_change_password: number;
    readonly password_hash: string;
}

const usersOf = (dataDir: string): UserRow[] =>
    query<UserRow>(
        dataDir,
        'select username, role, disabled, must_change_password, password_hash from users order by id'
    );

describe('portico without a panel', () => {
    let dataDir: string;

    beforeEach(async () => {
        dataDir = await panelFolder();
    });

    afterEach(() => removeFolder(dataDir));

    const run = (args: string[], input?: string): Promise<Ran> =>
        command([...args, '--data-dir', dataDir], input === undefined ? {} : { input });

    it('resets a password: prints a new one, which must be changed, and opens the account', async () => {
        const [first] = usersOf(dataDir);
        change(dataDir, 'update users set disabled = 1');
        const { code, stdout, stderr } = await run(['admin', 'reset-password']);
        expect(code).to.equal(0);
        expect(stdout).to.match(made);
        expect(stderr).to.include('must be changed at the first login').and.not.include(stdout.trim());
        const [user] = usersOf(dataDir);
        expect(user).to.include({ username: 'admin', role: 'admin', disabled: 0, must_change_password: 1 });
        expect(user?.password_hash)
            .to.match(/^\$argon2id\$/)
            .and.not.equal(first?.password_hash);
        const last = auditOf(dataDir).at(-1);
        expect(last).to.include({
            action: 'update',
            resource: 'users',
            resource_id: 1,
            outcome: 'success',
            actor_id: null,
            username: null,
            ip: null
        });
        expect(last?.['user_agent']).to.match(/^portico-console \([\w.@-]+\)$/);
        expect(contentOf(dataDir)).not.to.include(stdout.trim());
    });

    it('takes a password from standard input, and takes the second factor away only when asked to', async () => {
        change(
            dataDir,
            "insert into auth_second_factors (user_id, secret, pending, last_step, wrong_at, closed_until) values (1, 'sealed', null, 0, '[]', 0)"
        );
        expect(
            await run(['admin', 'reset-password', 'ADMIN', '--password-stdin'], 'another long password\n')
        ).to.include({ code: 0, stdout: '' });
        expect(usersOf(dataDir)[0]).to.include({ must_change_password: 0 });
        expect(query(dataDir, 'select * from auth_second_factors')).to.have.length(1);
        expect(
            await run(
                ['admin', 'reset-password', '--password-stdin', '--disable-totp', '--json'],
                'yet another long password\r\n'
            )
        ).to.include({ code: 0, stderr: '' });
        expect(query(dataDir, 'select * from auth_second_factors')).to.equal([]);
    });

    it('refuses a password that is weak, several lines long, or no text, and changes nothing', async () => {
        const before = { users: usersOf(dataDir), audit: auditOf(dataDir) };
        const refusals = await Promise.all([
            run(['admin', 'reset-password', '--password-stdin'], 'short\n'),
            run(['admin', 'reset-password', '--password-stdin'], 'password123\n'),
            run(['admin', 'reset-password', '--password-stdin'], 'a long one\nand another\n'),
            run(['admin', 'reset-password', '--password-stdin'], 'x'.repeat(5000)),
            run(['admin', 'create', 'bert', '--password-stdin'], 'short'),
            run(['admin', 'reset-password', 'nobody'])
        ]);
        expect(refusals.map(({ code, stdout }) => [code, stdout])).to.equal([
            [1, ''],
            [1, ''],
            [2, ''],
            [1, ''],
            [1, ''],
            [1, '']
        ]);
        expect(refusals[0]?.stderr).to.equal('portico: The password must have at least 10 characters\n');
        expect(refusals[5]?.stderr).to.equal('portico: There is no user nobody\n');
        expect({ users: usersOf(dataDir), audit: auditOf(dataDir) }).to.equal(before);
    });

    it('creates an admin, or an account of another role, and no second one of a name', async () => {
        const admin = await run(['admin', 'create', 'anna']);
        expect(admin).to.include({ code: 0 });
        expect(admin.stdout).to.match(made);
        const viewer = await run(['admin', 'create', 'vera', '--role', 'viewer', '--json']);
        expect(JSON.parse(viewer.stdout)).to.include({
            id: 3,
            username: 'vera',
            role: 'viewer',
            mustChangePassword: true
        });
        expect(await run(['admin', 'create', 'ANNA'])).to.equal({
            code: 1,
            stdout: '',
            stderr: 'portico: The username is taken\n'
        });
        expect(await run(['admin', 'create', 'otto', '--role', 'emperor'])).to.equal({
            code: 1,
            stdout: '',
            stderr: 'portico: There is no role emperor\n'
        });
        expect(
            usersOf(dataDir).map(({ username, role, must_change_password: must }) => [username, role, must])
        ).to.equal([
            ['admin', 'admin', 0],
            ['anna', 'admin', 1],
            ['vera', 'viewer', 1]
        ]);
        expect(
            auditOf(dataDir).map(({ action, resource, resource_id: id }) => [action, resource, id])
        ).to.equal([
            ['create', 'users', 1],
            ['create', 'users', 2],
            ['create', 'users', 3]
        ]);
    });

    it('creates a token of no more than its owner may, and prints nothing else', async () => {
        await run(['admin', 'create', 'vera', '--role', 'viewer']);
        const { code, stdout, stderr } = await run([
            'token',
            'create',
            '--user',
            'vera',
            '--name',
            'ci',
            '--permissions',
            'hosts:read, users:read',
            '--expires',
            '90d'
        ]);
        expect(code).to.equal(0);
        expect(stdout).to.match(/^ptk_[\w-]{43}\n$/);
        expect(stderr).to.include('It is refused until vera has changed the password');
        const [row] = query<{ user_id: number; permissions: string; expires_at: number; created_at: number }>(
            dataDir,
            'select * from auth_tokens'
        );
        expect(row).to.include({ user_id: 2, permissions: '["hosts:read","users:read"]' });
        expect(Math.round(((row?.expires_at ?? 0) - (row?.created_at ?? 0)) / 86_400_000)).to.equal(90);
        expect(contentOf(dataDir)).not.to.include(stdout.trim());
        const before = auditOf(dataDir);
        expect(
            (await run(['token', 'create', '--user', 'vera', '--name', 'ci', '--permissions', 'hosts:read']))
                .stderr
        ).to.equal('portico: vera already has a token with the name "ci"\n');
        expect(
            (await run(['token', 'create', '--user', 'vera', '--name', 'c2', '--permissions', 'hosts:write']))
                .stderr
        ).to.include('vera does not have the permission hosts:write');
        expect(
            (
                await run([
                    'token',
                    'create',
                    '--user',
                    'nobody',
                    '--name',
                    'c2',
                    '--permissions',
                    'hosts:read'
                ])
            ).stderr
        ).to.equal('portico: There is no user nobody\n');
        expect(auditOf(dataDir)).to.equal(before);
    });

    it('proves the audit log, and says where it breaks', async () => {
        await run(['admin', 'create', 'anna']);
        await run(['admin', 'create', 'bert']);
        expect(await run(['audit', 'verify'])).to.include({
            code: 0,
            stdout: 'The audit log holds: 3 entries (1 to 3), 3 signed checkpoints.\n',
            stderr: ''
        });
        change(dataDir, "update audit_entries set username = 'anna' where id = 2");
        const broken = await run(['audit', 'verify']);
        expect(broken).to.include({ code: 1, stdout: '' });
        expect(broken.stderr).to.include('BROKEN at entry 2 (CHANGED)');
        const json = await run(['audit', 'verify', '--json']);
        expect(json).to.include({ code: 1, stderr: '' });
        expect(JSON.parse(json.stdout)).to.include({ holds: false, entries: 3 });
        change(dataDir, 'delete from audit_entries where id > 1; delete from audit_checkpoints');
        expect((await run(['audit', 'verify'])).stderr).to.include('BROKEN at entry 2 (ROLLED_BACK)');
    });

    it('keeps what it has said, and nothing half, when it is killed', async () => {
        // At the first, the third … change of a file in the folder, which is where it matters at any speed of the machine.
        let kills = 0;
        for (const changes of [1, 3, 5, 7, 9]) {
            const child = spawn(
                process.execPath,
                [shim, 'admin', 'create', `user${changes}`, '--data-dir', dataDir],
                { env: environmentOf(), stdio: ['ignore', 'pipe', 'ignore'] }
            );
            let said = '';
            child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
            let seen = 0;
            const watcher = watch(dataDir, () => {
                seen += 1;
                if (seen === changes) {
                    child.kill('SIGKILL');
                }
            });
            const [, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
            watcher.close();
            kills += signal === 'SIGKILL' ? 1 : 0;
            const exists = usersOf(dataDir).some(({ username }) => username === `user${changes}`);
            expect(exists || said === '', `said without a row at change ${changes}`).to.be.true();
        }
        expect(kills).to.be.above(0);
        expect(await run(['audit', 'verify'])).to.include({ code: 0 });
        expect(auditOf(dataDir)).to.have.length(usersOf(dataDir).length);
    });

    it('lets two at once come one after the other', async () => {
        const names = ['anna', 'bert', 'carl', 'dora'];
        const ran = await Promise.all(
            names.map((name) => portico(['admin', 'create', name, '--data-dir', dataDir]))
        );
        expect(ran.map(({ code }) => code)).to.equal([0, 0, 0, 0]);
        expect(
            usersOf(dataDir)
                .map(({ username }) => username)
                .sort()
        ).to.equal(['admin', ...names]);
        expect(await run(['audit', 'verify'])).to.include({ code: 0 });
    });

    it('makes no file that others can read, and leaves none behind', async () => {
        const before = readdirSync(dataDir).sort();
        await portico(['admin', 'create', 'anna', '--data-dir', dataDir]);
        expect(readdirSync(dataDir).sort()).to.equal(before);
        expect(statSync(dataDir).mode & 0o777).to.equal(0o700);
    });

    it('finds the folder by PORTICO_DATA_DIR, and --data-dir goes before that', async () => {
        expect(await command(['audit', 'verify'], { env: { PORTICO_DATA_DIR: dataDir } })).to.include({
            code: 0
        });
        expect(
            await command(['audit', 'verify', '--data-dir', dataDir], {
                env: { PORTICO_DATA_DIR: '/nonexistent' }
            })
        ).to.include({ code: 0 });
        expect(
            await portico(['audit', 'verify'], { cwd: dataDir, env: { PORTICO_DATA_DIR: '.' } })
        ).to.include({ code: 0 });
    });

    itUnless(old === null ? 'there is no older Node on the PATH' : undefined, it)(
        'works from an older Node, standard input and exit code included',
        async () => {
            const node = old ?? '';
            expect(
                await portico(['admin', 'create', 'anna', '--password-stdin', '--data-dir', dataDir], {
                    node,
                    input: 'a long password of anna'
                })
            ).to.include({ code: 0, stdout: '' });
            expect(await portico(['admin', 'create', 'anna', '--data-dir', dataDir], { node })).to.include({
                code: 1
            });
        }
    );

    itUnless(notRoot, it)(
        "becomes the user whom the folder belongs to, so that no file of root's locks the panel out",
        async () => {
            for (const name of ['', ...(readdirSync(dataDir, { recursive: true }) as string[])]) {
                chownSync(join(dataDir, name), nobody, nobody);
            }
            expect(await portico(['admin', 'create', 'anna', '--data-dir', dataDir])).to.include({ code: 0 });
            const owners = (readdirSync(dataDir, { recursive: true }) as string[]).map((name) => [
                name,
                statSync(join(dataDir, name)).uid
            ]);
            expect(owners.filter(([, uid]) => uid !== nobody)).to.equal([]);
            expect(usersOf(dataDir)).to.have.length(2);
        }
    );
});

describe('portico on a folder that it cannot use', () => {
    const commands = [
        ['admin', 'reset-password'],
        ['admin', 'create', 'anna'],
        ['token', 'create', '--user', 'admin', '--name', 'a', '--permissions', 'hosts:read'],
        ['audit', 'verify']
    ];
    let empty: string;

    before(() => {
        empty = mkdtempSync(join(tmpdir(), 'portico-empty-'));
    });

    after(() => removeFolder(empty));

    async function refused(dataDir: string, words: string, uid?: number): Promise<void> {
        const call = (args: readonly string[]): Promise<Ran> =>
            uid === undefined
                ? command([...args, '--data-dir', dataDir])
                : portico([...args, '--data-dir', dataDir], { uid });
        for (const args of commands) {
            const ran = await call(args);
            expect(ran, args.join(' ')).to.include({ code: 1, stdout: '' });
            expect(ran.stderr, args.join(' ')).to.include(words).and.not.include('    at ');
        }
        const { code, stdout } = await call(['doctor', '--json']);
        expect(code).to.equal(1);
        const { ok, checks } = JSON.parse(stdout) as {
            ok: boolean;
            checks: { id: string; state: string; evidence: string }[];
        };
        expect(ok).to.be.false();
        expect(
            checks.some(({ state, evidence }) => state === 'fail' && evidence.includes(words)),
            stdout
        ).to.be.true();
    }

    it("says that there is none, or that it is no panel's, and makes nothing", async () => {
        await refused(join(empty, 'missing'), 'There is no data folder at');
        await refused(empty, 'is not the data folder of a panel');
        expect(readdirSync(empty)).to.equal([]);
    });

    itUnless(notRoot, it)('says who may when the user may not', async () => {
        const dataDir = await panelFolder();
        await refused(dataDir, 'or as root', nobody);
        removeFolder(dataDir);
    });

    it('says that the master key is gone, and makes no other', async () => {
        const dataDir = await panelFolder();
        const key = join(dataDir, 'keys', 'master');
        renameSync(key, `${key}.away`);
        await refused(dataDir, 'keys/master is missing');
        expect(existsSync(key)).to.be.false();
        removeFolder(dataDir);
    });

    it('says that the database is damaged, and leaves it as it is', async () => {
        const dataDir = await panelFolder();
        const file = join(dataDir, 'portico.db');
        const handle = openSync(file, 'r+');
        writeSync(handle, Buffer.alloc(4096, 0x5a), 0, 4096, 0);
        closeSync(handle);
        const before = readFileSync(file);
        await refused(dataDir, 'is damaged');
        expect(readFileSync(file).equals(before)).to.be.true();
        removeFolder(dataDir);
    });

    it('says that a newer version wrote it, and changes nothing', async () => {
        const dataDir = await panelFolder();
        change(
            dataDir,
            "insert into migrations (name, executed_at) values ('0099-of-tomorrow', '2026-01-01')"
        );
        const before = auditOf(dataDir);
        expect((await command(['admin', 'reset-password', '--data-dir', dataDir])).stderr).to.include(
            'was written by a newer version of Portico (0099-of-tomorrow)'
        );
        expect(auditOf(dataDir)).to.equal(before);
        removeFolder(dataDir);
    });
});

describe('parseExpiry', () => {
    const now = Date.UTC(2026, 0, 15, 12);

    it('reads days, hours and times', () => {
        expect(parseExpiry('90d', now)).to.equal('2026-04-15T12:00:00.000Z');
        expect(parseExpiry('12h', now)).to.equal('2026-01-16T00:00:00.000Z');
        expect(parseExpiry('2030-01-31', now)).to.equal('2030-01-31T00:00:00.000Z');
        expect(parseExpiry('2030-01-31T01:00:00+01:00', now)).to.equal('2030-01-31T00:00:00.000Z');
    });

    it('refuses everything else', () => {
        for (const text of [
            '',
            '0d',
            '-1d',
            '1',
            'd',
            '1 d',
            '90D',
            '9999999d',
            '2026-01-15',
            '2030-13-01',
            '2030-01-31T00:00:00',
            'tomorrow',
            '1e3d'
        ]) {
            expect(() => parseExpiry(text, now), text).to.throw();
        }
    });
});
