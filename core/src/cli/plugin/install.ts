/** `portico plugin install`: brings a plugin, or another version of one. */
import { readFileSync, statSync } from 'node:fs';

import { type Command, jsonOption } from '../command/command.ts';
import { Complaint, misuse } from '../command/command-error.ts';
import { plain } from '../command/output.ts';
import { describe, hasFailed } from './admin/describe.ts';
import type { Source } from './admin/plugin-admin.ts';
import { atDesk } from './admin/with-plugin-admin.ts';
import { grantOptions, readWish } from './enable.ts';

const archive = /\.(?:tgz|tar\.gz)$/;
const largestArchive = 64 * 1024 * 1024;
/** Phases as the API names them. */
const phases: Readonly<Record<string, string>> = {
    resolve: 'asking the registry',
    fetch: 'fetching',
    verify: 'verifying',
    unpack: 'unpacking',
    inspect: 'looking at what came',
    commit: 'putting it in its place',
    probe: 'trying it on a copy of its data',
    parked: 'new requests wait',
    stopped: 'the version before has stopped',
    copied: 'its data are copied',
    migrated: 'its data are migrated',
    started: 'it has started',
    committed: 'it counts'
};

export const pluginInstall: Command = {
    name: 'plugin install',
    positionals: ['<package>'],
    summary: 'Install a plugin, or another version of one, and enable it',
    details: [
        'The package is the npm name of one in the registry, with a version, a range or a tag where it is not to be the newest that works here, as @acme/portico-plugin-hello@1.2.0. Or it is an archive that `npm pack` wrote.',
        'One that asks for more than you agree to is installed and stays disabled, and what it asks for is shown. Another version of one that is there has the settings and data of that, and is enabled if that is; one that asks for more is refused. The version that was there before is kept, and needs no registry.',
        'Ctrl-C ends the command; a running panel goes on with the task. Without a panel no code of the plugin runs: it is tried by the next start. Exits with 1 when it is installed and does not start.'
    ],
    options: {
        integrity: { type: 'string', value: 'sha512-…', description: 'What the archive must be' },
        ...grantOptions,
        disabled: { type: 'boolean', description: 'Do not enable it' },
        'restore-data': {
            type: 'boolean',
            description:
                'With the version that was there before: go back to the data as it left them, and give up every change since'
        },
        ...jsonOption
    },
    async run({ config, output, positionals, flag, text }) {
        const [typed = ''] = positionals;
        const source = sourceOf(typed, text('integrity'));
        const grants = await readWish({ flag, text });
        const enabled = !flag('disabled');
        const restoreData = flag('restore-data');
        if (restoreData && (!('package' in source) || source.version === undefined || !enabled)) {
            throw misuse('--restore-data goes with the version of a package, and not with --disabled');
        }
        const tell = (phase: string): void => output.say(`  ${phases[phase] ?? phase}`);
        const { plugin, from, settingsLeftOut, isRunning } = await atDesk(
            config,
            `portico plugin install ${typed}`,
            async (desk) => ({
                ...(await desk.install({ source, enabled, grants, restoreData, tell })),
                isRunning: desk.isRunning
            })
        );
        const {
            name,
            version,
            package: packageName,
            capabilities: { missing }
        } = plugin;
        output.say(
            `${packageName} ${version} is installed${from === null ? '' : from === version ? ' anew' : ` in the place of ${from}`}. ${name} ${plain(describe(plugin, isRunning))}.`
        );
        if (settingsLeftOut !== null) {
            output.say(plain(`Its code does not take the settings that waited for it: ${settingsLeftOut}.`));
        }
        if (enabled && !plugin.enabled && missing !== null) {
            const { consentScreen } = await import('./admin/consent.ts');
            output.say(consentScreen(missing, `portico plugin enable ${name}`));
        }
        output.result({ ...plugin, from, settingsLeftOut }, null);
        return hasFailed(plugin) ? 1 : 0;
    }
};

/** @throws Complaint */
function sourceOf(typed: string, integrity: string | undefined): Source {
    const sure = integrity === undefined ? {} : { integrity };
    if (archive.test(typed)) {
        return { tarball: readArchive(typed), ...sure };
    }
    if (/^[./~]/.test(typed)) {
        throw misuse(
            `${typed} is neither an archive (.tgz), as \`npm pack\` writes it, nor the npm name of a package`
        );
    }
    const at = typed.lastIndexOf('@');
    const [name, version] = at > 0 ? [typed.slice(0, at), typed.slice(at + 1)] : [typed, undefined];
    if (version === '') {
        throw misuse(`${typed} has no version after its @`);
    }
    return { package: name, ...(version === undefined ? {} : { version }), ...sure };
}

function readArchive(path: string): Uint8Array {
    try {
        if (statSync(path).size > largestArchive) {
            throw new Complaint(`${path} is larger than ${largestArchive} bytes`);
        }
        return readFileSync(path);
    } catch (error) {
        throw error instanceof Complaint
            ? error
            : new Complaint(`${path} cannot be read: ${(error as Error).message}`);
    }
}
