/** `portico plugin remove`: uninstalls a plugin. */
import { type Command, jsonOption } from '../command/command.ts';
import { toPlainText } from '../command/output.ts';
import { withPluginAdmin } from './admin/with-plugin-admin.ts';

/** The command `plugin remove`. */
export const pluginRemove: Command = {
    name: 'plugin remove',
    positionals: ['<name>'],
    summary: 'Uninstall a plugin',
    details: [
        'Its data and settings stay, and are used again when the same package is installed. If no panel runs, its folder is deleted by the next start of the panel.'
    ],
    options: {
        purge: { type: 'boolean', description: 'Delete its data and settings too' },
        cascade: { type: 'boolean', description: 'First disable the plugins that require it' },
        ...jsonOption
    },
    async run({ config, output, positionals, flag }) {
        const [name = ''] = positionals;
        const purge = flag('purge');
        const message = await withPluginAdmin(config, '', (admin) =>
            admin.remove(name, { purge, cascade: flag('cascade') })
        );
        output.say(
            `${name} is uninstalled${purge ? ', and its data are deleted' : '; its data stay'}.${message === null ? '' : ` ${toPlainText(message)}.`}`
        );
        output.result({ name, purged: purge, message }, null);
        return 0;
    }
};
