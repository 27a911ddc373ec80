/** The settings of Docker's daemon: read from its file, and changed so that a daemon that does not come back gets the old ones. */
import { posix } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { type Actor, errors, type Files, isFailure, type TaskRun, type TaskView } from '@portico/sdk';

import type { Engine } from '../engine/engine.ts';
import { fail } from '../errors.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';

/** The settings that are shown and changed; what else the file says stays as it is. */
export interface DaemonSettings {
    readonly registryMirrors: readonly string[];
    readonly insecureRegistries: readonly string[];
    /** Empty: the daemon's own default. */
    readonly logDriver: string;
    readonly logOptions: Readonly<Record<string, string>>;
    readonly liveRestore: boolean;
}

const keys = {
    registryMirrors: 'registry-mirrors',
    insecureRegistries: 'insecure-registries',
    logDriver: 'log-driver',
    logOptions: 'log-opts',
    liveRestore: 'live-restore'
} as const;
const backMs = 30_000;
const pollMs = 250;

/** Reads and changes the daemon's settings. */
export class Daemon {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #machine: Machine;

    constructor(ctx: Ctx, engine: Engine, machine: Machine) {
        this.#ctx = ctx;
        this.#engine = engine;
        this.#machine = machine;
    }

    /** @throws ENGINE_LACKS 50150 on Podman, which has no daemon; ENGINE_REFUSED 42254 for a file that is no JSON */
    async read(): Promise<DaemonSettings> {
        await this.#mustBeDocker();
        return settingsOf(parse(await this.#readFile()));
    }

    /** Begins a task that changes the settings. @throws what {@link Daemon.read} throws */
    async begin(change: Partial<DaemonSettings>, actor: Actor): Promise<TaskView> {
        await this.read();
        return this.#ctx.task(
            {
                kind: 'daemon',
                title: 'Change the settings of the engine',
                access: 'unsafe',
                key: 'daemon',
                actor
            },
            (run) => this.#apply(change, run)
        );
    }

    async #apply(change: Partial<DaemonSettings>, run: TaskRun): Promise<object> {
        const text = await this.#readFile();
        const before = parse(text);
        const settings = { ...settingsOf(before), ...change };
        // The log of containers is the one thing of these that the daemon reads at its start alone.
        const was = settingsOf(before);
        const how =
            JSON.stringify([was.logDriver, was.logOptions]) ===
            JSON.stringify([settings.logDriver, settings.logOptions])
                ? 'reload'
                : 'restart';
        await this.#writeFile(`${JSON.stringify(fileOf(before, settings), null, 4)}\n`);
        run.progress(null, how === 'reload' ? 'The engine reads its settings' : 'The engine starts anew');
        try {
            await this.#machine.applyDaemon(this.#ctx, how);
            await this.#comesBack(settings);
        } catch (error) {
            run.log('The engine is not back with the new settings: it gets the old ones');
            await (text === null ? this.#removeFile() : this.#writeFile(text));
            await this.#machine.applyDaemon(this.#ctx, 'restart');
            await this.#comesBack(null);
            throw error;
        }
        return { ...settings, applied: how };
    }

    /** Waits until the daemon answers, and tells the settings that were asked for. */
    async #comesBack(settings: DaemonSettings | null): Promise<void> {
        const deadline = Date.now() + backMs;
        for (;;) {
            try {
                const info = await this.#engine.call<EngineSettings>('GET', '/info');
                if (settings === null || tells(info, settings)) {
                    return;
                }
            } catch (error) {
                if (!isFailure(error)) {
                    throw error;
                }
            }
            if (Date.now() > deadline) {
                throw fail.ENGINE_REFUSED({ engine: 'it does not come back with these settings', status: 0 });
            }
            await wait(pollMs, undefined, { signal: this.#ctx.signal });
        }
    }

    async #mustBeDocker(): Promise<void> {
        if ((await this.#engine.info()).kind === 'podman') {
            throw fail.ENGINE_LACKS({ what: 'Podman has no daemon with settings' });
        }
    }

    get #place(): { readonly files: Files; readonly name: string } {
        const { dir, base } = posix.parse(this.#machine.daemonFile);
        return { files: this.#ctx.files(dir), name: base };
    }

    /** Null: there is none. */
    async #readFile(): Promise<string | null> {
        const { files, name } = this.#place;
        try {
            const handle = await files.open(name);
            try {
                return await handle.readFile('utf8');
            } finally {
                await handle.close();
            }
        } catch (error) {
            if (isFailure(error) && error.code === 40400) {
                return null;
            }
            throw error;
        }
    }

    async #writeFile(text: string): Promise<void> {
        const { files, name } = this.#place;
        const draft = `.${name}.portico`;
        await this.#ignoreMissing(files.remove(draft));
        const handle = await files.open(draft, 'wx', 0o644);
        try {
            await handle.writeFile(text);
            await handle.sync();
        } finally {
            await handle.close();
        }
        await files.move(draft, name, { replace: true });
    }

    async #removeFile(): Promise<void> {
        const { files, name } = this.#place;
        await this.#ignoreMissing(files.remove(name));
    }

