/** `portico start`: runs the panel in the foreground. */
import { isTakenByConnection } from '../platform/address/ephemeral-port.ts';
import type { Command } from './command/command.ts';
import { CommandError, explainFileError, systemCode } from './command/command-error.ts';
import { databasePath } from './panel/data-folder.ts';

/** The command `start`, which runs the panel until a signal ends it. */
export const start: Command = {
    name: 'start',
    positionals: [],
    summary: 'Run the panel in the foreground',
    details: [
        'SIGTERM and SIGINT end it when the running requests are done. The proxy engine, and with it every site, keeps running. Everything else is set by environment variables.'
    ],
    options: {
        'stop-engine': { type: 'boolean', description: 'End the proxy engine with the panel' }
    },
    async run({ config, flag }) {
        try {
            const { run } = await import('../run.ts'); // the same function as `npm start` runs
            await run(config, { stopEngine: flag('stop-engine') });
        } catch (error) {
            if (systemCode(error) === 'EADDRINUSE') {
                throw new CommandError(
                    isTakenByConnection(config.port)
                        ? `An outgoing connection has the port ${config.port}: reserve it in net.ipv4.ip_local_reserved_ports, or set PORTICO_PORT to one outside of net.ipv4.ip_local_port_range`
                        : `Another program listens on ${config.host}:${config.port}: end it, or set PORTICO_PORT`
                );
            }
            throw explainFileError(error, config.dataDir, databasePath(config.dataDir));
        }
        return new Promise<number>(() => undefined); // the panel ends the process
    }
};
