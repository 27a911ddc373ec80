/** Finds the command that was typed and runs it. An error becomes one sentence and an exit code. */
import { readFileSync } from 'node:fs';

import { type Command, parseInput } from './command/command.ts';
import { CommandError, usageError } from './command/command-error.ts';
import { commandHelp, overview } from './command/help.ts';
import { createOutput, type Streams, toPlainText } from './command/output.ts';
import { commands } from './commands.ts';

/** Where a command runs: its streams, its environment and its working folder. */
export interface Surroundings extends Streams {
    readonly env: NodeJS.ProcessEnv;
    cwd(): string;
}

/** How a command ended. */
export interface Ending {
    readonly code: number;
    /** The command failed, and may have left timers and child processes. */
    readonly failed: boolean;
}

/** Runs one line of arguments. It never rejects. */
export async function runCommandLine(args: readonly string[], around: Surroundings): Promise<Ending> {
    try {
        return { code: await new CommandLine(around).run(args), failed: false };
    } catch (error) {
        const isExpected = error instanceof CommandError;
        const message =
            error instanceof Error
                ? isDebugging(around.env) && !isExpected
                    ? (error.stack ?? error.message)
                    : error.message
                : String(error);
        around.stderr.write(`portico: ${toPlainText(message)}\n`);
        return { code: isExpected ? error.exitCode : 1, failed: true };
    }
}

class CommandLine {
    readonly #around: Surroundings;

    constructor(around: Surroundings) {
        this.#around = around;
    }

    async run(args: readonly string[]): Promise<number> {
        const [first = '', second = ''] = args;
        if (first === '--version' || (args.length === 2 && second === '--version')) {
            const { version } = JSON.parse(
                readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
            ) as { version: string };
            return this.#print(version);
        }
        if (['--help', '-h', 'help'].includes(first)) {
            return this.#print(overview(commands, null));
        }
        const command = commands.find(({ name }) => name === first || name === `${first} ${second}`);
        if (command === undefined) {
            const isGroup = commands.some(({ name }) => name.startsWith(`${first} `));
            if (isGroup && ['--help', '-h'].includes(second)) {
                return this.#print(overview(commands, first));
            }
            throw unknown(first, second, isGroup);
        }
        return this.#runCommand(command, args.slice(command.name.split(' ').length));
    }

    async #runCommand(command: Command, args: readonly string[]): Promise<number> {
        const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args;
        if (own.includes('--help') || own.includes('-h')) {
            return this.#print(commandHelp(command));
        }
        if (own.includes('--version')) {
            return this.run(['--version']);
        }
        const around = this.#around;
        try {
            return await command.run(
                parseInput(command, args, around.env, around.cwd(), (json) => createOutput(around, json))
            );
        } catch (error) {
            throw error instanceof CommandError && error.exitCode === 2
                ? usageError(`${error.message}\nSee: portico ${command.name} --help`)
                : error;
        }
    }

    #print(text: string): number {
        this.#around.stdout.write(`${text}\n`);
        return 0;
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

function isDebugging(environment: NodeJS.ProcessEnv): boolean {
    return ['debug', 'trace'].includes(environment['PORTICO_LOG_LEVEL'] ?? '');
}
