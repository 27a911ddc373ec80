/** The shape of a command. Its help text and the reading of its arguments are derived from it. */
import { parseArgs } from 'node:util';

import { type Config, readConfig } from '../../platform/config.ts';
import { usageError } from './command-error.ts';
import type { Output } from './output.ts';

/** An option, as `--name` or `--name <value>`. */
export interface Option {
    readonly type: 'string' | 'boolean';
    /** The word for the value in the help text, as in `--name <name>`. */
    readonly value?: string;
    readonly description: string;
}

/** One command of the command line: what it is called, what it takes, and the function that runs it. */
export interface Command {
    /** One or two words, as typed. */
    readonly name: string;
    /** Positional arguments as the help text shows them: one word for each, in brackets when it may be left out. After `…` in the last one there may be more. */
    readonly positionals: readonly string[];
    /** First line of the help text. */
    readonly summary: string;
    /** The other paragraphs of the help text. */
    readonly details: readonly string[];
    readonly options: Readonly<Record<string, Option>>;
    /** Runs the command. @returns the exit code */
    run(input: Input): Promise<number>;
}

/** The arguments of one call. */
export interface Input {
    readonly config: Config;
    readonly output: Output;
    readonly positionals: readonly string[];
    /** The value of an option; undefined when it was not given. @throws CommandError when it is empty */
    text(option: string): string | undefined;
    /** The value of an option. @throws CommandError when it was not given */
    required(option: string): string;
    /** Whether an option without a value was given. */
    flag(option: string): boolean;
}

/** Options of every command. */
export const commonOptions: Readonly<Record<string, Option>> = {
    'data-dir': {
        type: 'string',
        value: 'folder',
        description: 'The data folder; else PORTICO_DATA_DIR, else ./data'
    },
    help: { type: 'boolean', description: 'Show this text' }
};

/** The option of commands whose result a program may read. */
export const jsonOption: Readonly<Record<string, Option>> = {
    json: { type: 'boolean', description: 'Write the result as one JSON document' }
};

/** Reads the arguments of a command. @throws CommandError of wrong use */
export function parseInput(
    command: Command,
    args: readonly string[],
    environment: NodeJS.ProcessEnv,
    cwd: string,
    output: (json: boolean) => Output
): Input {
    const options = { ...command.options, ...commonOptions };
    const { values, positionals } = parse(command, args, options);
    const most = command.positionals.at(-1)?.endsWith('…]') === true ? Infinity : command.positionals.length;
    const least = command.positionals.filter((word) => !word.startsWith('[')).length;
    if (positionals.length > most) {
        throw usageError(`unexpected argument ${JSON.stringify(positionals[most])}`);
    }
    if (positionals.length < least) {
        throw usageError(`the argument ${command.positionals[positionals.length]} is missing`);
    }
    const text = (option: string): string | undefined => {
        const value = values[option];
        if (value === '') {
            throw usageError(`--${option} is empty`);
        }
        return typeof value === 'string' ? value : undefined;
    };
    const dataDir = text('data-dir');
    return {
        config: loadConfig(
            dataDir === undefined ? environment : { ...environment, PORTICO_DATA_DIR: dataDir },
            cwd
        ),
        output: output(values['json'] === true),
        positionals,
        text,
        required(option) {
            const value = text(option);
            if (value === undefined) {
                throw usageError(`--${option} is missing`);
            }
            return value;
        },
        flag: (option) => values[option] === true
    };
}

function parse(
    command: Command,
    args: readonly string[],
    options: Readonly<Record<string, Option>>
): {
    readonly values: Readonly<Record<string, string | boolean | undefined>>;
    readonly positionals: readonly string[];
} {
    try {
        const types = Object.fromEntries(Object.entries(options).map(([name, { type }]) => [name, { type }]));
        const { values, positionals, tokens } = parseArgs({
            args: [...args],
            options: types,
            allowPositionals: true,
            strict: true,
            tokens: true
        });
        const names = tokens.filter((token) => token.kind === 'option').map(({ name }) => name);
        const twice = names.find((name, index) => names.indexOf(name) !== index);
        if (twice !== undefined) {
            throw usageError(`--${twice} is given twice`);
        }
        return { values: values as Record<string, string | boolean | undefined>, positionals };
    } catch (error) {
        if ((error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS') === true) {
            throw usageError(`${command.name}: ${(error as Error).message}`);
        }
        throw error;
    }
}

function loadConfig(environment: NodeJS.ProcessEnv, cwd: string): Config {
    try {
        return readConfig(environment, cwd);
    } catch (error) {
        throw usageError((error as Error).message);
    }
}
