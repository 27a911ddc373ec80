/** `portico plugin dev`: runs a panel for the author of a plugin. */
import type { Command } from '../command/command.ts';
import { usageError } from '../command/command-error.ts';

/** The command `plugin dev`. */
export const pluginDev: Command = {
    name: 'plugin dev',
    positionals: ['[folder]'],
    summary: 'Run a panel with the plugin of a folder, and reload the plugin whenever a file is saved',
    details: [
        'The plugin runs from src/index.ts if that exists, else from the file that "exports" names, and is granted what its manifest asks for. If a saved version cannot be loaded or started, the error is shown, and the version before goes on running.',
        'The panel shows its pages too: the one that is made from the routes, and those that the plugin brings. For these it writes the types of the operations into page-operations.d.ts.',
        'Without --data-dir the panel starts empty and is removed at the end. A token for trying routes is written to standard output.'
    ],
    options: {
        port: { type: 'string', value: 'number', description: 'Port of the panel; a free one without it' }
    },
    async run({ config, output, positionals, text }) {
        const port = Number(text('port') ?? 0);
        if (!Number.isInteger(port) || port < 0 || port > 65_535) {
            throw usageError('--port must be a port number');
        }
        const { develop } = await import('./develop/dev-panel.ts');
        return develop({
            config,
            output,
            folder: positionals[0] ?? '.',
            port,
            keep: text('data-dir') !== undefined
        });
    }
};
