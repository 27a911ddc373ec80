/** Uses of dangerous doors on record: the first at once, equal ones counted and written once a minute, so that a busy plugin does not bury the log. */
import type { Recorder } from '../../http/ports.ts';
import type { Logger } from '../../log.ts';

const windowMs = 60_000;
const longestArguments = 2_000;

export class Uses {
    readonly #plugin: string;
    readonly #recorder: Pick<Recorder, 'recordAlone'>;
    readonly #log: Logger;
    readonly #counted = new Map<string, { count: number; readonly write: (count: number) => Promise<void>; readonly timer: NodeJS.Timeout }>();

    constructor(plugin: string, recorder: Pick<Recorder, 'recordAlone'>, log: Logger) {
        this.#plugin = plugin;
        this.#recorder = recorder;
        this.#log = log;
    }

    /** A program was started. */
    exec(file: string, args: readonly string[], user: string | null): void {
        const argv = JSON.stringify(args).slice(0, longestArguments);
        this.#use(`exec ${file} ${user ?? ''}`, (count) => this.#recorder.recordAlone({
            actor: { id: null, username: null, tokenId: null, plugin: this.#plugin }, action: 'exec', resource: `${this.#plugin}.program`, resourceId: file, after: { args: argv, user, count },
            outcome: 'success', status: null, code: 0, ip: null, userAgent: null, requestId: null
        }));
    }

    /** Writes what is still counted. */
    async close(): Promise<void> {
        const left = [...this.#counted.values()];
        this.#counted.clear();
        for (const { count, write, timer } of left) {
            clearTimeout(timer);
            if (count > 0) {
                await write(count);
            }
        }
    }

    #use(key: string, write: (count: number) => Promise<void>): void {
        const counted = this.#counted.get(key);
        if (counted !== undefined) {
            counted.count += 1;
            return;
        }
        const failed = (error: unknown): void => this.#log.error('A use could not be put on record', { error });
        const timer = setTimeout(() => {
            const { count = 0 } = this.#counted.get(key) ?? {};
            this.#counted.delete(key);
            if (count > 0) {
                write(count).catch(failed);
            }
        }, windowMs);
        timer.unref();
        this.#counted.set(key, { count: 0, write, timer });
        write(1).catch(failed);
    }
}
