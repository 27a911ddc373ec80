/** The entry of the process: reads the environment and runs the panel. */
import { readConfig } from './platform/config.ts';
import { run } from './run.ts';

const known = '--stop-engine';

try {
    const unknown = process.argv.slice(2).find((argument) => argument !== known);
    if (unknown !== undefined) {
        throw new Error(`Unknown argument ${unknown}; only ${known} is known`);
    }
    await run(readConfig(process.env, process.cwd()), { stopEngine: process.argv.includes(known) });
} catch (error) {
    process.stderr.write(`The panel did not start: ${(error as Error).message}\n`);
    process.exit(1);
}
