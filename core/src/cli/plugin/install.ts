/** `portico plugin install`: installs a plugin, or another version of it. */
import { readFileSync, statSync } from 'node:fs';

import { type Command, jsonOption } from '../command/command.ts';
import { CommandError, usageError } from '../command/command-error.ts';
import { toPlainText } from '../command/output.ts';
import { describeState, hasFailed } from './admin/describe.ts';
import type { Source } from './admin/plugin-admin.ts';
import { withPluginAdmin } from './admin/with-plugin-admin.ts';
import { grantOptions, readGrantChoice } from './enable.ts';

const archive = /\.(?:tgz|tar\.gz)$/;
const largestArchive = 64 * 1024 * 1024;
/** Phases as the API names them. */
const phases: Readonly<Record<string, string>> = {
    resolve: 'asking the registry',
    fetch: 'fetching',
    verify: 'verifying',
    unpack: 'unpacking',
    inspect: 'checking the package',
    commit: 'saving the package',
    probe: 'testing it with a copy of its data',
    parked: 'new requests wait',
    stopped: 'the earlier version has stopped',
    copied: 'its data are copied',
    migrated: 'its data are migrated',
    started: 'it has started',
    committed: 'done'
};

/** The command `plugin install`. */
export const pluginInstall: Command = {
    name: 'plugin install',
    positionals: ['<package>'],
    summary: 'Install a plugin, or another version of it, and enable it',
    details: [
        'The package is its npm name in the registry, or an archive that `npm pack` wrote. A version, a range or a tag may follow the name, such as @acme/portico-plugin-hello@1.2.0; without it, the newest version that works with this panel is installed.',
        'A plugin that asks for more than you agree to is installed and stays disabled, and what it asks for is shown. Another version of an installed plugin keeps its settings, its data and whether it is enabled; if it asks for more, it is refused. The earlier version is kept, so you can go back to it without the registry.',
        'Ctrl-C ends the command; a running panel goes on with the task. If no panel runs, no code of the plugin runs either: it starts for the first time with the next start of the panel. Exits with 1 when it is installed and does not start.'
    ],
    options: {
        integrity: {
            type: 'string',
            value: 'sha512-…',
            description: 'The checksum that the archive must have'
        },
        ...grantOptions,
        disabled: { type: 'boolean', description: 'Do not enable the plugin' },
        'restore-data': {
            type: 'boolean',
            description:
                'When going back to the earlier version: also go back to its data, and lose every change since'
        },
        ...jsonOption
    },
    async run({ config, output, positionals, flag, text }) {
        const [typed = ''] = positionals;
        const source = parseSource(typed, text('integrity'));
        const grants = await readGrantChoice({ flag, text });
        const enabled = !flag('disabled');
        const restoreData = flag('restore-data');
        if (restoreData && (!('package' in source) || source.version === undefined || !enabled)) {
            throw usageError(
                '--restore-data needs the version of a package, and cannot be used with --disabled'
            );
        }
        const tell = (phase: string): void => output.say(`  ${phases[phase] ?? phase}`);
        const { plugin, from, settingsLeftOut, isRunning } = await withPluginAdmin(
            config,
            `portico plugin install ${typed}`,
            async (admin) => ({
                ...(await admin.install({ source, enabled, grants, restoreData, tell })),
                isRunning: admin.isRunning
            })
        );
        const {
            name,
            version,
            package: packageName,
            capabilities: { missing }
        } = plugin;
        output.say(
            `${packageName} ${version} is installed${from === null ? '' : from === version ? ' again' : ` and replaces ${from}`}. ${name} ${toPlainText(describeState(plugin, isRunning))}.`
        );
        if (settingsLeftOut !== null) {
            output.say(
                toPlainText(
                    `The imported settings are not valid for it and were left out: ${settingsLeftOut}.`
                )
            );
        }
        if (enabled && !plugin.enabled && missing !== null) {
            const { consentScreen } = await import('./admin/consent.ts');
            output.say(consentScreen(missing, `portico plugin enable ${name}`));
        }
        output.result({ ...plugin, from, settingsLeftOut }, null);
        return hasFailed(plugin) ? 1 : 0;
    }
};

/** Reads the argument: a package name, or an archive. @throws CommandError */
function parseSource(typed: string, integrity: string | undefined): Source {
    const sure = integrity === undefined ? {} : { integrity };
    if (archive.test(typed)) {
        return { tarball: readArchive(typed), ...sure };
    }
    if (/^[./~]/.test(typed)) {
        throw usageError(
            `${typed} is neither an archive (.tgz), as \`npm pack\` writes it, nor the npm name of a package`
        );
    }
    const at = typed.lastIndexOf('@');
    const [name, version] = at > 0 ? [typed.slice(0, at), typed.slice(at + 1)] : [typed, undefined];
    if (version === '') {
        throw usageError(`${typed} has no version after its @`);
    }
    return { package: name, ...(version === undefined ? {} : { version }), ...sure };
}

function readArchive(path: string): Uint8Array {
    try {
        if (statSync(path).size > largestArchive) {
            throw new CommandError(`${path} is larger than ${largestArchive} bytes`);
        }
        return readFileSync(path);
    } catch (error) {
        throw error instanceof CommandError
            ? error
            : new CommandError(`${path} cannot be read: ${(error as Error).message}`);
    }
}
