/** `portico plugin list`: what is there, or what the npm registry offers. */
import type { Offer } from '@portico/registry';

import { type Command, jsonOption } from '../command/command.ts';
import { type Output, plain } from '../command/output.ts';
import { columns, failureOf } from './admin/describe.ts';
import type { Listed, ShownPlugin } from './admin/plugin-admin.ts';
import { atDesk } from './admin/with-plugin-admin.ts';

export const pluginList: Command = {
    name: 'plugin list',
    positionals: [],
    summary: 'List the plugins, and why one does not run; or what the npm registry offers',
    details: [
        'In the order in which they start. Without a panel it is what the next start finds: no code of a plugin is run, and why one failed is as of the last start.'
    ],
    options: {
        available: { type: 'boolean', description: 'What the npm registry offers instead of what is there' },
        ...jsonOption
    },
    async run({ config, output, flag }) {
        if (flag('available')) {
            const found = await atDesk(config, '', (desk) => desk.offers());
            output.result(
                found,
                found.offers.length === 0
                    ? null
                    : columns([
                          ['NAME', 'VERSION', 'INSTALLED', 'PACKAGE'],
                          ...found.offers.map(rowOfOffer)
                      ]).join('\n')
            );
            say(output, found.message);
            return 0;
        }
        const listed = await atDesk(config, '', (desk) => desk.list());
        say(output, listed.message);
        output.result(listed, textOf(listed));
        return 0;
    }
};

function textOf({ plugins }: Listed): string | null {
    const rows = columns([
        ['NAME', 'VERSION', 'STATE', 'ENABLED', 'PACKAGE'],
        ...plugins.map(({ name, version, state, enabled, package: packageName }) =>
            [name, version ?? '-', state, enabled ? 'yes' : 'no', packageName ?? '-'].map(plain)
        )
    ]);
    return plugins.length === 0
        ? null
        : [
              rows[0],
              ...plugins.flatMap((plugin, at) => [
                  rows[at + 1],
                  ...notesOf(plugin).map((note) => `    ${note}`)
              ])
          ].join('\n');
}

function notesOf(plugin: ShownPlugin): readonly string[] {
    const {
        name,
        capabilities: { missing },
        available,
        quarantinedAt,
        enabled,
        state
    } = plugin;
    const failure = failureOf(plugin);
    return [
        ...(failure === null
            ? []
            : [
                  `${state === 'failed' || state === 'quarantined' ? 'Failed' : 'Failed the last time'}: ${failure}`
              ]),
        ...(quarantinedAt === null
            ? []
            : [
                  `In quarantine since ${quarantinedAt}, after three failures within an hour: portico plugin enable ${name} tries it again`
              ]),
        ...(missing === null || enabled
            ? []
            : [
                  `Asks for what was not granted: ${Object.keys(missing).join(', ')}. See: portico plugin enable ${name}`
              ]),
        ...(available === null ? [] : [`There is a newer version, ${available}`])
    ].map(plain);
}

function rowOfOffer({
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
    ].map((cell) => plain(cell).replaceAll(/\s+/g, ' '));
}

function say(output: Output, message: string | null): void {
    if (message !== null) {
        output.say(plain(message));
    }
}
