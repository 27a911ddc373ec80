/** The entry of the command line: runs the command that was typed, and ends with its exit code. */
import { runCommandLine } from './command-line.ts';

/** A reader that stops reading, such as `head`, is no failure of the command. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1);
});

process.umask(0o077); // files that a command creates in the data folder can only be read by their owner

const { code, failed } = await runCommandLine(process.argv.slice(2), process);
process.exitCode = code;
if (failed) {
    process.exit(); // a panel that could not start may have left timers and child processes
}
