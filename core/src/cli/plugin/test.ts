/** `portico plugin test`: the conformance suite. */
import { type Command, jsonOption } from '../command/command.ts';
import { usageError } from '../command/command-error.ts';

const usualCycles = 100;

/** The command `portico plugin test`. */
export const pluginTest: Command = {
    name: 'plugin test',
    positionals: ['[plugin]'],
    summary: 'Hold a plugin against what every plugin keeps to: the conformance suite',
    details: [
        'What `portico plugin validate` checks, and more: disabled and enabled again and again with nothing left, and the same answers from a thread of its own.',
        'A conformance.json in the package may say the `settings` without which it does not run, and the `requests` that it is asked: [{ "method", "path", "body", "as", "status" }]. Without a status, any answer below 500 will do.'
    ],
    options: {
        cycles: {
            type: 'string',
            value: 'number',
            description: `How often it is disabled and enabled; ${usualCycles} without it`
        },
        ...jsonOption
    },
    async run({ output, positionals, text }) {
        const cycles = Number(text('cycles') ?? usualCycles);
        if (!Number.isInteger(cycles) || cycles < 1 || cycles > 10_000) {
            throw usageError('--cycles is a whole number from 1 to 10000');
        }
        const { checkPlugin } = await import('./suite.ts');
        return checkPlugin(positionals[0] ?? '.', output, { cycles });
    }
};
