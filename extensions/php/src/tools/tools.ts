/** Command-line tools of a site, run as its account: Composer, WP-CLI and Laravel's artisan. */
import { errors, isFailure } from '@portico/sdk';

import { type Configurations, iniEnvironment } from '../config/configurations.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { siteUmask } from '../sites/machine/folders.ts';
import { configFolder, type Site } from '../sites/site.ts';
import { findProgram } from '../versions/programs.ts';
import type { Releases } from '../versions/releases.ts';

/** A program that can run in a site. */
export type ToolName = 'composer' | 'wp' | 'artisan';

/** What a tool is asked to do. */
export interface ToolCall {
    readonly command: string;
    readonly arguments: readonly string[];
}

/** How a tool is run. */
interface Tool {
    readonly commands: RegExp;
    /** Files that tell where its project lies, relative to a folder. */
    readonly marks: readonly string[];
    /** How it comes to the machine; null: it belongs to the project. */
    readonly install: string | null;
    /** Options before the arguments. */
    readonly options: readonly string[];
    /** Commands that do nothing in production without `--force`. */
    readonly forced?: RegExp;
}

const tools: Readonly<Record<ToolName, Tool>> = {
    composer: {
        commands: /^(?:install|update|require|remove|validate)$/,
        marks: ['composer.json'],
        install: 'apt-get install composer',
        options: ['--no-interaction', '--no-ansi']
    },
    wp: {
        commands: /^(?:core|plugin|theme|cache|option)$/,
        marks: ['wp-load.php'],
        install: 'put wp-cli.phar from wp-cli.org at /usr/local/bin/wp',
        options: ['--no-color']
    },
    artisan: {
        commands:
            /^(?:migrate|cache|config|route|view|event|queue|optimize|storage|schedule|about|down|up)(?::[a-z-]{1,40})?$/,
        marks: ['artisan'],
        install: null,
        options: ['--no-interaction', '--no-ansi'],
        forced: /^migrate(?::(?:fresh|refresh|reset|rollback))?$/
    }
};
const seconds = 600;
const memoryBytes = 2 ** 30;
const longestLine = 4_096;

/** Prepares Composer, WP-CLI and Artisan to run in a site. */
export class Tools {
    readonly #ctx: Ctx;
    readonly #releases: Releases;
    readonly #configurations: Configurations;

    constructor(ctx: Ctx, releases: Releases, configurations: Configurations) {
        this.#ctx = ctx;
        this.#releases = releases;
        this.#configurations = configurations;
    }

    /** Composer at work in a folder of a site. @throws TOOL_MISSING 50302 */
    async composer(release: string, cwd: string, args: readonly string[]): Promise<PreparedTool> {
        const { install, options } = tools.composer;
        const script = await findProgram(this.#ctx, 'composer');
        if (script === null) {
            throw errors.toolMissing('composer', install ?? '');
        }
        return { cli: await this.#releases.cli(release), cwd, args: [script, ...args, ...options] };
    }

    /** The program and arguments of a call. @throws VALIDATION_FAILED 40001, TOOL_MISSING 50302 */
    async prepare(
        site: Site,
        name: ToolName,
        { command, arguments: given }: ToolCall
    ): Promise<PreparedTool> {
        const tool = tools[name];
        if (!tool.commands.test(command)) {
            throw errors.invalid([{ path: 'command', message: `${name} has no command ${command} here` }]);
        }
        const cli = await this.#releases.cli(site.release);
        const cwd = await this.#project(site, tool);
        const script = tool.install === null ? `${cwd}/artisan` : await findProgram(this.#ctx, name);
        if (script === null) {
            throw errors.toolMissing(name, tool.install ?? '');
        }
        const force = tool.forced?.test(command) === true ? ['--force'] : [];
        return { cli, cwd, args: [script, command, ...tool.options, ...force, ...given] };
    }

    /** Runs a prepared call to its end, and logs each line that it writes. @throws TOOL_FAILED 42253 */
    async run(
        site: Site,
        name: ToolName,
        { cli, cwd, args, env = {} }: PreparedTool,
        { signal, log }: { readonly signal: AbortSignal; readonly log: (line: string) => void }
    ): Promise<{ readonly exitCode: number }> {
        const home = `${site.folder}/private`;
        await using child = await this.#ctx.spawn(cli, args, {
            user: site.account,
            umask: siteUmask,
            cwd,
            signal,
            timeoutSeconds: seconds,
            limits: { group: { memoryBytes } },
            env: {
                ...(await this.#configurations.environment(site)),
                ...env,
                ...iniEnvironment(configFolder(site, site.slot)),
                HOME: home,
                TMPDIR: `${home}/tmp`,
                COMPOSER_HOME: `${home}/composer`,
                COMPOSER_NO_INTERACTION: '1'
            }
        });
        await child.stdin.close().catch(() => undefined);
        await Promise.all([logLines(child.stdout, log), logLines(child.stderr, log)]);
        const { code, timedOut, limit } = await child.exited;
        signal.throwIfAborted();
        if (code !== 0) {
            const why = timedOut
                ? `it did not end within ${seconds} s`
                : limit === 'memory'
                  ? 'it took more than 1 GiB of memory'
                  : `it ended with ${code ?? 'a signal'}`;
            throw fail.TOOL_FAILED({ tool: name, why });
        }
        return { exitCode: code };
    }

    /** The folder of the project: the one around the served folder, the served folder, or that of the site. */
    async #project(site: Site, { marks, install }: Tool): Promise<string> {
        const parent = site.root.split('/').slice(0, -1).join('/');
        const files = this.#ctx.files(site.folder);
        for (const inner of new Set([parent, site.root, ''])) {
            for (const mark of marks) {
                const path = inner === '' ? mark : `${inner}/${mark}`;
                const entry = await files.stat(path).catch((error: unknown) => {
                    if (isFailure(error)) {
                        return null;
                    }
                    throw error;
                });
                if (entry?.type === 'file') {
                    return inner === '' ? site.folder : `${site.folder}/${inner}`;
                }
            }
        }
        if (install === null) {
            throw errors.notFound(`The site has no ${marks[0] ?? ''}`);
        }
        return parent === '' ? site.folder : `${site.folder}/${parent}`;
    }
}

/** A call of a tool that can be made. */
export interface PreparedTool {
    readonly cli: string;
    readonly cwd: string;
    readonly args: readonly string[];
    /** Beside the environment of the site, and before it. */
    readonly env?: Readonly<Record<string, string>>;
}

async function logLines(output: AsyncIterable<Uint8Array>, log: (line: string) => void): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of output) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n|\r/);
        rest = lines.pop() ?? '';
        lines.filter((line) => line !== '').forEach((line) => log(line.slice(0, longestLine)));
        rest = rest.slice(-longestLine);
    }
    if (rest !== '') {
        log(rest);
    }
}
