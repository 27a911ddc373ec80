/** WordPress in a new site: its archive is fetched and compared with its hash, unpacked and set up by PHP itself, as the account of the site. */
import { createHash, randomBytes } from 'node:crypto';

import { errors, type ExecResult } from '@portico/sdk';

import { type Configurations, iniEnvironment } from '../../config/configurations.ts';
import { fail } from '../../errors.ts';
import type { FileOwners } from '../../sandbox/owner.ts';
import type { Ctx } from '../../settings.ts';
import type { Releases } from '../../versions/releases.ts';
import type { Account } from '../machine/accounts.ts';
import { siteUmask, split } from '../machine/folders.ts';
import { configFolder, type Site } from '../site.ts';

/** What WordPress is set up with. */
export interface WordPressInput {
    readonly title: string;
    readonly adminUser: string;
    readonly adminEmail: string;
}

const mostBytes = 256 * 2 ** 20;
const fetchMs = 300_000;
const blockBytes = 1_048_576;
const seconds = 300;
const memoryBytes = 2 ** 30;
const longestOutput = 2_000;
/** What the archive of wordpress.org holds everything in. */
const folderInArchive = 'wordpress';
/** What the last script writes when WordPress is set up: a page of WordPress that tells of an error ends with success, too. */
const done = 'portico: set up';

/** Moves what is in the archive's folder to the served folder. Values come by the environment, never as code. */
const unpack = `
$archive = new PharData(getenv('SETUP_ARCHIVE'));
$target = getenv('SETUP_ROOT');
$archive->extractTo($target, null, true);
$from = $target . '/${folderInArchive}';
if (!is_file($from . '/wp-load.php')) { fwrite(STDERR, 'The archive holds no ${folderInArchive}/wp-load.php'); exit(1); }
foreach (array_diff(scandir($from), ['.', '..']) as $name) {
    if (!rename($from . '/' . $name, $target . '/' . $name)) { exit(1); }
}
exit(rmdir($from) ? 0 : 1);
`;

const setUp = `
define('WP_INSTALLING', true);
define('WP_SITEURL', getenv('SETUP_URL'));
$_SERVER += ['HTTP_HOST' => getenv('SETUP_HOST'), 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET'];
function wp_mail() { return false; }
require getenv('SETUP_ROOT') . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install(getenv('SETUP_TITLE'), getenv('SETUP_USER'), getenv('SETUP_EMAIL'), true, '', getenv('SETUP_PASSWORD'));
echo '${done}';
`;

/** Sets WordPress up in a new site. */
export class WordPress {
    readonly #ctx: Ctx;
    readonly #releases: Releases;
    readonly #configurations: Configurations;
    readonly #owners: FileOwners;

    constructor(ctx: Ctx, releases: Releases, configurations: Configurations, owners: FileOwners) {
        this.#owners = owners;
        this.#ctx = ctx;
        this.#releases = releases;
        this.#configurations = configurations;
    }

