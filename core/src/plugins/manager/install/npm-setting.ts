/** Asks npm for its registry, and finds the token for it. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

import { fail } from '../../../platform/errors.ts';

const run = promisify(execFile);
const patienceMs = 20_000;

/** The registry to use. */
export interface NpmSetting {
    readonly url: string;
    /** The bearer token that npm would send there; null without one. */
    readonly token: string | null;
}

/**
 * The registry that the admin named, or the one that npm is set to.
 *
 * @param named - the address that the admin named; null: the one that npm is set to
 * @param hide - keeps a secret out of the log
 * @throws TOOL_MISSING 50302 without npm
 */
export async function npmSetting(named: string | null, hide: (secret: string) => void): Promise<NpmSetting> {
    const [url, userConfig] =
        named === null
            ? await Promise.all([ask('registry'), ask('userconfig')])
            : [named, await ask('userconfig').catch(() => '')];
    const token = tokenFor(url, await readFile(userConfig, 'utf8').catch(() => ''));
    if (token !== null) {
        hide(token);
    }
    return { url, token };
}

async function ask(key: string): Promise<string> {
    try {
        const { stdout } = await run('npm', ['config', 'get', key], {
            timeout: patienceMs,
            maxBuffer: 64 * 1024
        });
        return stdout.trim();
    } catch (error) {
        throw fail.TOOL_MISSING(
            { tool: 'npm', install: 'apt-get install npm, or set PORTICO_NPM_REGISTRY' },
            { message: 'npm does not say which registry it is set to', cause: error }
        );
    }
}

/** npm does not tell its tokens. They stand in the user's `.npmrc`, for the address or its beginning. */
function tokenFor(address: string, npmrc: string): string | null {
    const { host, pathname } = new URL(address);
    const place = `//${host}${pathname.replace(/\/?$/, '/')}`;
    const found = npmrc
        .split('\n')
        .map((line) => /^\s*(\/\/[^=\s]+):_authToken\s*=\s*"?([^"\s]+)"?\s*$/.exec(line))
        .filter((line) => line !== null)
        .filter(([, prefix = '']) => place.startsWith(`${prefix.replace(/\/?$/, '')}/`))
        .sort(([, one = ''], [, two = '']) => two.length - one.length)[0];
    return found?.[2]?.replace(/\$\{(\w+)\}/g, (_all, name: string) => process.env[name] ?? '') ?? null;
}