    async #ignoreMissing(work: Promise<void>): Promise<void> {
        await work.catch((error: unknown) => {
            if (!isFailure(error) || error.code !== errors.notFound().code) {
                throw error;
            }
        });
    }
}

interface EngineSettings {
    readonly LoggingDriver?: string;
    readonly LiveRestoreEnabled?: boolean;
    readonly RegistryConfig?: { readonly Mirrors?: readonly string[] | null };
}

/** Whether the daemon has the settings; it tells not all of them. */
function tells(info: EngineSettings, settings: DaemonSettings): boolean {
    const mirrors = (info.RegistryConfig?.Mirrors ?? []).map((mirror) => mirror.replace(/\/$/, ''));
    return (
        settings.registryMirrors.every((mirror) => mirrors.includes(mirror.replace(/\/$/, ''))) &&
        mirrors.length === settings.registryMirrors.length &&
        info.LiveRestoreEnabled === settings.liveRestore &&
        (settings.logDriver === '' || info.LoggingDriver === settings.logDriver)
    );
}

type DaemonFile = Readonly<Record<string, unknown>>;

/** @throws ENGINE_REFUSED 42254 */
function parse(text: string | null): DaemonFile {
    try {
        const file: unknown = text === null || text.trim() === '' ? {} : JSON.parse(text);
        if (file !== null && typeof file === 'object' && !Array.isArray(file)) {
            return file as DaemonFile;
        }
    } catch {
        // Refused below.
    }
    throw fail.ENGINE_REFUSED({ engine: 'its file of settings is no JSON object', status: 0 });
}

function settingsOf(file: DaemonFile): DaemonSettings {
    const list = (key: string): string[] => (Array.isArray(file[key]) ? file[key].map(String) : []);
    const options = (file[keys.logOptions] ?? {}) as Readonly<Record<string, unknown>>;
    return {
        registryMirrors: list(keys.registryMirrors),
        insecureRegistries: list(keys.insecureRegistries),
        logDriver: typeof file[keys.logDriver] === 'string' ? (file[keys.logDriver] as string) : '',
        logOptions: Object.fromEntries(Object.entries(options).map(([name, value]) => [name, String(value)])),
        liveRestore: file[keys.liveRestore] === true
    };
}

/** The file with these settings; what says nothing is left out. */
function fileOf(before: DaemonFile, settings: DaemonSettings): DaemonFile {
    const own = new Set<string>(Object.values(keys));
    const kept = Object.entries(before).filter(([key]) => !own.has(key));
    const given = Object.entries(settings)
        .filter(
            ([, value]) =>
                value !== '' &&
                value !== false &&
                Object.keys(Object(value)).length + Number(value === true) > 0
        )
        .map(([name, value]): [string, unknown] => [keys[name as keyof DaemonSettings], value]);
    return Object.fromEntries([...kept, ...given]);
}
