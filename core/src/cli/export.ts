/** `portico export`: the whole panel as one document. */
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';

import type { Command } from './command/command.ts';
import { CommandError, usageError } from './command/command-error.ts';
import { readPassword } from './command/secret-input.ts';
import { withPanel } from './panel/with-panel.ts';

interface Document {
    readonly sections: Readonly<Record<string, unknown>>;
    readonly secrets?: unknown;
    readonly notes?: readonly string[] | undefined;
}

const patienceMs = 15 * 60_000;
const longestDocument = 512 * 1024 * 1024;

/** The command `export`, which writes one document of the whole panel. */
export const exportCommand: Command = {
    name: 'export',
    positionals: ['[file]'],
    summary: 'Write the whole panel into one document',
    details: [
        'Without a file the document goes to standard output. An existing file is never overwritten; a new one can only be read by its owner.',
        'With a passphrase, the document contains the secrets in encrypted form: password hashes, second factors, keys and credentials. Without one they are left out, and imported users are disabled.',
        'The own data of plugins are exported only while the panel runs, and only with a passphrase.'
    ],
    options: {
        'password-stdin': {
            type: 'boolean',
            description: 'Take the passphrase from standard input, at least 8 characters'
        },
        complete: {
            type: 'boolean',
            description: 'Fail when the own data of a plugin cannot be exported, instead of leaving them out'
        },
        sections: {
            type: 'string',
            value: 'list',
            description: 'Export only these sections, separated by commas, such as hosts,users'
        }
    },
    async run({ config, output, positionals, text, flag }) {
        const [file] = positionals;
        const list = text('sections')
            ?.split(',')
            .map((name) => name.trim())
            .filter((name) => name !== '');
        const passphrase = flag('password-stdin') ? await readPassword() : undefined;
        const request = {
            ...(list === undefined ? {} : { sections: list }),
            ...(passphrase === undefined ? {} : { passphrase }),
            ...(flag('complete') ? { complete: true } : {})
        };
        const target = file === undefined ? null : openNew(resolve(file));
        const forget = (error: unknown): never => {
            rmSync(resolve(file ?? ''), { force: true });
            throw error;
        };
        const document = await withPanel<Document>(config, {
            online: async (client) =>
                (
                    await client.call<Document>(
                        'POST',
                        '/api/import-export/export',
                        request,
                        patienceMs,
                        longestDocument
                    )
                ).data,
            offline: (offline) => offline.exportDocument(request)
        }).catch((error: unknown) => (target === null ? Promise.reject(error as Error) : forget(error)));
        document.notes?.forEach((note) => output.say(note));
        const content = `${JSON.stringify(document)}\n`;
        if (target === null) {
            output.result(document, content.trimEnd());
            return 0;
        }
        write(target, content);
        output.say(
            `${file} has ${Object.keys(document.sections).join(', ')}, ${document.secrets === undefined ? 'without secrets' : 'with the secrets, sealed'}.`
        );
        return 0;
    }
};

/** Opens the file before the panel is asked, so that nothing is exported in vain. */
function openNew(path: string): number {
    try {
        return openSync(path, 'wx', 0o600);
    } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        throw code === 'EEXIST'
            ? usageError(`${path} exists already`)
            : new CommandError(`${path} cannot be written: ${(error as Error).message}`);
    }
}

function write(file: number, content: string): void {
    const bytes = Buffer.from(content);
    for (let at = 0; at < bytes.length;) {
        at += writeSync(file, bytes, at);
    }
    fsyncSync(file);
    closeSync(file);
}
