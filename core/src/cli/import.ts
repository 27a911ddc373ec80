/** `portico import`: imports a document, a Caddyfile or the configuration of a Caddy into the running panel. */
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

import { type Command, jsonOption } from './command/command.ts';
import { CommandError, RequestRefused, usageError } from './command/command-error.ts';
import type { Output } from './command/output.ts';
import { readPassword } from './command/secret-input.ts';
import type { Client } from './panel/client.ts';
import { withPanel } from './panel/with-panel.ts';

interface Result {
    readonly sections: Readonly<
        Record<
            string,
            {
                readonly counts: Readonly<Record<string, number>>;
                readonly notes: readonly { readonly name: string; readonly message: string }[];
            }
        >
    >;
    readonly plugins: readonly {
        readonly name: string;
        readonly install: string | null;
        readonly data: string | null;
        readonly state: string | null;
        readonly notes: readonly string[];
    }[];
    readonly notes: readonly string[];
    readonly applied: boolean | null;
}

interface Task {
    readonly id: number;
    readonly state: string;
    readonly result: Result | null;
    readonly error: { readonly message: string; readonly reason: string; readonly data: unknown } | null;
}

const patienceMs = 15 * 60_000;
const pauseMs = 300;

/** The command `import`, which plans and applies a document in the running panel. */
export const importCommand: Command = {
    name: 'import',
    positionals: ['<file>'],
    summary: 'Import a document into the running panel, completely or not at all',
    details: [
        'The file is what `portico export` wrote, a Caddyfile, or the configuration of a running Caddy as JSON.',
        'It is merged with the present data; with --replace, what the document does not contain is removed.'
    ],
    options: {
        replace: { type: 'boolean', description: 'Remove what the sections of the document do not contain' },
        'install-plugins': {
            type: 'boolean',
            description: 'Install plugins that are missing, from the npm registry and without any grant'
        },
        'dry-run': { type: 'boolean', description: 'Show what would happen, and change nothing' },
        'password-stdin': {
            type: 'boolean',
            description: 'Take the passphrase of the document from standard input'
        },
        ...jsonOption
    },
    async run({ config, output, positionals, flag }) {
        const document = readDocument(positionals[0] ?? '');
        const passphrase = flag('password-stdin') ? { passphrase: await readPassword() } : {};
        const dryRun = flag('dry-run');
        const body = {
            document,
            ...passphrase,
            mode: flag('replace') ? 'replace' : 'merge',
            dryRun,
            ...(flag('install-plugins') ? { installPlugins: true } : {})
        };
        const result = await withPanel<Result>(config, {
            async online(client) {
                const { data } = await client.call<Result | Task>(
                    'POST',
                    '/api/import-export/import',
                    body,
                    patienceMs
                );
                return 'sections' in data ? data : follow(client, data.id);
            },
            offline: () =>
                Promise.reject(
                    new CommandError(
                        'The panel does not run: start it first, since the proxy engine has to check what is imported'
                    )
                )
        });
        show(result, output);
        output.say(
            dryRun
                ? 'Nothing was changed.'
                : result.applied === false
                  ? 'Done. The proxy engine takes it up with the next reload.'
                  : 'Done.'
        );
        output.result(result, null);
        return 0;
    }
};

/** Reads the file and decides by its content: JSON with `format` is our document, JSON with `apps` is a configuration of Caddy, other text is a Caddyfile. */
function readDocument(path: string): object {
    let text: string;
    try {
        text = readFileSync(path, 'utf8');
    } catch (error) {
        throw new CommandError(`${path} cannot be read: ${(error as Error).message}`);
    }
    if (!text.trimStart().startsWith('{') || /^\s*\{\s*(?:[^"\s}]|\}\s*\S)/.test(text)) {
        return { format: 'caddyfile', text };
    }
    try {
        const value = JSON.parse(text) as { readonly format?: unknown; readonly apps?: unknown };
        return value.format === undefined && value.apps !== undefined
            ? { format: 'caddy-json', config: value }
            : value;
    } catch (error) {
        throw usageError(`${path} is damaged: ${(error as Error).message}`);
    }
}

async function follow(client: Client, id: number): Promise<Result> {
    const end = performance.now() + patienceMs;
    for (;;) {
        const { data } = await client.call<Task>('GET', `/api/tasks/${id}`);
        if (data.state === 'succeeded' && data.result !== null) {
            return data.result;
        }
        if (data.state === 'failed' && data.error !== null) {
            throw new RequestRefused(data.error.message, data.error.data);
        }
        if (data.state === 'cancelled' || performance.now() > end) {
            throw new CommandError(`The import is not done: see task ${id}`);
        }
        await wait(pauseMs);
    }
}

function show({ sections, plugins, notes }: Result, output: Output): void {
    for (const [name, { counts, notes: own }] of Object.entries(sections)) {
        output.say(
            `${name}: ${Object.entries(counts)
                .map(([effect, count]) => `${effect} ${count}`)
                .join(', ')}`
        );
        own.forEach((note) => output.say(`  ${note.name}: ${note.message}`));
    }
    for (const { name, install, data, state, notes: own } of plugins) {
        output.say(
            `plugin ${name}: ${[...(install === null ? [] : [`install ${install}`]), ...(data === null ? [] : [`data ${data}`]), ...(state === null ? [] : [state])].join(', ')}`
        );
        own.forEach((note) => output.say(`  ${note}`));
    }
    notes.forEach((note) => output.say(note));
}
