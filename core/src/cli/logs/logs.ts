/** `portico logs`: the log of the proxy engine, or of a plugin. */
import { type Command, jsonOption } from '../command/command.ts';
import { usageError } from '../command/command-error.ts';
import { toPlainText } from '../command/output.ts';
import { withRunningPanel } from '../panel/with-panel.ts';

/** The command `logs`, which prints lines of the engine or of one plugin, and follows them. */
export const logs: Command = {
    name: 'logs',
    positionals: ['[plugin]'],
    summary: "Show the proxy engine's log, or that of a plugin",
    details: [
        'Of a plugin, up to 1,000 lines are kept. The panel writes its own log to its standard output, and keeps none. With --json each line is one JSON value.'
    ],
    options: {
        lines: {
            type: 'string',
            value: 'number',
            description: 'So many of the last lines; 100 without it'
        },
        follow: { type: 'boolean', description: 'Go on with each further line, until Ctrl-C' },
        ...jsonOption
    },
    async run({ config, output, positionals: [plugin], text, flag }) {
        const lines = text('lines') ?? '100';
        if (!/^[1-9]\d{0,5}$/.test(lines)) {
            throw usageError('--lines must be a whole number from 1');
        }
        const log =
            plugin === undefined
                ? '/api/proxyengine/logs'
                : `/api/plugins/${encodeURIComponent(plugin)}/logs`;
        const path = `${log}?lines=${lines}&follow=${flag('follow')}`;
        return withRunningPanel(config, async (client) => {
            if (plugin !== undefined) {
                await client.call('GET', `/api/plugins/${encodeURIComponent(plugin)}`); // says when there is none
            }
            for await (const { event, data } of client.events(path, null, new AbortController().signal)) {
                if (event === 'message') {
                    const line = typeof data === 'string' ? data : JSON.stringify(data);
                    process.stdout.write(`${output.json ? JSON.stringify(data) : toPlainText(line)}\n`);
                }
            }
            return 0;
        });
    }
};
