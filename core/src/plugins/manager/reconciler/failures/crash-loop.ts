/** Counts starts of the panel that loaded plugins and did not last: a plugin that ends or blocks the panel at each start must not keep it down. */
import type { Clock } from '../../../../platform/clock.ts';
import type { Database } from '../../../../platform/database/database.ts';
import { PluginBootEntity } from '../../records/entities.ts';

/** After so many bad starts in a row, the next start loads no plugin. */
const maxBadStarts = 3;

/** Detects that the panel crashes at each start. */
export class CrashLoop {
    readonly #db: Database;
    readonly #clock: Clock;

    constructor(db: Database, clock: Clock) {
        this.#db = db;
        this.#clock = clock;
    }

    /** Whether the last three starts were bad, so that the next one must load no plugin. */
    async isDetected(): Promise<boolean> {
        return (await this.#db.read((em) => em.count(PluginBootEntity, {}))) >= maxBadStarts;
    }

    /** The same; when it is true, the count starts at zero, so that the start after this one loads plugins again. */
    async takeDetected(): Promise<boolean> {
        const isDetected = await this.isDetected();
        if (isDetected) {
            await this.forgetStarts();
        }
        return isDetected;
    }

    /** Counts this start as bad until `forgetStarts`. Must have ended before the first plugin is imported. */
    async countStart(): Promise<void> {
        const row = { at: this.#clock.now() } as never; // the database makes the id
        await this.#db.writeEssential((tx) => tx.em.insert(PluginBootEntity, row));
    }

    /** This start was good: earlier ones count no more. */
    async forgetStarts(): Promise<void> {
        await this.#db.writeEssential((tx) => tx.em.nativeDelete(PluginBootEntity, {}));
    }
}
