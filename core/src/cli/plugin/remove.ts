/** `portico plugin remove`: takes a plugin's package away. */
import { type Command, jsonOption } from '../command/command.ts';
import { plain } from '../command/output.ts';
import { atDesk } from './admin/with-plugin-admin.ts';

export const pluginRemove: Command = {
    name: 'plugin remove',
    positionals: ['<name>'],
    summary: 'Uninstall a plugin',
    details: [
        'Its data and settings stay, and are there again when the same package is installed. Without a panel its folder is deleted by the next start.'
    ],
    options: {
        purge: { type: 'boolean', description: 'Delete its data and settings, too' },
        cascade: { type: 'boolean', description: 'Disable what requires it before it' },
        ...jsonOption
    },
    async run({ config, output, positionals, flag }) {
        const [name = ''] = positionals;
        const purge = flag('purge');
        const message = await atDesk(config, '', (desk) =>
            desk.remove(name, { purge, cascade: flag('cascade') })
        );
        output.say(
            `${name} is uninstalled${purge ? ', and its data are deleted' : '; its data stay'}.${message === null ? '' : ` ${plain(message)}.`}`
        );
        output.result({ name, purged: purge, message }, null);
        return 0;
    }
};
