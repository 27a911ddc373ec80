/** A repository of a recovery kit, opened by restic without a panel. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { KitRepository } from '../kit/sealed-kit.ts';
import type { SnapshotNote } from '../runs/sources.ts';
import { buildTarget, hide, invocationOf } from '../targets/target.ts';
import { run } from './program.ts';

/** A snapshot with a panel in it. */
export interface Found {
    readonly id: string;
    readonly time: string;
    readonly hostname: string;
    /** The path of the note that says what is where. */
    readonly note: string;
}

interface Listed {
    readonly id: string;
    readonly time: string;
    readonly hostname: string;
    readonly paths?: readonly string[];
}

const noteName = '/portico-backup.json';

/** Runs restic in a private folder, which goes with it. */
export class Repository implements AsyncDisposable {
    readonly #folder = mkdtempSync(join(tmpdir(), 'portico-backup-'));
    readonly #source: KitRepository;
    readonly #signal: AbortSignal;

    constructor(source: KitRepository, signal: AbortSignal) {
        this.#source = source;
        this.#signal = signal;
    }

    /** Snapshots whose note names the panel, newest first. */
    async panels(): Promise<readonly Found[]> {
        const text = await this.#restic(['snapshots', '--json', '--no-lock', '--tag=portico']);
        const listed = (JSON.parse(text) as readonly Listed[] | null) ?? [];
        const noted = listed.flatMap(({ id, time, hostname, paths = [] }) => {
            const note = paths.find((path) => path.endsWith(noteName));
            // The stage of a source lies beside the note; a plan without the panel may have none.
            return note === undefined ? [] : [{ id, time, hostname, note }];
        });
        const found: Found[] = [];
        for (const each of noted.toSorted((one, two) => two.time.localeCompare(one.time))) {
            if ((await this.#panelIn(each)) !== null) {
                found.push(each);
            }
        }
        return found;
    }

    /** Restores the panel of a snapshot below a folder. Resolves with where it lies. */
    async restore(snapshot: Found, folder: string): Promise<string> {
        const path = await this.#panelIn(snapshot);
        const pattern = path?.replaceAll(/[\\*?[\]]/g, '\\$&');
        await this.#restic([
            'restore',
            snapshot.id,
            `--target=${folder}`,
            `--include=${pattern}`,
            '--verify'
        ]);
        return `${folder}${path}`;
    }

    async [Symbol.asyncDispose](): Promise<void> {
        rmSync(this.#folder, { recursive: true, force: true });
    }

    /** Where the panel lies in a snapshot; null when it is not in it. */
    async #panelIn({ id, note }: Found): Promise<string | null> {
        const text = await this.#restic(['dump', '--no-lock', id, note]);
        const { sources } = JSON.parse(text) as SnapshotNote;
        return sources.find(({ source }) => source.type === 'panel')?.paths[0] ?? null;
    }

    async #restic(args: readonly string[]): Promise<string> {
        const askpass = join(this.#folder, 'askpass');
        const { connection, secrets } = this.#source;
        const { files, env, ...invocation } = invocationOf(buildTarget(connection, secrets, { askpass }));
        mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
        writeFileSync(askpass, '#!/bin/sh\nexec cat login\n', { mode: 0o700 });
        for (const [name, text] of Object.entries(files)) {
            writeFileSync(join(this.#folder, name), text, { mode: 0o600 });
        }
        const { code, stdout, stderr } = await run(
            'restic',
            [...invocation.args, `--cache-dir=${join(this.#folder, 'cache')}`, ...args],
            { cwd: this.#folder, env: { ...env, HOME: this.#folder }, signal: this.#signal }
        );
        if (code !== 0) {
            throw new Error(hide(stderr, invocation.secrets).trim() || `restic ended with ${code}`);
        }
        return stdout;
    }
}
