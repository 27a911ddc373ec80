/** `portico plugin enable`: lets a plugin run, agrees to what it asks for, and takes it out of quarantine. */
import type { Capabilities } from '../../plugins/runtime/generation.ts';
import { type Command, type Input, jsonOption, type Option } from '../command/command.ts';
import { misuse } from '../command/command-error.ts';
import { plain } from '../command/output.ts';
import { describe, hasFailed } from './admin/describe.ts';
import type { PluginAdmin, ShownPlugin, Wished } from './admin/plugin-admin.ts';
import { atDesk } from './admin/with-plugin-admin.ts';

/** How somebody at the console agrees. */
export const grantOptions: Readonly<Record<string, Option>> = {
    'grant-all': { type: 'boolean', description: 'Agree to everything that it asks for' },
    grants: {
        type: 'string',
        value: 'json',
        description:
            'Agree to these capabilities, in the place of those of before: a JSON object, or a file with one'
    }
};

export const pluginEnable: Command = {
    name: 'plugin enable',
    positionals: ['<name>'],
    summary: 'Let a plugin run, and agree to what it asks for',
    details: [
        'One that asks for more than anybody agreed to stays as it is: what it asks for is shown. One that failed, or is in quarantine, is tried again.',
        'Exits with 1 when it is enabled and does not start. Without a panel it starts with the next start.'
    ],
    options: {
        ...grantOptions,
        cascade: {
            type: 'boolean',
            description: 'Enable what it requires before it; --grant-all is for these, too'
        },
        ...jsonOption
    },
    async run({ config, output, positionals, flag, text }) {
        const [name = ''] = positionals;
        const wished = await readWish({ flag, text });
        const shown = await atDesk(config, `portico plugin enable ${name}`, async (desk) => {
            const done: ShownPlugin[] = [];
            const { plugins } = await desk.list();
            const before = flag('cascade') ? requirementsOf(plugins, name) : [];
            for (const each of [
                ...before
                    .filter(({ enabled, state }) => !enabled || state === 'quarantined')
                    .map((plugin) => plugin.name),
                name
            ]) {
                done.push(
                    await enable(desk, plugins, each, each === name || wished === 'all' ? wished : null)
                );
            }
            return { plugins: done, isRunning: desk.isRunning };
        });
        for (const plugin of shown.plugins) {
            output.say(`${plugin.name} ${plain(describe(plugin, shown.isRunning))}.`);
        }
        output.result(shown.plugins.at(-1), null);
        return shown.plugins.some(hasFailed) ? 1 : 0;
    }
};

/** @throws Complaint of misuse */
export async function readWish({ flag, text }: Pick<Input, 'flag' | 'text'>): Promise<Wished> {
    const grants = text('grants');
    if (grants !== undefined && flag('grant-all')) {
        throw misuse('--grants and --grant-all do not go together');
    }
    if (grants === undefined) {
        return flag('grant-all') ? 'all' : null;
    }
    const { readGrants } = await import('./admin/consent.ts');
    return readGrants(grants);
}

async function enable(
    desk: PluginAdmin,
    plugins: readonly ShownPlugin[],
    name: string,
    wished: Wished
): Promise<ShownPlugin> {
    const asked: Capabilities | null =
        plugins.find((plugin) => plugin.name === name)?.capabilities.asked ?? null;
    return (
        await desk.change(
            name,
            { enabled: true, grants: wished === 'all' ? asked : wished },
            { cascade: false }
        )
    ).plugin;
}

/** Whatever it requires, also through others, in the order in which they start. */
function requirementsOf(plugins: readonly ShownPlugin[], name: string): readonly ShownPlugin[] {
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
