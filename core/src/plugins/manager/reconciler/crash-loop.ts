/** Counts starts that loaded plugins and never became good: code of a plugin that ends or blocks the panel at each start must not keep it down. */
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { PluginBootEntity } from '../records/entities.ts';

/** So many bad starts in a row, and the next one loads no plugin. */
const mostBadStarts = 3;

export class CrashLoop {
    readonly #db: Database;
    readonly #clock: Clock;

    constructor(db: Database, clock: Clock) {
        this.#db = db;
        this.#clock = clock;
    }

    /** Whether the starts until now were so bad that the next one is to load no plugin. */
    async isDetected(): Promise<boolean> {
        return (await this.#db.read((em) => em.count(PluginBootEntity, {}))) >= mostBadStarts;
    }

    /** Whether the starts before this one were so bad that no plugin is to be loaded now. The next start tries again. */
    async takeDetected(): Promise<boolean> {
        const bad = await this.isDetected();
        if (bad) {
            await this.forgetStarts();
        }
        return bad;
    }

    /** To be called, and waited for, before the first plugin is imported. */
    async countStart(): Promise<void> {
        await this.#db.write((tx) => tx.em.insert(PluginBootEntity, { at: this.#clock.now() } as never));
    }

    /** All went well. */
    async forgetStarts(): Promise<void> {
        await this.#db.write((tx) => tx.em.nativeDelete(PluginBootEntity, {}));
    }
}
