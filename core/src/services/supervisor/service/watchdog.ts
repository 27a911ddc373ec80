/** Starts the supervisor so that it outlives the panel. */
import { spawn } from 'node:child_process';
import { closeSync, constants, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Exit code of a watchdog that found another one at work. */
const lockHeld = 75;
const outputLimit = 1024 * 1024;
/** Starts the supervisor again until it ends by itself: not even the panel needs to run for that. */
const script = 'while :; do "$@" && exit 0; sleep 0.5; done';

/**
 * Starts a supervisor for a folder, unless one is at work there: the kernel says so by the lock, which a supervisor and its watchdog hold as long as
 * one of them lives. Returns at once; the supervisor's socket answers when it is ready.
 */
export function startSupervisor(folder: string): void {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const main = fileURLToPath(new URL(`../main${extname(import.meta.url)}`, import.meta.url));
    const supervisor = [process.execPath, '--disable-warning=ExperimentalWarning', main, folder];
    const output = openOutput(join(folder, 'supervisor.log'));
    try {
        const child = spawn(
            'flock',
            [
                '-n',
                '-F',
                '-E',
                String(lockHeld),
                join(folder, 'lock'),
                '/bin/sh',
                '-c',
                script,
                'portico-services',
                ...supervisor
            ],
            {
                cwd: '/',
                detached: true,
                stdio: ['ignore', output, output],
                env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }
            }
        );
        child.on('error', () => undefined); // the caller sees that the socket does not answer
        child.unref();
    } finally {
        closeSync(output);
    }
}

function openOutput(path: string): number {
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > outputLimit) {
        renameSync(path, `${path}.1`);
    }
    const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;
    return openSync(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
}
