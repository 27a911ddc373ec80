/** `portico plugin dev`: a panel for whoever writes a plugin. */
import type { Command } from '../command/command.ts';
import { misuse } from '../command/command-error.ts';

export const pluginDev: Command = {
    name: 'plugin dev',
    positionals: ['[folder]'],
    summary: 'Run a panel with the plugin of a folder in it, and reload it whenever a file is saved',
    details: [
        'The plugin runs from src/index.ts where that is there, else from what "exports" names; it has what its manifest asks for. A save that does not load, or does not start, is shown, and what ran before goes on.',
        'Without --data-dir the panel begins empty, on a free port, and is gone at the end. A token for trying routes is written to standard output.'
    ],
    options: {
        port: { type: 'string', value: 'number', description: 'Port of the panel; a free one without it' }
    },
    async run({ config, output, positionals, text }) {
        const port = Number(text('port') ?? 0);
        if (!Number.isInteger(port) || port < 0 || port > 65_535) {
            throw misuse('--port is a port');
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
