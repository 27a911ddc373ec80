/** The configurations of sites on the disk: a draft is tried as the account by PHP-FPM itself before it takes the place of what is there. */
import { isFailure } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import type { Account } from '../sites/machine/accounts.ts';
import type { Folders } from '../sites/machine/folders.ts';
import { configFolder, type Site, socketPath, statusSocketPath } from '../sites/site.ts';
import type { Release } from '../versions/releases.ts';
import { type Config, render } from './render.ts';

/** Which configuration is meant. */
export interface ConfigTarget {
    readonly site: Site;
    readonly slot: number;
    readonly release: Release;
    readonly revision: number;
    readonly account: Account;
}

/** What PHP-FPM says of a configuration. */
export interface Verdict {
    readonly ok: boolean;
    readonly output: string;
}

const draft = 'draft';
const testSeconds = 10;

/** Renders, tries and places configurations. */
export class Configurations {
    readonly #ctx: Ctx;
    readonly #folders: Folders;

    constructor(ctx: Ctx, folders: Folders) {
        this.#ctx = ctx;
        this.#folders = folders;
    }

    /** The texts of a configuration. */
    async render({ site, slot, release, revision }: ConfigTarget): Promise<Config> {
        return render({
            folder: site.folder,
            extraPaths: site.extraPaths,
            configFolder: configFolder(site, slot),
            socket: socketPath(site, slot),
            statusSocket: statusSocketPath(site, slot),
            release: release.release,
            slot,
            revision,
            env: await this.environment(site),
            values: site.values,
            pool: site.pool
        });
    }

    /** The environment of a site, opened. */
    async environment({ env }: Pick<Site, 'env'>): Promise<Readonly<Record<string, string>>> {
        return env === '' ? {} : (JSON.parse(await this.#ctx.secrets.open(env)) as Record<string, string>);
    }

    /** Lets PHP-FPM read a configuration as the account of the site. Nothing of it takes effect. */
    async check(target: ConfigTarget): Promise<Verdict> {
        const { site, slot, release, account } = target;
        await this.#folders.createRun(site, slot, account);
        const folder = `${configFolder(site, slot)}/${draft}`;
        await this.#folders.remove(folder);
        try {
            await this.#folders.createConfig(folder, account);
            await this.#write(folder, await this.render(target), account);
            return await this.#test(release, folder, account);
        } finally {
            await this.#folders.remove(folder);
        }
    }

    /** Puts a configuration in place after PHP-FPM has accepted it. @throws PHP_REJECTED 42250 and nothing changed */
    async place(target: ConfigTarget): Promise<void> {
        await this.mustPass(target);
        await this.write(target);
    }

    /** @throws PHP_REJECTED 42250 for what PHP-FPM does not accept */
    async mustPass(target: ConfigTarget): Promise<void> {
        const { ok, output } = await this.check(target);
        if (!ok) {
            throw fail.PHP_REJECTED({ output });
        }
    }

    /** Writes a configuration that PHP-FPM has not tried. */
    async write(target: ConfigTarget): Promise<void> {
        const { site, slot, account } = target;
        await this.#folders.createRun(site, slot, account);
        await this.#write(configFolder(site, slot), await this.render(target), account);
    }

    /** Whether the files on the disk are this configuration. */
    async isPlaced(target: ConfigTarget): Promise<boolean> {
        const { fpm, ini } = await this.render(target);
        const folder = configFolder(target.site, target.slot);
        const [oldFpm, oldIni] = [
            await this.#read(folder, 'fpm.conf'),
            await this.#read(folder, 'ini/site.ini')
        ];
        return oldFpm === fpm && oldIni === ini;
    }

    async #write(folder: string, { fpm, ini }: Config, account: Account): Promise<void> {
        await this.#folders.write(`${folder}/ini`, 'site.ini', ini, account);
        await this.#folders.write(folder, 'fpm.conf', fpm, account);
    }

    async #read(folder: string, name: string): Promise<string | null> {
        try {
            const handle = await this.#ctx.files(folder).open(name);
            try {
                return await handle.readFile('utf8');
            } finally {
                await handle.close();
            }
        } catch (error) {
            if (isFailure(error) && error.code === 40400) {
                return null;
            }
            throw error;
        }
    }

    async #test({ fpm }: Release, folder: string, { name }: Account): Promise<Verdict> {
        const { code, stdout, stderr, timedOut } = await this.#ctx.exec(
            fpm,
            ['--test', '--fpm-config', `${folder}/fpm.conf`],
            {
                user: name,
                cwd: '/',
                env: iniEnvironment(folder),
                timeoutSeconds: testSeconds,
                maxOutputBytes: 65_536
            }
        );
        const said = `${stderr}${stdout}`.trim();
        return timedOut
            ? { ok: false, output: `${fpm} did not end within ${testSeconds} s\n${said}`.trim() }
            : { ok: code === 0, output: said };
    }
}

/** The environment that makes PHP read the INI file of a configuration after those of the system. */
export function iniEnvironment(folder: string): Readonly<Record<string, string>> {
    return { PHP_INI_SCAN_DIR: `:${folder}/ini` };
}
