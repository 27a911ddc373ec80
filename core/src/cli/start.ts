/** `portico start`: runs the panel in the foreground. */
import type { Command } from './command/command.ts';
import { codeOf, Complaint, explain } from './command/command-error.ts';
import { databaseOf } from './panel/data-folder.ts';

export const start: Command = {
    name: 'start',
    positionals: [],
    summary: 'Run the panel in the foreground',
    details: [
        'SIGTERM and SIGINT end it when the requests under way are done. The proxy engine, and with it every site, keeps running. Everything else is set by the environment.'
    ],
    options: {
        'stop-engine': { type: 'boolean', description: 'End the proxy engine with the panel' }
    },
    async run({ config, flag }) {
        try {
            const { run } = await import('../run.ts'); // the entry of `npm start`: this is the other way in
            await run(config, { stopEngine: flag('stop-engine') });
        } catch (error) {
            if (codeOf(error) === 'EADDRINUSE') {
                throw new Complaint(
                    `Something else listens on ${config.host}:${config.port}: end it, or set PORTICO_PORT`
                );
            }
            throw explain(error, config.dataDir, databaseOf(config.dataDir));
        }
        return new Promise<number>(() => undefined); // the panel ends the process
    }
};
