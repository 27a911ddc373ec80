import {
    chmodSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    rmSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { PhpRig, withoutPhp } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutPhp, it);

const limitMs = 60_000;
const ran = '<?php echo "R" . "AN";';
/** Values that would end a quote, a line or a section, or stand for another value. */
const env = {
    PLAIN: 'a plain secret',
    QUOTES: `it's "quoted" and 'so'`,
    SIGNS: 'a;b#c[d]=e\\f${HOME}%{x}',
    SPACES: '  x  ',
    UNICODE: 'ü€😀'
};

let rig: PhpRig;
let [one, two] = [0, 0];
let folder: string;

/** Runs a script in the first site. */
async function run(code: string): Promise<string> {
    rig.write('one', 'public/try.php', `<?php ${code}`);
    return (await rig.page('one.test', '/try.php')).text;
}

describe('The walls of a site of PHP', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutPhp === undefined) {
            rig = await PhpRig.start(async (started) => {
                one = await started.create('one', { env });
                two = await started.create('two');
            });
            folder = join(rig.top, 'www', rig.name('one'));
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('let only what ends with .php run, however the path is spelt', async () => {
        for (const name of ['x.jpg', 'x.php.jpg', 'x.PHP', 'x.phtml', 'shell.php.txt', 'y.php.d']) {
            rig.write('one', `public/up/${name}`, ran);
        }
        const paths = [
            '/up/x.jpg/y.php',
            '/up/x.jpg/.php',
            '/up/x.jpg%00.php',
            '/up/x.jpg%0a.php',
            '/up/x.jpg%2fy.php',
            '/up/x.jpg/%2e%2e/y.php',
            '/up/x.php.jpg',
            '/up/x.php.jpg/z.php',
            '/up/x.php.jpg%20',
            '/up/x.PHP',
            '/up/x.PHP/z.php',
            '/up/x.phtml',
            '/up/y.php.d/z.php',
            '/up/shell.php.txt/.php',
            // Letters whose lower case is longer than they are: a server that compares lower case cuts at another place.
            `/up/${'%C8%BA'.repeat(4)}shell.php.txt.php`,
            `/up/${'%C4%B0'.repeat(3)}x.jpg.php`
        ];
        for (const letters of ['Ⱥ'.repeat(4), 'İ'.repeat(3)]) {
            rig.write('one', `public/up/${letters}shell.php.txt`, ran);
            rig.write('one', `public/up/${letters}x.jpg`, ran);
        }
        for (const path of paths) {
            const { text } = await rig.page('one.test', path);
            expect(text.includes('RAN'), path).to.be.false();
        }
        rig.write('one', 'public/up/fine.php', ran);
        expect((await rig.page('one.test', '/up/fine.php')).text).to.equal('RAN');
        rmSync(join(folder, 'public/up'), { recursive: true });
    });

    real('hand an environment over as it is, and show no value of it again', async () => {
        const names = [...Object.keys(env), 'INJECTED', 'PATH', 'PORTICO_DATA_DIR'];
        const seen = JSON.parse(
            await run(`echo json_encode(array_map('getenv', ${JSON.stringify(names)}));`)
        );
        expect(seen).to.equal([...Object.values(env), false, false, false]);
        const shown = await rig.get(`/sites/${one}`);
        expect(shown.data.env.QUOTES).to.equal({ set: true });
        expect(shown.text).to.not.contain('quoted');
        const kept = await rig.put(`/sites/${one}`, { env: { ...shown.data.env, MORE: 'x' } });
        expect(kept.status, kept.text).to.equal(200);
        expect(await run(`echo getenv('SIGNS') . getenv('MORE');`)).to.equal(`${env.SIGNS}x`);
        const audit = await rig.panel.client.get('/api/audit?limit=100');
        expect(audit.text).to.not.contain('a plain secret');
        expect(rig.panel.lines.join('\n')).to.not.contain('a plain secret');
    });

    real('refuse what would open them, and change nothing', async () => {
        const refused: readonly (readonly [
            method: 'put' | 'post',
            path: string,
            body: object,
            code: number
        ])[] = [
            ...['PATH', 'LD_PRELOAD', 'PORTICO_X', 'A-B', 'A]\n[x', 'PHP_INI_SCAN_DIR', ''].map(
                (name) => ['put', `/sites/${one}`, { env: { [name]: 'x' } }, 40001] as const
            ),
            ...['', '$HOME', 'a\0b', 'a\nenv[INJECTED] = yes', 'a\rb'].map(
                (value) => ['put', `/sites/${one}`, { env: { A: value } }, 40001] as const
            ),
            ...(
                [
                    ['memory_limit', '64M\nauto_prepend_file=/etc/passwd'],
                    ['memory_limit', '64M;x'],
                    ['memory_limit', '1M'],
                    ['date.timezone', "UTC'"],
                    ['date.timezone', '${HOME}'],
                    ['session.name', 'a[b'],
                    ['open_basedir', '/'],
                    ['disable_functions', ''],
                    ['auto_prepend_file', '/tmp/x'],
                    ['extension', 'x'],
                    ['error_log', '/tmp/x'],
                    ['mail.log', '/tmp/x'],
                    ['constructor', '1']
                ] as const
            ).map(
                ([name, value]) =>
                    ['put', `/sites/${one}/settings`, { values: { [name]: value } }, 40001] as const
            ),
            ...[
                '/',
                '/etc',
                '/etc/ssl',
                '/usr/share',
                '/var/lib',
                '/var',
                '/root',
                '/proc/self',
                '/tmp/../etc',
                'x',
                `/tmp/a:b`
            ].map((path) => ['put', `/sites/${one}`, { extraPaths: [path] }, 40001] as const),
            ['put', `/sites/${one}`, { extraPaths: [rig.panel.config.dataDir] }, 40001],
            ['put', `/sites/${one}`, { extraPaths: [join(rig.top, 'www')] }, 40001],
            ['put', `/sites/${one}`, { extraPaths: [join(rig.top, 'www', rig.name('two'))] }, 40001],
            ['put', `/sites/${one}`, { extraPaths: [join(rig.top, 'run')] }, 40001],
            ...[
                '..',
                '../two',
                'public/../..',
                '/etc',
                'private',
                'logs',
                'private/tmp',
                'nothing',
                'way',
                'way/x'
            ].map((root) => ['put', `/sites/${one}`, { root }, 40001] as const),
            ['put', `/sites/${one}/pool`, { maxChildren: 501 }, 40001],
            ['put', `/sites/${one}/pool`, { mode: 'dynamic', minSpare: 9, maxSpare: 3 }, 40001],
            ['post', '/sites', { name: 'Shop', domain: 'a.test' }, 40001],
            ['post', '/sites', { name: '../x', domain: 'a.test' }, 40001],
            ['post', '/sites', { name: rig.name('one'), domain: 'a.test' }, 40900],
            ['post', '/sites', { name: rig.name('three'), domain: 'a.test', release: '7.9' }, 42251],
            ['post', '/sites', { name: rig.name('three'), domain: 'a.test', root: 'private/x' }, 40001]
        ];
        symlinkSync('/etc', join(folder, 'way'));
        mkdirSync(join(rig.top, 'shared'));
        symlinkSync('/etc', join(rig.top, 'shared', 'way'));
        const before = (await rig.get(`/sites/${one}`)).data;
        for (const [method, path, body, code] of [
            ...refused,
            ['put', `/sites/${one}`, { extraPaths: [join(rig.top, 'shared', 'way')] }, 40001] as const
        ]) {
            const answer = await rig[method](path, body);
            expect(answer.code, `${path} ${JSON.stringify(body)} ${answer.text}`).to.equal(code);
        }
        expect((await rig.get(`/sites/${one}`)).data).to.equal(before);
        rmSync(join(folder, 'way'));
        const shared = await rig.put(`/sites/${one}`, { extraPaths: [join(rig.top, 'shared')] });
        expect(shared.status, shared.text).to.equal(200);
    });

    real('keep a script from other sites, the panel and programs', async () => {
        const other = join(rig.top, 'www', rig.name('two'));
        const { data: site } = await rig.get(`/sites/${two}`);
        const paths = [
            other,
            `${other}/public`,
            `${other}/private/sessions`,
            rig.panel.config.dataDir,
            '/etc/passwd',
            '/proc/self/environ'
        ];
        expect(
            await run(
                `echo json_encode(array_map(fn ($p) => @file_exists($p) || @scandir($p), ${JSON.stringify(paths)}));`
            )
        ).to.equal(JSON.stringify(paths.map(() => false)));
        expect(
            await run(`echo @stream_socket_client('unix://${site.socket}') === false ? 'closed' : 'open';`)
        ).to.equal('closed');
        expect(
            await run(
                `echo json_encode(array_map('function_exists', ['exec', 'system', 'proc_open', 'symlink', 'dl']));`
            )
        ).to.equal('[false,false,false,false,false]');
        expect(
            await run(
                `ini_set('open_basedir', '/'); echo ini_get('open_basedir') === '/' ? 'open' : 'closed';`
            )
        ).to.equal('closed');
        rig.write('one', 'public/.user.ini', 'auto_prepend_file=/etc/passwd\nopen_basedir=/\n');
        expect(
            await run(`echo ini_get('auto_prepend_file'), posix_getuid() === 0 ? 'root' : 'account';`)
        ).to.equal('account');
        expect(
            await run(
                `session_start(); $_SESSION['a'] = 1; session_write_close(); echo file_put_contents(sys_get_temp_dir() . '/x', 'y');`
            )
        ).to.equal('1');
        expect(readdirSync(join(folder, 'private/sessions')).length).to.equal(1);
    });

    real('are scored by attempts, which find a hole where there is one', async () => {
        const { data } = await rig.get(`/sites/${one}/sandbox`);
        expect(
            data.checks.filter(({ ok }: { ok: boolean }) => !ok).map(({ id }: { id: string }) => id)
        ).to.equal(['code-is-writable']);
        expect(data.score).to.equal(95);
        writeFileSync(join(folder, 'public/.env'), 'SECRET=1');
        chmodSync(join(folder, 'public/.env'), 0o644);
        const holed = (await rig.get(`/sites/${one}/sandbox`)).data;
        expect(holed.score).to.equal(90);
        expect(holed.checks.find(({ id }: { id: string }) => id === 'hidden-files').evidence).to.contain(
            '.env'
        );
        expect((await rig.page('one.test', '/.env')).status).to.equal(404);

        symlinkSync('/etc/passwd', join(folder, 'public/out'));
        const wrong = (await rig.get(`/sites/${one}/files-owner`)).data as {
            path: string;
            problem: string;
        }[];
        expect(wrong.find(({ path }) => path === 'public/.env')?.problem).to.equal('owner');
        expect(wrong.find(({ path }) => path === 'public/out')?.problem).to.equal('link');
        const task = await rig.finish(await rig.post(`/sites/${one}/files-owner`));
        expect([task.state, task.result.left]).to.equal(['succeeded', 1]);
        expect(
            (await rig.get(`/sites/${one}/files-owner`)).data.map(({ path }: { path: string }) => path)
        ).to.equal(['public/out']);
        expect((statSync(join(folder, 'public/.env')).mode & 0o777).toString(8)).to.equal('600');
        expect((await rig.get(`/sites/${one}/sandbox`)).data.score).to.equal(95);
        expect(readFileSync('/etc/passwd', 'utf8')).to.contain('root');
        expect(statSync('/etc/passwd').uid).to.equal(0);
        rmSync(join(folder, 'public/out'));
    });
});
