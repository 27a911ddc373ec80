import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { type Instance, noMariadb, startMariadb } from '../database/instances.ts';
import { hasAccount, PhpRig, withoutPhp } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const hasMysqli = (): boolean => {
    try {
        return execFileSync('php8.2', ['-m']).toString().includes('mysqli');
    } catch {
        return false;
    }
};
const lacks = withoutPhp ?? noMariadb ?? (hasMysqli() ? undefined : 'php8.2-mysql is not installed');
const real = itUnless(lacks, it);
const limitMs = 120_000;

/** What of WordPress its set-up needs, in its own shape: files, names of constants and functions, and their order. */
const files: Readonly<Record<string, string>> = {
    'index.php': `<?php require __DIR__ . '/wp-load.php';
$row = $wpdb->query("select option_value from wp_options where option_name = 'blogname'")->fetch_row();
echo $row[0], ' of ', DB_USER;`,
    'wp-load.php': `<?php define('ABSPATH', __DIR__ . '/');
if (!file_exists(ABSPATH . 'wp-config.php')) { die('<p>There is no wp-config.php</p>'); }
require_once ABSPATH . 'wp-config.php';`,
    'wp-settings.php': `<?php [$host, $more] = explode(':', DB_HOST, 2);
$wpdb = is_numeric($more) ? new mysqli($host, DB_USER, DB_PASSWORD, DB_NAME, (int) $more) : new mysqli(null, DB_USER, DB_PASSWORD, DB_NAME, 0, $more);
foreach (['AUTH_KEY', 'NONCE_SALT'] as $name) { if (strlen(constant($name)) < 60) { die('weak'); } }`,
    'wp-admin/includes/upgrade.php': `<?php function wp_install($title, $user, $email, $public, $deprecated = '', $password = '') {
    global $wpdb;
    $wpdb->query('create table wp_options (option_name varchar(191) primary key, option_value longtext)');
    $add = $wpdb->prepare('insert into wp_options values (?, ?)');
    foreach (['blogname' => $title, 'siteurl' => WP_SITEURL, 'admin_email' => $email, 'user' => $user, 'password' => $password] as $name => $value) {
        $add->execute([$name, $value]);
    }
}`,
    'wp-content/themes/plain/style.css': '/* a theme */'
};
const wordpress = { title: `It's "mine" <b>$x</b>`, adminUser: 'ada', adminEmail: 'ada@shop.test' };

let rig: PhpRig;
let instance: Instance;
let serverId: number;
let archive: { url: string; sha256: string };

async function pack(): Promise<void> {
    const folder = join(rig.top, 'archive');
    for (const [path, text] of Object.entries(files)) {
        const file = join(folder, 'wordpress', path);
        mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
        writeFileSync(file, text, { mode: 0o644 });
    }
    const url = join(rig.top, 'wordpress.tar.gz');
    execFileSync('tar', ['-czf', url, '-C', folder, 'wordpress']);
    archive = { url, sha256: createHash('sha256').update(readFileSync(url)).digest('hex') };
}

const make = async (word: string, more: object = {}) =>
    rig.finish(
        await rig.post('/sites', {
            name: rig.name(word),
            domain: `${word}.test`,
            release: '8.2',
            template: 'wordpress',
            wordpress,
            database: { serverId, name: word },
            ...more
        })
    );
const option = async (database: string, name: string): Promise<unknown> =>
    (
        await instance.sql(`select option_value as v from wp_options where option_name = '${name}'`, database)
    )[0]?.['v'];

describe('A site of WordPress', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (lacks !== undefined) {
            return;
        }
        instance = await startMariadb();
        try {
            rig = await PhpRig.start(
                async (started) => {
                    serverId = await started.registerServer(instance);
                },
                ['database']
            );
            await pack();
        } catch (error) {
            await rig?.close();
            await instance.close();
            throw error;
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
        await instance?.close();
    });

    real('is set up in one call with its database, whose password is in its environment alone', async () => {
        const lacking = await rig.post('/sites', {
            name: rig.name('blog'),
            domain: 'blog.test',
            release: '8.2',
            template: 'wordpress',
            wordpress,
            database: { serverId }
        });
        expect([lacking.code, lacking.text.includes('wordpressArchive')]).to.equal([50302, true]);
        await rig.configure({ wordpressArchive: archive });
        const task = await make('blog');
        expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
        const { siteId, adminPassword } = task.result as { siteId: number; adminPassword: string };
        expect(adminPassword.length).to.equal(20);
        const { data: site } = await rig.get(`/sites/${siteId}`);
        expect(site).to.include({ template: 'wordpress', databaseName: 'blog', state: 'running' });
        const page = await rig.page('blog.test');
        expect(page.text, page.text).to.match(/^It's "mine" <b>\$x<\/b> of \S+$/);
        expect((await rig.page('blog.test', '/wp-content/themes/plain/style.css')).text).to.equal(
            '/* a theme */'
        );
        expect([await option('blog', 'siteurl'), await option('blog', 'password')]).to.equal([
            'http://blog.test',
            adminPassword
        ]);
        const config = readFileSync(join(site.folder, 'public/wp-config.php'), 'utf8');
        expect(config).to.contain(`getenv('DB_PASSWORD')`);
        const [user] = page.text.split(' of ').slice(-1);
        expect(config).to.not.contain(String(user));
        expect((await rig.get(`/sites/${siteId}/files-owner`)).data).to.equal([]);
        expect(existsSync(join(site.folder, 'private/tmp/wordpress.tar.gz'))).to.be.false();
        expect((await rig.delete(`/sites/${siteId}?deleteFiles=true`)).status).to.equal(200);
        expect(await option('blog', 'siteurl')).to.equal('http://blog.test');
    });

    real('is taken back whole with its database when its archive is another one', async () => {
        await rig.configure({ wordpressArchive: { ...archive, sha256: '0'.repeat(64) } });
        const task = await make('other');
        expect([task.state, task.error.code], JSON.stringify(task.error)).to.equal(['failed', 42253]);
        expect(task.error.message).to.contain(archive.sha256);
        expect([
            hasAccount(`php-${rig.name('other')}`),
            existsSync(join(rig.top, 'www', rig.name('other')))
        ]).to.equal([false, false]);
        const names = await instance.sql('show databases');
        expect(names.map((each) => Object.values(each)[0])).to.not.include('other');
        expect((await rig.get('/sites')).data).to.equal([]);
        const bare = { name: rig.name('bare'), domain: 'bare.test', release: '8.2', template: 'wordpress' };
        const refused = [
            await rig.post('/sites', bare),
            await rig.post('/sites', { ...bare, wordpress }),
            await rig.post('/sites', { ...bare, template: 'php', wordpress, database: { serverId } })
        ];
        expect(refused.map(({ code }) => code)).to.equal([40001, 40001, 40001]);
    });
});
