/** Tells people of alerts: once, or again and again; not while they are silenced, acknowledged, or too soon after the last time. */
import type { AlertRow, RuleRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import type { Silences } from '../silences/silences.ts';
import type { AlertJournal } from './journal.ts';
import { describeAlert } from './notification.ts';

/** What the notifier works with. */
export interface NotifierOptions {
    readonly ctx: Ctx;
    readonly journal: AlertJournal;
    readonly silences: Silences;
    /** Finds a rule as it is now. */
    rule(id: number): RuleRow | undefined;
    now(): number;
}

/**
 * Tells people of alerts. It does so also when the alerts cannot be written, since a full disk is a reason for that; after a crash, a
 * notification may come twice.
 */
export class Notifier {
    readonly #options: NotifierOptions;

    constructor(options: NotifierOptions) {
        this.#options = options;
    }

    /** Tells what is to be told now. What cannot be told is tried again the next time. */
    async run(): Promise<void> {
        const { journal, silences } = this.#options;
        for (const row of journal.firing()) {
            journal.markSilenced(row, silences.covering(row)?.id ?? null);
        }
        for (const row of journal.unnotified()) {
            await (row.endedAt === null ? this.#tellBegin(row) : this.#tellEnd(row));
        }
        for (const row of journal.firing().filter((each) => this.#isDueAgain(each))) {
            await this.#send(row, 1);
        }
    }

    async #tellBegin(row: AlertRow): Promise<void> {
        const { journal, now, rule } = this.#options;
        if (row.silencedBy != null) {
            return;
        }
        const before = journal.toldAt(row);
        const cooldownMs = (rule(row.rule)?.cooldownSeconds ?? 0) * 1000;
        if (before !== null && now() - before < cooldownMs) {
            journal.markNotified(row, 2, null);
        } else if (row.acknowledgedBy == null) {
            await this.#send(row, 1);
        } else {
            journal.markNotified(row, 1, null);
        }
    }

    async #tellEnd(row: AlertRow): Promise<void> {
        const { journal, silences } = this.#options;
        const isSilenced = silences.covering(row) !== null;
        if (row.notified === 2) {
            // Neither was its begin told, since it came so soon after another.
            journal.markNotified(row, 2, null);
        } else if (row.notified === 0 && (row.silencedBy != null || isSilenced)) {
            // Its begin was not told either.
            journal.markNotified(row, 2, null);
        } else if (!isSilenced) {
            await this.#send(row, 2);
        }
    }

    #isDueAgain(row: AlertRow): boolean {
        const seconds = this.#options.rule(row.rule)?.repeatSeconds ?? null;
        return (
            seconds !== null &&
            row.notified === 1 &&
            row.toldAt != null &&
            row.acknowledgedBy == null &&
            row.silencedBy == null &&
            this.#options.now() - row.toldAt >= seconds * 1000
        );
    }

    async #send(row: AlertRow, stage: number): Promise<void> {
        const { ctx, journal, now } = this.#options;
        try {
            await ctx.notify(describeAlert(row));
            journal.markNotified(row, stage, now());
        } catch (error) {
            ctx.log.warn('A notification of an alert failed; it is tried again with the next sample', {
                alert: row.id,
                error: String(error)
            });
        }
    }
}
