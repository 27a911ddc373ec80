/** Keeps the logs of sites from growing without end. */
import { logName } from '../config/render.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { logsOf, rotate } from './files.ts';

const everySeconds = 60;
const kinds = ['error', 'slow', 'access'] as const;

/** Looks at the logs of all sites every minute. */
export class LogRotation {
    readonly #ctx: Ctx;
    readonly #services: Pick<Services, 'store'>;

    constructor(ctx: Ctx, services: Pick<Services, 'store'>) {
        this.#ctx = ctx;
        this.#services = services;
    }

    async start(): Promise<void> {
        await this.#ctx.schedule('logs', { everySeconds }, ({ signal }) => this.run(signal));
    }

    /** Cuts every log that is larger than the setting `logBytes`. */
    async run(signal: AbortSignal): Promise<void> {
        for (const site of await this.#services.store.all()) {
            for (const name of kinds.map(logName)) {
                if (signal.aborted) {
                    return;
                }
                await rotate(logsOf(this.#ctx, site), name, this.#ctx.settings.logBytes).catch(
                    (error: unknown) =>
                        this.#ctx.log.warn(`The log ${name} of ${site.name} could not be cut`, {
                            error: String(error)
                        })
                );
            }
        }
    }
}
