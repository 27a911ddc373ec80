/** The releases of PHP on this machine: programs `php-fpm<release>` and `php<release>` on the fixed program path. */
import { errors } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { programFolders } from './programs.ts';

/** A release that can serve sites. */
export interface Release {
    /** As in the program's name, such as `8.2`. */
    readonly release: string;
    /** What the program says by `-v`, such as `8.2.35`. */
    readonly version: string;
    /** Name of the program of PHP-FPM. */
    readonly fpm: string;
    /** Name of the command-line program; null where there is none. */
    readonly cli: string | null;
}

const form = /^php-fpm(\d{1,2}\.\d{1,2})$/;
const programForm = /^php(?:-fpm)?\d{1,2}\.\d{1,2}$/;
const askSeconds = 5;

/** How PHP-FPM comes to a Debian machine. */
export const installCommand = 'apt-get install php8.2-fpm php8.2-cli';

/** Finds releases, and remembers what a program said until its file changes. */
export class Releases {
    readonly #ctx: Ctx;
    readonly #said = new Map<string, Promise<string | null>>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** All releases, the newest first. */
    async list(): Promise<readonly Release[]> {
        const programs = await this.#programs();
        const found = await Promise.all(
            [...programs].map(async ([name, stamp]): Promise<Release | null> => {
                const release = form.exec(name)?.[1];
                const version = release === undefined ? null : await this.#version(name, stamp);
                if (release === undefined || version === null) {
                    return null;
                }
                const cli = `php${release}`;
                const cliStamp = programs.get(cli);
                const isCli = cliStamp !== undefined && (await this.#version(cli, cliStamp)) !== null;
                return { release, version, fpm: name, cli: isCli ? cli : null };
            })
        );
        return found.filter((each) => each !== null).sort((a, b) => compareReleases(b.release, a.release));
    }

    /** One release. @throws RELEASE_UNKNOWN 42251 */
    async get(release: string): Promise<Release> {
        const found = (await this.list()).find((each) => each.release === release);
        if (found === undefined) {
            throw fail.RELEASE_UNKNOWN({ release });
        }
        return found;
    }

    /** The release of a new site. @throws RELEASE_UNKNOWN 42251; TOOL_MISSING 50302 without any */
    async choose(release: string | undefined): Promise<Release> {
        const wanted = release ?? this.#ctx.settings.defaultRelease;
        if (wanted !== undefined) {
            return this.get(wanted);
        }
        const [newest] = await this.list();
        if (newest === undefined) {
            throw errors.toolMissing('php-fpm', installCommand);
        }
        return newest;
    }

    /** The command-line program of a release. @throws TOOL_MISSING 50302 */
    async cli(release: string): Promise<string> {
        const { cli } = await this.get(release);
        if (cli === null) {
            throw errors.toolMissing(`php${release}`, `apt-get install php${release}-cli`);
        }
        return cli;
    }

    /** Names of programs with a stamp that changes when the file does. The first folder that has a name counts. */
    async #programs(): Promise<ReadonlyMap<string, string>> {
        const programs = new Map<string, string>();
        for (const path of programFolders) {
            const files = this.#ctx.files(path);
            // These folders hold thousands of programs, of which few are of PHP.
            const names = await files.names('').catch(() => []);
            for (const { name, type } of names) {
                if (programForm.test(name) && type !== 'folder' && !programs.has(name)) {
                    programs.set(name, (await files.stat(name)).version);
                }
            }
        }
        return programs;
    }

    #version(program: string, stamp: string): Promise<string | null> {
        const key = `${program} ${stamp}`;
        const said = this.#said.get(key) ?? this.#ask(program);
        this.#said.set(key, said);
        void said.then((version) => version === null && this.#said.delete(key));
        return said;
    }

    async #ask(program: string): Promise<string | null> {
        try {
            const { code, stdout } = await this.#ctx.exec(program, ['-v'], { timeoutSeconds: askSeconds });
            return code === 0 ? (/^PHP (\d+\.\d+\.\d+\S*)/m.exec(stdout)?.[1] ?? null) : null;
        } catch (error) {
            this.#ctx.log.warn(`${program} does not say its version`, { error: String(error) });
            return null;
        }
    }
}

/** Orders releases by their numbers, the older first. */
export function compareReleases(a: string, b: string): number {
    const [[major = 0, minor = 0], [otherMajor = 0, otherMinor = 0]] = [a, b].map((text) =>
        text.split('.').map(Number)
    ) as [number[], number[]];
    return major - otherMajor || minor - otherMinor;
}
