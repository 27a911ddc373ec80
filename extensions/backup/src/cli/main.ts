/** The command `portico-backup`: finds the panel in a repository and restores it, on a machine where no panel runs. */
import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { type KitContent, type KitRepository, openKit } from '../kit/sealed-kit.ts';
import { checkPanel, restorePanel } from './panel.ts';
import { type Found, Repository } from './repository.ts';

const usage = `portico-backup: restores the panel from a backup, with a recovery kit

  portico-backup list --kit FILE [--repository NAME] [--passphrase-file FILE]
  portico-backup restore --kit FILE --data-dir DIR [--repository NAME] [--snapshot ID] [--passphrase-file FILE]

The passphrase of the kit comes by standard input, or from --passphrase-file. DIR must not exist, or be empty.
PORTICO names the command portico, where it is not in PATH. Exits with 0 only when the panel is whole.
`;

/** A mistake of the caller, or something that was found; its message is for people. */
class Refusal extends Error {
    readonly exitCode: number;

    constructor(message: string, exitCode = 1) {
        super(message);
        this.exitCode = exitCode;
    }
}

interface Wanted {
    readonly command: 'list' | 'restore';
    readonly kit: KitContent;
    readonly dataDir: string;
    readonly repository: string | undefined;
    readonly snapshot: string | undefined;
}

const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** Runs the command. Resolves with its exit code. */
export async function main(args: readonly string[]): Promise<number> {
    const ended = new AbortController();
    const end = (): void => ended.abort(new Refusal('Ended by a signal'));
    process.once('SIGINT', end).once('SIGTERM', end);
    try {
        const wanted = read(args);
        if (wanted === null) {
            process.stdout.write(usage);
            return 0;
        }
        return await (wanted.command === 'list' ? list(wanted, ended.signal) : restore(wanted, ended.signal));
    } catch (error) {
        say(`portico-backup: ${(error as Error).message}`);
        return error instanceof Refusal ? error.exitCode : 1;
    }
}

function read(args: readonly string[]): Wanted | null {
    const { values, positionals } = parsed(args);
    const [command, ...rest] = positionals;
    if (values.help === true || command === undefined) {
        return null;
    }
    if ((command !== 'list' && command !== 'restore') || rest.length > 0) {
        throw new Refusal(`The commands are list and restore\n\n${usage}`, 2);
    }
    if (values.kit === undefined) {
        throw new Refusal('--kit FILE is needed', 2);
    }
    const dataDir = values['data-dir'];
    if (command === 'restore') {
        if (dataDir === undefined) {
            throw new Refusal('--data-dir DIR is needed', 2);
        }
        requireEmpty(resolve(dataDir));
    }
    const passphrase = readText(values['passphrase-file'] ?? 0, 'The passphrase').replace(/\r?\n$/, '');
    return {
        command,
        kit: openKit(readText(values.kit, 'The kit'), passphrase),
        dataDir: resolve(dataDir ?? '.'),
        repository: values.repository,
        snapshot: values.snapshot
    };
}

function parsed(args: readonly string[]) {
    const text = { type: 'string' } as const;
    try {
        return parseArgs({
            args: [...args],
            allowPositionals: true,
            options: {
                kit: text,
                'data-dir': text,
                repository: text,
                snapshot: text,
                'passphrase-file': text,
                help: { type: 'boolean' }
            }
        });
    } catch (error) {
        throw new Refusal((error as Error).message, 2);
    }
}

function readText(file: string | number, what: string): string {
    try {
        return readFileSync(file, 'utf8');
    } catch (error) {
        throw new Refusal(`${what} cannot be read: ${(error as Error).message}`, 2);
    }
}

function requireEmpty(dataDir: string): void {
    const found = lstatSync(dataDir, { throwIfNoEntry: false });
    if (found !== undefined && (!found.isDirectory() || readdirSync(dataDir).length > 0)) {
        throw new Refusal(`${dataDir} is not an empty folder: nothing was changed`);
    }
    if (!existsSync(dirname(dataDir))) {
        throw new Refusal(`There is no folder ${dirname(dataDir)} to make ${basename(dataDir)} in`);
    }
}

function chosen({ kit, repository }: Wanted): readonly KitRepository[] {
    const found = kit.repositories.filter(({ name }) => repository === undefined || name === repository);
    if (found.length === 0) {
        const names = kit.repositories.map(({ name }) => name).join(', ');
        throw new Refusal(`The kit has no such repository; it has: ${names || 'none'}`);
    }
    return found;
}

/** Prints one line for each snapshot with a panel in it. */
async function list(wanted: Wanted, signal: AbortSignal): Promise<number> {
    let failed = false;
    for (const each of chosen(wanted)) {
        await using repository = new Repository(each, signal);
        try {
            for (const { id, time, hostname } of await repository.panels()) {
                process.stdout.write(`${each.name}\t${id.slice(0, 8)}\t${time}\t${hostname}\n`);
            }
        } catch (error) {
            signal.throwIfAborted();
            failed = true;
            say(`${each.name}: ${(error as Error).message}`);
        }
    }
    return failed ? 1 : 0;
}

async function restore(wanted: Wanted, signal: AbortSignal): Promise<number> {
    const { dataDir } = wanted;
    const { repository: source, snapshot } = await newest(wanted, signal);
    await using repository = new Repository(source, signal);
    const folder = mkdtempSync(join(dirname(dataDir), `.${basename(dataDir)}.backup-`));
    try {
        say(`Restoring the panel of ${snapshot.hostname}, ${snapshot.time}, from ${source.name}`);
        const panel = await repository.restore(snapshot, folder);
        await restorePanel(panel, dataDir, signal);
        await checkPanel(dataDir, signal);
    } finally {
        rmSync(folder, { recursive: true, force: true });
    }
    process.stdout.write(`${dataDir}\n`);
    say('Start it: portico start. The panel that made the backup must not run at the same time.');
    return 0;
}

/** The newest snapshot with a panel in it, of all repositories that answer, or the one that is wanted. */
async function newest(
    wanted: Wanted,
    signal: AbortSignal
): Promise<{ readonly repository: KitRepository; readonly snapshot: Found }> {
    const found: { readonly repository: KitRepository; readonly snapshot: Found }[] = [];
    for (const each of chosen(wanted)) {
        await using repository = new Repository(each, signal);
        try {
            const all = await repository.panels();
            const fitting = all.filter(
                ({ id }) => wanted.snapshot === undefined || id.startsWith(wanted.snapshot)
            );
            found.push(...fitting.map((snapshot) => ({ repository: each, snapshot })));
        } catch (error) {
            signal.throwIfAborted();
            say(`${each.name}: ${(error as Error).message}`);
        }
    }
    const [best] = found.toSorted((one, two) => two.snapshot.time.localeCompare(one.snapshot.time));
    if (best === undefined) {
        throw new Refusal('No repository that answers has such a snapshot with a panel in it');
    }
    return best;
}
