/** Releases of PHP and their extensions as packages of Debian. */
import { errors } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import type { Releases } from './releases.ts';

/** An extension of a release. */
export interface Extension {
    readonly name: string;
    readonly state: 'builtin' | 'enabled' | 'disabled' | 'available';
}

/** What can be done with an extension. */
export type ExtensionAction = 'install' | 'remove' | 'enable' | 'disable';

/** Extensions that Debian has packages of; a package may bring several. */
const packaged = [
    'apcu',
    'bcmath',
    'bz2',
    'curl',
    'gd',
    'gmp',
    'imagick',
    'imap',
    'intl',
    'ldap',
    'mbstring',
    'memcached',
    'mysql',
    'opcache',
    'pgsql',
    'readline',
    'redis',
    'soap',
    'sqlite3',
    'tidy',
    'xml',
    'xsl',
    'zip'
];
const aptSeconds = 1_800;
const askSeconds = 10;
const wait = ['-o', 'DPkg::Lock::Timeout=300'];

/** Installs and removes packages. */
export class Packages {
    readonly #ctx: Ctx;
    readonly #releases: Releases;

    constructor(ctx: Ctx, releases: Releases) {
        this.#ctx = ctx;
        this.#releases = releases;
    }

    /** Installs a release. @throws TOOL_FAILED 42253; RELEASE_UNKNOWN 42251 when it is not there afterwards */
    async install(release: string, signal: AbortSignal, log: (line: string) => void): Promise<void> {
        await this.#install([`php${release}-fpm`, `php${release}-cli`], signal, log);
        await this.#releases.get(release);
        log(
            `Debian starts a PHP-FPM of its own with the package; no site needs it: systemctl disable --now php${release}-fpm`
        );
    }

    /** Removes a release. @throws TOOL_FAILED 42253 */
    async remove(release: string, signal: AbortSignal, log: (line: string) => void): Promise<void> {
        await this.#apt(['remove', '-y', '--', `php${release}-fpm`, `php${release}-cli`], signal, log);
    }

    /** The extensions of a release, by name. @throws RELEASE_UNKNOWN 42251 */
    async extensions(release: string): Promise<readonly Extension[]> {
        const { fpm } = await this.#releases.get(release);
        const [builtin, enabled] = [await this.#modules(fpm, ['-n', '-m']), await this.#modules(fpm, ['-m'])];
        const present = (
            await this.#ctx
                .files(`/etc/php/${release}/mods-available`)
                .list('')
                .catch(() => [])
        ).flatMap(({ name }) => (name.endsWith('.ini') ? [name.slice(0, -'.ini'.length)] : []));
        const states = new Map<string, Extension['state']>(packaged.map((name) => [name, 'available']));
        present.forEach((name) => states.set(name, 'disabled'));
        enabled.forEach((name) => states.set(name, 'enabled'));
        builtin.forEach((name) => states.set(name, 'builtin'));
        return [...states]
            .map(([name, state]) => ({ name, state }))
            .sort((a, b) => (a.name < b.name ? -1 : 1));
    }

    /** Changes an extension. @throws TOOL_MISSING 50302, TOOL_FAILED 42253 */
    async change(
        release: string,
        name: string,
        action: ExtensionAction,
        signal: AbortSignal,
        log: (line: string) => void
    ): Promise<void> {
        if (action === 'install') {
            await this.#install([`php${release}-${name}`], signal, log);
        } else if (action === 'remove') {
            await this.#apt(['remove', '-y', '--', `php${release}-${name}`], signal, log);
        } else {
            const tool = action === 'enable' ? 'phpenmod' : 'phpdismod';
            await this.#run(tool, ['-v', release, '-s', 'ALL', name], signal, log);
        }
    }

    async #install(
        names: readonly string[],
        signal: AbortSignal,
        log: (line: string) => void
    ): Promise<void> {
        const install = ['install', '-y', '--no-install-recommends', '--', ...names];
        try {
            await this.#apt(install, signal, log);
        } catch (error) {
            signal.throwIfAborted();
            log(`${String(error)}; the lists of packages are made new`);
            await this.#apt(['update'], signal, log);
            await this.#apt(install, signal, log);
        }
    }

    #apt(args: readonly string[], signal: AbortSignal, log: (line: string) => void): Promise<void> {
        return this.#run('apt-get', [...wait, '-q', ...args], signal, log);
    }

    async #run(
        tool: string,
        args: readonly string[],
        signal: AbortSignal,
        log: (line: string) => void
    ): Promise<void> {
        const { code, stdout, stderr } = await this.#ctx.exec(tool, args, {
            cwd: '/',
            env: { DEBIAN_FRONTEND: 'noninteractive' },
            timeoutSeconds: aptSeconds,
            signal
        });
        `${stdout}\n${stderr}`
            .split('\n')
            .filter((line) => line.trim() !== '')
            .forEach((line) => log(line));
        signal.throwIfAborted();
        if (code !== 0) {
            throw fail.TOOL_FAILED({ tool, why: `it ended with ${code ?? 'a signal'}` });
        }
    }

    async #modules(program: string, args: readonly string[]): Promise<readonly string[]> {
        const { code, stdout } = await this.#ctx.exec(program, args, {
            cwd: '/',
            timeoutSeconds: askSeconds
        });
        if (code !== 0) {
            throw errors.toolMissing(program, `reinstall ${program}`);
        }
        const names = stdout.split('\n').filter((line) => /^[A-Za-z]/.test(line));
        return [...new Set(names.map((name) => (name === 'Zend OPcache' ? 'opcache' : name.toLowerCase())))];
    }
}
