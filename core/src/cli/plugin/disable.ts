/** `portico plugin disable`: the way out when a plugin keeps the panel from starting. */
import { type Command, jsonOption } from '../command/command.ts';
import { plain } from '../command/output.ts';
import { describe } from './admin/describe.ts';
import { atDesk } from './admin/with-plugin-admin.ts';

export const pluginDisable: Command = {
    name: 'plugin disable',
    positionals: ['<name>'],
    summary: 'Switch a plugin off; its data and settings stay',
    details: [
        'Works without a panel as well, and then runs no code of it: the way out when a plugin keeps the panel from starting.'
    ],
    options: {
        cascade: { type: 'boolean', description: 'Disable what requires it before it' },
        ...jsonOption
    },
    async run({ config, output, positionals, flag }) {
        const [name = ''] = positionals;
        const { plugin, message, isRunning } = await atDesk(config, '', async (desk) => ({
            ...(await desk.change(name, { enabled: false, grants: null }, { cascade: flag('cascade') })),
            isRunning: desk.isRunning
        }));
        output.say(
            `${name} ${plain(describe(plugin, isRunning))}.${message === null ? '' : ` ${plain(message)}.`}`
        );
        output.result(plugin, null);
        return 0;
    }
};
