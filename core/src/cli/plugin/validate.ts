/** `portico plugin validate`: whether a panel would take a plugin. */
import { type Command, jsonOption } from '../command/command.ts';

export const pluginValidate: Command = {
    name: 'plugin validate',
    positionals: ['[plugin]'],
    summary: 'Check a plugin as this panel would take it: its manifest, its code, its routes',
    details: [
        'The plugin is a folder, else the one you are in, or what `npm pack` wrote. It is imported and runs in a panel in memory. Exits with 1 when something is to be mended; each finding says how.'
    ],
    options: jsonOption,
    async run({ output, positionals }) {
        const { checkPlugin } = await import('./suite.ts');
        return checkPlugin(positionals[0] ?? '.', output, { cycles: 1 });
    }
};
