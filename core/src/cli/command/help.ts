/** The help texts. A test makes sure that the documentation shows the same. */
import { type Command, commonOptions, type Option } from './command.ts';

const width = 100;

/** What `portico <command> --help` shows. */
export function commandHelp(command: Command): string {
    const usage = ['portico', command.name, ...command.positionals, '[options]'].join(' ');
    const options = Object.entries({ ...command.options, ...commonOptions });
    return [
        `Usage: ${usage}`,
        '',
        ...wrap(`${command.summary}.`, ''),
        ...command.details.flatMap((paragraph) => ['', ...wrap(paragraph, '')]),
        '',
        'Options:',
        ...table(options.map(([name, option]) => [heading(name, option), option.description]))
    ].join('\n');
}

/** What `portico --help` shows, or `portico admin --help` for one word. */
export function overview(commands: readonly Command[], word: string | null): string {
    const own = word === null ? commands : commands.filter(({ name }) => name.startsWith(`${word} `));
    return [
        `Usage: portico ${word === null ? '<command>' : `${word} <command>`} [options]`,
        '',
        'Commands:',
        ...table(own.map(({ name, positionals, summary }) => [[name, ...positionals].join(' '), summary])),
        '',
        ...wrap(
            'A command talks to the panel that runs on the data folder. If no panel runs, it works on the folder itself. `portico <command> --help` says more.',
            ''
        ),
        '',
        'Options:',
        ...table([
            ...Object.entries(commonOptions).map(
                ([name, option]) => [heading(name, option), option.description] as const
            ),
            ['--version', 'Show the version']
        ]),
        '',
        'Exit codes: 0 done, 1 failed, 2 wrong use.'
    ].join('\n');
}

function heading(name: string, { value }: Option): string {
    return `--${name}${value === undefined ? '' : ` <${value}>`}`;
}

function table(rows: readonly (readonly [string, string])[]): string[] {
    const column = Math.max(...rows.map(([left]) => left.length)) + 4;
    return rows.flatMap(([left, right]) =>
        wrap(right, ' '.repeat(column)).map((line, index) =>
            index === 0 ? `  ${left}`.padEnd(column) + line.slice(column) : line
        )
    );
}

function wrap(text: string, indent: string): string[] {
    const lines: string[] = [];
    let line = indent;
    for (const word of text.split(' ')) {
        if (line.length > indent.length && line.length + 1 + word.length > width) {
            lines.push(line);
            line = indent;
        }
        line += line.length > indent.length ? ` ${word}` : word;
    }
    return [...lines, line];
}
