/** The command line: finds the command and runs it. An error becomes one sentence and an exit code. */
import { readFileSync } from 'node:fs';

import { type Command, parseInput } from './command/command.ts';
import { CommandError, usageError } from './command/command-error.ts';
import { commandHelp, overview } from './command/help.ts';
import { createOutput, toPlainText } from './command/output.ts';
import { commands } from './commands.ts';

async function main(args: readonly string[]): Promise<number> {
    const [first = '', second = ''] = args;
    if (first === '--version' || (args.length === 2 && second === '--version')) {
        const { version } = JSON.parse(
            readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
        ) as { version: string };
        return print(version);
    }
    if (['--help', '-h', 'help'].includes(first)) {
        return print(overview(commands, null));
    }
    const command = commands.find(({ name }) => name === first || name === `${first} ${second}`);
    if (command === undefined) {
        const isGroup = commands.some(({ name }) => name.startsWith(`${first} `));
        if (isGroup && ['--help', '-h'].includes(second)) {
            return print(overview(commands, first));
        }
        throw unknown(first, second, isGroup);
    }
    return runCommand(command, args.slice(command.name.split(' ').length));
}

async function runCommand(command: Command, args: readonly string[]): Promise<number> {
    const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args;
    if (own.includes('--help') || own.includes('-h')) {
        return print(commandHelp(command));
    }
    if (own.includes('--version')) {
        return main(['--version']);
    }
    try {
        return await command.run(
            parseInput(command, args, process.env, process.cwd(), (json) => createOutput(process, json))
        );
    } catch (error) {
        throw error instanceof CommandError && error.exitCode === 2
            ? usageError(`${error.message}\nSee: portico ${command.name} --help`)
            : error;
    }
}

function unknown(first: string, second: string, isGroup: boolean): CommandError {
    if (first === '') {
        return usageError(`which command?\n\n${overview(commands, null)}`);
    }
    const typed = isGroup && second !== '' ? `${first} ${second}` : first;
    const what =
        isGroup && second === ''
            ? `which command of "${first}"?`
            : `there is no command ${JSON.stringify(typed)}.`;
    return usageError(`${what}\n\n${overview(commands, isGroup ? first : null)}`);
}

function print(text: string): number {
    process.stdout.write(`${text}\n`);
    return 0;
}

function isDebugging(): boolean {
    return ['debug', 'trace'].includes(process.env['PORTICO_LOG_LEVEL'] ?? '');
}

/** A reader that stops reading, such as `head`, is no failure of the command. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1);
});

process.umask(0o077); // files that a command creates in the data folder can only be read by their owner

try {
    process.exitCode = await main(process.argv.slice(2));
} catch (error) {
    const isExpected = error instanceof CommandError;
    const message =
        error instanceof Error
            ? isDebugging() && !isExpected
                ? (error.stack ?? error.message)
                : error.message
            : String(error);
    process.stderr.write(`portico: ${toPlainText(message)}\n`);
    process.exit(isExpected ? error.exitCode : 1); // a panel that could not start may have left timers and child processes
}
