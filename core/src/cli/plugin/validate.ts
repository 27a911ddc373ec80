/** `portico plugin validate`: checks whether a panel would accept a plugin. */
import { type Command, jsonOption } from '../command/command.ts';

/** The command `plugin validate`. */
export const pluginValidate: Command = {
    name: 'plugin validate',
    positionals: ['[plugin]'],
    summary: 'Check a plugin as this panel would: its manifest, its code, its routes',
    details: [
        'The plugin is a folder, by default the current one, or an archive that `npm pack` wrote. It is imported and runs in a panel in memory. Exits with 1 when there is an error; each finding says how to correct it.'
    ],
    options: jsonOption,
    async run({ output, positionals }) {
        const { checkPlugin } = await import('./suite.ts');
        return checkPlugin(positionals[0] ?? '.', output, { cycles: 1 });
    }
};
