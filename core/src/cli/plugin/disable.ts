/** `portico plugin disable`: disables a plugin, also one that keeps the panel from starting. */
import { type Command, jsonOption } from '../command/command.ts';
import { toPlainText } from '../command/output.ts';
import { describeState } from './admin/describe.ts';
import { withPluginAdmin } from './admin/with-plugin-admin.ts';

/** The command `plugin disable`. */
export const pluginDisable: Command = {
    name: 'plugin disable',
    positionals: ['<name>'],
    summary: 'Disable a plugin; its data and settings stay',
    details: [
        'Also works when no panel runs, and then runs no code of the plugin. Use it when a plugin keeps the panel from starting.'
    ],
    options: {
        cascade: { type: 'boolean', description: 'First disable the plugins that require it' },
        ...jsonOption
    },
    async run({ config, output, positionals, flag }) {
        const [name = ''] = positionals;
        const { plugin, message, isRunning } = await withPluginAdmin(config, '', async (admin) => ({
            ...(await admin.change(name, { enabled: false, grants: null }, { cascade: flag('cascade') })),
            isRunning: admin.isRunning
        }));
        output.say(
            `${name} ${toPlainText(describeState(plugin, isRunning))}.${message === null ? '' : ` ${toPlainText(message)}.`}`
        );
        output.result(plugin, null);
        return 0;
    }
};
