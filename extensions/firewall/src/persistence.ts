/** The boot file: the applied rules, where the machine loads them before the panel runs. */
import { errors, type Files, isFailure } from '@portico/sdk';

import { fail } from './errors.ts';
import type { Ctx } from './settings.ts';
import type { StateStore } from './trial/state.ts';

/** Whether the rules are loaded at boot. */
export interface PersistenceState {
    readonly enabled: boolean;
    readonly file: string;
    readonly loadedAtBoot: boolean;
    /** What loads the file, or what puts the rules in its place. */
    readonly how: string;
    readonly remedy: string | null;
}

const folder = '/etc/nftables.d';
const configuration = '/etc/nftables.conf';
const checkSeconds = 20;

/** Keeps the boot file. */
export class Persistence {
    readonly #ctx: Ctx;
    readonly #store: StateStore;
    /** The text of the applied rules; null while the firewall is off. */
    readonly #text: () => Promise<string | null>;
    #isStale = false;

    constructor(ctx: Ctx, store: StateStore, text: () => Promise<string | null>) {
        this.#ctx = ctx;
        this.#store = store;
        this.#text = text;
    }

    /** Whether the machine loads the rules when it starts. */
    async state(): Promise<PersistenceState> {
        const { isPersistent } = await this.#store.read();
        const file = this.#ctx.settings.bootFile;
        const missing = isPersistent ? await this.#missing(file) : null;
        return {
            enabled: isPersistent,
            file,
            loadedAtBoot: isPersistent && missing === null,
            how:
                isPersistent && missing === null
                    ? 'nftables.service'
                    : 'The panel sets the rules when it starts',
            remedy: missing
        };
    }

    /** Begins or ends to keep the file. @throws NO_BOOT_FOLDER 42251 */
    async enable(isEnabled: boolean): Promise<void> {
        if (isEnabled) {
            await this.#requireFolder(this.#ctx.files(folder));
        }
        await this.#put(isEnabled ? await this.#text() : null);
        await this.#store.write({ isPersistent: isEnabled });
    }

    /** Writes the file anew after the applied rules changed. A failure is logged, and tried again by {@link Persistence.refresh}. */
    async write(): Promise<void> {
        this.#isStale = true;
        await this.refresh();
    }

    /** Says that the elements of sets changed. */
    invalidate(): void {
        this.#isStale = true;
    }

    /** Writes the file where it is not what is applied. */
    async refresh(): Promise<void> {
        const { isPersistent } = await this.#store.read();
        if (!this.#isStale || !isPersistent) {
            return;
        }
        try {
            await this.#put(await this.#text());
            this.#isStale = false;
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            this.#ctx.log.warn('The boot file could not be written', {
                reason: error.reason,
                error: error.message
            });
        }
    }

    /** The new text takes the place of the old one at once, or not at all. */
    async #put(text: string | null): Promise<void> {
        const files = this.#ctx.files(folder);
        const name = this.#ctx.settings.bootFile.slice(folder.length + 1);
        if (text === null) {
            await ignoreMissing(files.remove(name));
            return;
        }
        const draft = `.${name}.new`;
        await this.#requireFolder(files);
        await ignoreMissing(files.remove(draft));
        const handle = await files.open(draft, 'wx', 0o640);
        try {
            await handle.writeFile(text);
            await handle.sync();
        } finally {
            await handle.close();
        }
        await files.move(draft, name, { replace: true });
    }

    async #requireFolder(files: Files): Promise<void> {
        try {
            await files.list('');
        } catch (error) {
            throw isFailure(error) && error.code === 40400 ? fail.NO_BOOT_FOLDER({ folder }) : error;
        }
    }

    /** What is missing for the file to be loaded at boot, as what helps; null when nothing is. */
    async #missing(file: string): Promise<string | null> {
        const [included, enabled] = [await this.#isIncluded(file), await this.#isUnitEnabled()];
        const steps = [
            ...(included ? [] : [`add the line include "${folder}/*.nft" to the end of ${configuration}`]),
            ...(enabled ? [] : ['run systemctl enable nftables'])
        ];
        const text = steps.join(', and ');
        return text === '' ? null : `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
    }

    /** Asks `nft` itself which files the configuration loads: it names each one whose commands it evaluates. */
    async #isIncluded(file: string): Promise<boolean> {
        const output = await this.#output('nft', ['-c', '-d', 'eval', '-f', configuration]);
        return output.includes(`${file}:`);
    }

    async #isUnitEnabled(): Promise<boolean> {
        return (await this.#output('systemctl', ['is-enabled', 'nftables.service'])).trim() === 'enabled';
    }

    async #output(program: string, args: readonly string[]): Promise<string> {
        try {
            const { stdout, stderr } = await this.#ctx.exec(program, args, {
                timeoutSeconds: checkSeconds,
                maxOutputBytes: 32 * 2 ** 20
            });
            return stdout + stderr;
        } catch (error) {
            if (isFailure(error)) {
                return '';
            }
            throw error;
        }
    }
}

async function ignoreMissing(work: Promise<void>): Promise<void> {
    try {
        await work;
    } catch (error) {
        if (!isFailure(error) || error.code !== errors.notFound().code) {
            throw error;
        }
    }
}
