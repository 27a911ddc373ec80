/** `portico completion`: a script with which the shell completes commands and options. It is made of the list of commands. */
import { type Command, commonOptions } from './command/command.ts';
import { usageError } from './command/command-error.ts';

/** The command `completion`. @param commands - all commands, this one included */
export function createCompletion(commands: () => readonly Command[]): Command {
    return {
        name: 'completion',
        positionals: ['<shell>'],
        summary: 'Write a script with which bash, zsh or fish complete commands and options',
        details: [
            'For bash: portico completion bash > /etc/bash_completion.d/portico. For zsh, in .zshrc: source <(portico completion zsh). For fish: portico completion fish > ~/.config/fish/completions/portico.fish'
        ],
        options: {},
        run({ output, positionals: [shell = ''] }) {
            const scripts: Readonly<Record<string, () => string>> = {
                bash: () => bashScript(commands()),
                zsh: () => `autoload -U +X bashcompinit && bashcompinit\n${bashScript(commands())}`,
                fish: () => fishScript(commands())
            };
            const script = Object.hasOwn(scripts, shell) ? scripts[shell]?.() : undefined;
            if (script === undefined) {
                throw usageError(`there is no script for ${JSON.stringify(shell)}: bash, zsh or fish`);
            }
            output.result({ script }, script);
            return Promise.resolve(0);
        }
    };
}

/** The first words, each with the second ones that may follow. */
function wordsOf(commands: readonly Command[]): ReadonlyMap<string, readonly string[]> {
    const words = new Map<string, string[]>();
    for (const { name } of commands) {
        const [first = '', second] = name.split(' ');
        words.set(first, [...(words.get(first) ?? []), ...(second === undefined ? [] : [second])]);
    }
    return words;
}

function optionsOf({ options }: Command): string {
    return Object.keys({ ...options, ...commonOptions })
        .map((name) => `--${name}`)
        .join(' ');
}

function bashScript(commands: readonly Command[]): string {
    const words = wordsOf(commands);
    const groups = [...words].filter(([, seconds]) => seconds.length > 0);
    return [
        '_portico() {',
        '    local words=""',
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        `        words="${[...words.keys()].join(' ')} --help --version"`,
        '    else',
        '        case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in',
        ...commands.map(
            ({ name, ...command }) =>
                `            "${name.includes(' ') ? `${name}"` : `${name} "*`}) words="${optionsOf({ name, ...command })}" ;;`
        ),
        '        esac',
        '        if [ "$COMP_CWORD" -eq 2 ]; then',
        '            case "${COMP_WORDS[1]}" in',
        ...groups.map(([first, seconds]) => `                ${first}) words="${seconds.join(' ')}" ;;`),
        '            esac',
        '        fi',
        '    fi',
        '    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
        '}',
        'complete -o default -F _portico portico'
    ].join('\n');
}

function fishScript(commands: readonly Command[]): string {
    const words = wordsOf(commands);
    return [
        `complete -c portico -n __fish_use_subcommand -a "${[...words.keys()].join(' ')}"`,
        ...[...words].flatMap(([first, seconds]) =>
            seconds.length === 0
                ? []
                : [
                      `complete -c portico -n "__fish_seen_subcommand_from ${first}; and not __fish_seen_subcommand_from ${seconds.join(' ')}" -a "${seconds.join(' ')}"`
                  ]
        ),
        ...commands.flatMap(({ name, options }) =>
            Object.keys({ ...options, ...commonOptions }).map(
                (option) =>
                    `complete -c portico -n "${name
                        .split(' ')
                        .map((word) => `__fish_seen_subcommand_from ${word}`)
                        .join('; and ')}" -l ${option}`
            )
        )
    ].join('\n');
}