    /** @throws TOOL_MISSING 50302 when something that it needs is not there */
    async requireParts(release: string): Promise<void> {
        if (this.#ctx.settings.wordpressArchive === undefined) {
            throw errors.toolMissing('WordPress', 'set wordpressArchive in the settings of the plugin');
        }
        const cli = await this.#releases.cli(release);
        const { code } = await this.#ctx.exec(
            cli,
            ['-r', `exit(extension_loaded('mysqli') && class_exists('PharData') ? 0 : 1);`],
            { cwd: '/', timeoutSeconds: 10 }
        );
        if (code !== 0) {
            throw errors.toolMissing('mysqli', `apt-get install php${release}-mysql`);
        }
    }

    /** Puts WordPress into a site that has its folders and its database, and gives the password of its admin. @throws TOOL_FAILED 42253 */
    async install(
        site: Site,
        account: Account,
        input: WordPressInput,
        { signal, log }: { readonly signal: AbortSignal; readonly log: (line: string) => void }
    ): Promise<string> {
        const cli = await this.#releases.cli(site.release);
        const env = await this.#configurations.environment(site);
        if (env['DB_CONNECTION'] !== 'mysql') {
            throw failed('it needs a database of MySQL or MariaDB');
        }
        const root = `${site.folder}/${site.root}`;
        const archive = await this.#fetch(site, account, signal);
        const run = (script: string, more: Readonly<Record<string, string>>): Promise<string> =>
            this.#run(site, cli, script, { ...env, SETUP_ROOT: root, ...more }, signal);
        log('WordPress is unpacked');
        await run(unpack, { SETUP_ARCHIVE: archive });
        const { parent, name } = split(archive);
        await this.#ctx.files(parent).remove(name);
        await this.#writeConfig(site, account);
        // The engine reads files by its group; the archive says otherwise.
        await this.#owners.repair(site, signal, log);
        log('WordPress is set up');
        const password = randomBytes(15).toString('base64url');
        const output = await run(setUp, {
            SETUP_URL: `${site.ssl ? 'https' : 'http'}://${site.domain}`,
            SETUP_HOST: site.domain,
            SETUP_TITLE: input.title,
            SETUP_USER: input.adminUser,
            SETUP_EMAIL: input.adminEmail,
            SETUP_PASSWORD: password
        });
        if (!output.endsWith(done)) {
            throw failed(plain(output) || 'it was not set up, and gives no reason');
        }
        return password;
    }

    /** Gets the archive, and compares its hash. Gives the path of the file. */
    async #fetch(site: Site, account: Account, signal: AbortSignal): Promise<string> {
        const { url, sha256 } = this.#ctx.settings.wordpressArchive ?? { url: '', sha256: '' };
        const folder = `${site.folder}/private/tmp`;
        // PHP knows the kind of an archive by its name.
        const name = `wordpress${/\.zip$/i.test(url) ? '.zip' : '.tar.gz'}`;
        const handle = await this.#ctx.files(folder).open(name, 'wx', 0o600);
        const hash = createHash('sha256');
        let bytes = 0;
        try {
            for await (const chunk of this.#read(
                url,
                AbortSignal.any([signal, AbortSignal.timeout(fetchMs)])
            )) {
                bytes += chunk.byteLength;
                if (bytes > mostBytes) {
                    throw failed('its archive is larger than 256 MiB');
                }
                hash.update(chunk);
                await handle.writeFile(chunk);
            }
            await handle.chown(account.uid, account.gid);
        } finally {
            await handle.close();
        }
        const found = hash.digest('hex');
        if (found !== sha256.toLowerCase()) {
            throw failed(`its archive has the SHA-256 ${found}, and not that of the settings`);
        }
        return `${folder}/${name}`;
    }

    async *#read(url: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
        if (url.startsWith('/')) {
            const { parent, name } = split(url);
            const handle = await this.#ctx.files(parent).open(name);
            try {
                for (;;) {
                    signal.throwIfAborted();
                    const { bytesRead, buffer } = await handle.read(Buffer.alloc(blockBytes), 0, blockBytes);
                    if (bytesRead === 0) {
                        return;
                    }
                    yield buffer.subarray(0, bytesRead);
                }
            } finally {
                await handle.close();
            }
        }
        const response = await this.#ctx.fetch(url, { signal });
        if (!response.ok || response.body === null) {
            await response.body?.cancel();
            throw failed(`the server of its archive answers ${response.status}`);
        }
        yield* response.body;
    }

    /** The password of the database stays in the environment: this file names the variable. */
    async #writeConfig(site: Site, account: Account): Promise<void> {
        const keys = ['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'].flatMap((name) =>
            [`${name}_KEY`, `${name}_SALT`].map(
                (each) => `define('${each}', '${randomBytes(48).toString('base64')}');`
            )
        );
        const lines = [
            '<?php',
            `define('DB_NAME', getenv('DB_DATABASE'));`,
            `define('DB_USER', getenv('DB_USERNAME'));`,
            `define('DB_PASSWORD', getenv('DB_PASSWORD'));`,
            `define('DB_HOST', getenv('DB_SOCKET') ? 'localhost:' . getenv('DB_SOCKET') : getenv('DB_HOST') . ':' . getenv('DB_PORT'));`,
            `define('DB_CHARSET', 'utf8mb4');`,
            `define('DB_COLLATE', '');`,
            ...keys,
            `$table_prefix = 'wp_';`,
            // WordPress writes its files as the account itself, and asks for no FTP.
            `define('FS_METHOD', 'direct');`,
            `if (!defined('ABSPATH')) { define('ABSPATH', __DIR__ . '/'); }`,
            `require_once ABSPATH . 'wp-settings.php';`,
            ''
        ];
        const handle = await this.#ctx.files(site.folder).open(`${site.root}/wp-config.php`, 'wx', 0o600);
        try {
            await handle.writeFile(lines.join('\n'));
            await handle.chown(account.uid, account.gid);
        } finally {
            await handle.close();
        }
    }

    async #run(
        site: Site,
        cli: string,
        script: string,
        env: Readonly<Record<string, string>>,
        signal: AbortSignal
    ): Promise<string> {
        const result = await this.#ctx.exec(cli, ['-r', script], {
            user: site.account,
            umask: siteUmask,
            cwd: `${site.folder}/${site.root}`,
            signal,
            timeoutSeconds: seconds,
            limits: { group: { memoryBytes } },
            env: {
                ...env,
                ...iniEnvironment(configFolder(site, site.slot)),
                HOME: `${site.folder}/private`,
                TMPDIR: `${site.folder}/private/tmp`
            }
        });
        signal.throwIfAborted();
        if (result.code !== 0) {
            throw failed(reasonOf(result));
        }
        return result.stdout;
    }
}

function reasonOf({ code, timedOut, stderr, stdout }: ExecResult): string {
    return timedOut
        ? `it did not end within ${seconds} s`
        : plain(`${stderr}\n${stdout}`) || `PHP ended with ${code ?? 'a signal'}`;
}

/** What WordPress says of an error is a page. */
function plain(output: string): string {
    return output
        .replace(/<(style|script)[\s\S]*?<\/\1>|<[^>]*>/g, ' ')
        .replace(/\s+/g, ' ')
        .trim()
        .slice(0, longestOutput);
}

function failed(why: string): Error {
    return fail.TOOL_FAILED({ tool: 'WordPress', why });
}
