/** `portico plugin enable`: enables a plugin, grants what it asks for, and ends its quarantine. */
import type { Capabilities } from '../../plugins/runtime/generation/generation.ts';
import { type Command, type Input, jsonOption, type Option } from '../command/command.ts';
import { usageError } from '../command/command-error.ts';
import { toPlainText } from '../command/output.ts';
import { describeState, hasFailed } from './admin/describe.ts';
import type { GrantChoice, PluginAdmin, ShownPlugin } from './admin/plugin-admin.ts';
import { withPluginAdmin } from './admin/with-plugin-admin.ts';

/** The options by which a person agrees to capabilities. */
export const grantOptions: Readonly<Record<string, Option>> = {
    'grant-all': { type: 'boolean', description: 'Agree to everything that it asks for' },
    grants: {
        type: 'string',
        value: 'json',
        description:
            'Agree to these capabilities, which replace the earlier ones: a JSON object, or a file with one'
    }
};

/** The command `plugin enable`. */
export const pluginEnable: Command = {
    name: 'plugin enable',
    positionals: ['<name>'],
    summary: 'Enable a plugin, and agree to what it asks for',
    details: [
        'A plugin that asks for more than was granted stays as it is, and what it asks for is shown. A plugin that failed, or is in quarantine, is started again.',
        'Exits with 1 when the plugin does not start. If no panel runs, the plugin starts with the next start of the panel.'
    ],
    options: {
        ...grantOptions,
        cascade: {
            type: 'boolean',
            description: 'First enable the plugins that it requires; --grant-all counts for these too'
        },
        ...jsonOption
    },
    async run({ config, output, positionals, flag, text }) {
        const [name = ''] = positionals;
        const choice = await readGrantChoice({ flag, text });
        const shown = await withPluginAdmin(config, `portico plugin enable ${name}`, async (admin) => {
            const done: ShownPlugin[] = [];
            const { plugins } = await admin.list();
            const before = flag('cascade') ? findRequirements(plugins, name) : [];
            for (const each of [
                ...before
                    .filter(({ enabled, state }) => !enabled || state === 'quarantined')
                    .map((plugin) => plugin.name),
                name
            ]) {
                done.push(
                    await enable(admin, plugins, each, each === name || choice === 'all' ? choice : null)
                );
            }
            return { plugins: done, isRunning: admin.isRunning };
        });
        for (const plugin of shown.plugins) {
            output.say(`${plugin.name} ${toPlainText(describeState(plugin, shown.isRunning))}.`);
        }
        output.result(shown.plugins.at(-1), null);
        return shown.plugins.some(hasFailed) ? 1 : 0;
    }
};

/** Reads what the person agrees to from the options. @throws CommandError of wrong use */
export async function readGrantChoice({ flag, text }: Pick<Input, 'flag' | 'text'>): Promise<GrantChoice> {
    const grants = text('grants');
    if (grants !== undefined && flag('grant-all')) {
        throw usageError('use either --grants or --grant-all');
    }
    if (grants === undefined) {
        return flag('grant-all') ? 'all' : null;
    }
    const { readGrants } = await import('./admin/consent.ts');
    return readGrants(grants);
}

async function enable(
    admin: PluginAdmin,
    plugins: readonly ShownPlugin[],
    name: string,
    choice: GrantChoice
): Promise<ShownPlugin> {
    const asked: Capabilities | null =
        plugins.find((plugin) => plugin.name === name)?.capabilities.asked ?? null;
    return (
        await admin.change(
            name,
            { enabled: true, grants: choice === 'all' ? asked : choice },
            { cascade: false }
        )
    ).plugin;
}

/** Finds all plugins that a plugin requires, directly or through others, in the order in which they start. */
function findRequirements(plugins: readonly ShownPlugin[], name: string): readonly ShownPlugin[] {
    const names = new Set<string>();
    const visit = (one: string): void =>
        Object.keys(plugins.find((plugin) => plugin.name === one)?.requires ?? {})
            .filter((other) => other !== name && !names.has(other))
            .forEach((other) => {
                names.add(other);
                visit(other);
            });
    visit(name);
    return plugins.filter(
        (plugin, at) =>
            names.has(plugin.name) && plugins.findIndex((each) => each.name === plugin.name) === at
    );
}
