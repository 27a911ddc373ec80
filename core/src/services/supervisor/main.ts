/** The supervisor's process. Its only argument is its folder. It outlives the panel, and the services outlive it. */
import { mkdirSync } from 'node:fs';

import { closeInherited } from '../../platform/process/descriptors.ts';
import { ControlServer } from './socket/control.ts';
import { Supervisor } from './supervisor.ts';

/** How often a supervisor without services looks whether it is still wanted. */
const idleMs = 10_000;

closeInherited();

const [, , folder = ''] = process.argv;
const log = (message: string): void => void process.stderr.write(`${new Date().toISOString()} ${message}\n`);
const supervisor = new Supervisor(
    folder,
    { backoffMs: 500, backoffCapMs: 60_000, stableMs: 60_000, outputBytes: 8 * 1024 * 1024 },
    log
);
const control = new ControlServer(folder, supervisor, () => void end());

/** Ends the supervisor so that it is not started again. Services go on. */
async function end(): Promise<void> {
    control.close();
    await supervisor.close();
    process.exit(0);
}

process.umask(0o077);
process.on('SIGHUP', () => undefined);
process.on('SIGINT', () => void end());
process.on('SIGTERM', () => void end());
mkdirSync(folder, { recursive: true, mode: 0o700 });
supervisor.load();
await control.listen();
await supervisor.open();
setInterval(() => void (supervisor.isEmpty && end()), idleMs);
