/** `portico plugin list`: lists the plugins of the panel, or those that the npm registry offers. */
import type { Offer } from '@portico/registry';

import { type Command, jsonOption } from '../command/command.ts';
import { type Output, toPlainText } from '../command/output.ts';
import { alignColumns, describeFailure } from './admin/describe.ts';
import type { PluginListing, ShownPlugin } from './admin/plugin-admin.ts';
import { withPluginAdmin } from './admin/with-plugin-admin.ts';

/** The command `plugin list`. */
export const pluginList: Command = {
    name: 'plugin list',
    positionals: [],
    summary: 'List the plugins, and why one does not run; or those that the npm registry offers',
    details: [
        'The plugins are listed in the order in which they start. If no panel runs, the list shows what the next start finds: no code of a plugin is run, and a failure is that of the last start.'
    ],
    options: {
        available: { type: 'boolean', description: 'List what the npm registry offers instead' },
        ...jsonOption
    },
    async run({ config, output, flag }) {
        if (flag('available')) {
            const found = await withPluginAdmin(config, '', (admin) => admin.offers());
            output.result(
                found,
                found.offers.length === 0
                    ? null
                    : alignColumns([
                          ['NAME', 'VERSION', 'INSTALLED', 'PACKAGE'],
                          ...found.offers.map(formatOffer)
                      ]).join('\n')
            );
            say(output, found.message);
            return 0;
        }
        const listed = await withPluginAdmin(config, '', (admin) => admin.list());
        say(output, listed.message);
        output.result(listed, formatListing(listed));
        return 0;
    }
};

function formatListing({ plugins }: PluginListing): string | null {
    const rows = alignColumns([
        ['NAME', 'VERSION', 'STATE', 'ENABLED', 'PACKAGE'],
        ...plugins.map(({ name, version, state, enabled, package: packageName }) =>
            [name, version ?? '-', state, enabled ? 'yes' : 'no', packageName ?? '-'].map(toPlainText)
        )
    ]);
    return plugins.length === 0
        ? null
        : [
              rows[0],
              ...plugins.flatMap((plugin, at) => [
                  rows[at + 1],
                  ...notesFor(plugin).map((note) => `    ${note}`)
              ])
          ].join('\n');
}

function notesFor(plugin: ShownPlugin): readonly string[] {
    const {
        name,
        capabilities: { missing },
        available,
        quarantinedAt,
        enabled,
        state
    } = plugin;
    const failure = describeFailure(plugin);
    return [
        ...(failure === null
            ? []
            : [
                  `${state === 'failed' || state === 'quarantined' ? 'Failed' : 'Failed at the last start'}: ${failure}`
              ]),
        ...(quarantinedAt === null
            ? []
            : [
                  `In quarantine since ${quarantinedAt}, after three failures within an hour: \`portico plugin enable ${name}\` starts it again`
              ]),
        ...(missing === null || enabled
            ? []
            : [
                  `Asks for what was not granted: ${Object.keys(missing).join(', ')}. See: portico plugin enable ${name}`
              ]),
        ...(available === null ? [] : [`There is a newer version, ${available}`])
    ].map(toPlainText);
}

function formatOffer({
    package: packageName,
    name,
    version,
    latest,
    installed,
    conflict,
    upgrade
}: Offer): readonly string[] {
    return [
        name ?? '-',
        version ?? '-',
        installed ?? '-',
        `${packageName}${upgrade ? ' (newer)' : ''}${conflict === null ? '' : `; ${latest} does not work here: ${conflict}`}`
    ].map((cell) => toPlainText(cell).replaceAll(/\s+/g, ' '));
}

function say(output: Output, message: string | null): void {
    if (message !== null) {
        output.say(toPlainText(message));
    }
}
