/** Starts the renewal of certificates when it is due, and sends warnings before they expire. */
import { isFailure } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import type { Logger } from '../../../platform/log/log.ts';
import type { CertificateRow } from '../entities.ts';
import type { CertificateEvents } from '../ports.ts';
import type { DatabaseCertificateStore } from '../store.ts';
import type { Issuance } from './issuance.ts';
import { daysLeft, warningDue } from './pace.ts';

/** What {@link Renewals} works with. */
export interface RenewalsOptions {
    readonly store: DatabaseCertificateStore;
    readonly db: Database;
    readonly clock: Clock;
    readonly log: Pick<Logger, 'error'>;
    readonly events: CertificateEvents;
    readonly issuance: Pick<Issuance, 'start' | 'busy'>;
    systemCall(): Call;
}

/** The longest wait, however far the next date is: the time of day can be set while the panel runs. */
const longestPauseMs = 3_600_000;
/** The shortest wait: a certificate that is due but cannot be started now is tried again after it. */
const shortestPauseMs = 5_000;

/** Starts renewals when they are due, and warns of certificates that expire soon. */
export class Renewals {
    readonly #store: DatabaseCertificateStore;
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #log: Pick<Logger, 'error'>;
    readonly #events: CertificateEvents;
    readonly #issuance: RenewalsOptions['issuance'];
    readonly #systemCall: RenewalsOptions['systemCall'];
    #timer: NodeJS.Timeout | null = null;
    #running = false;
    #looking = false;

    constructor({ store, db, clock, log, events, issuance, systemCall }: RenewalsOptions) {
        this.#store = store;
        this.#db = db;
        this.#clock = clock;
        this.#log = log;
        this.#events = events;
        this.#issuance = issuance;
        this.#systemCall = systemCall;
    }

    /** Looks at once, and from now on. */
    start(): void {
        this.#running = true;
        this.#look().catch((error: unknown) =>
            this.#log.error('Certificates could not be looked after', { error })
        );
    }

    /** Starts nothing from now on. */
    stop(): void {
        this.#running = false;
        clearTimeout(this.#timer ?? undefined);
    }

    /** Sets the timer to the time at which the next certificate is due. */
    arm(): void {
        clearTimeout(this.#timer ?? undefined);
        if (!this.#running) {
            return;
        }
        const next = Math.min(
            ...this.#store
                .all()
                .flatMap((row) =>
                    row.autoRenew && row.nextAttemptAt !== null && !this.#issuance.busy(row.id)
                        ? [row.nextAttemptAt]
                        : []
                )
        );
        const pause = Math.min(longestPauseMs, Math.max(shortestPauseMs, next - this.#clock.now()));
        this.#timer = setTimeout(() => {
            this.#look().catch((error: unknown) =>
                this.#log.error('Certificates could not be looked after', { error })
            );
        }, pause).unref();
    }

    #isDue(row: CertificateRow): boolean {
        return (
            row.autoRenew &&
            row.source === 'acme' &&
            row.nextAttemptAt !== null &&
            row.nextAttemptAt <= this.#clock.now() &&
            !this.#issuance.busy(row.id)
        );
    }

    async #look(): Promise<void> {
        if (this.#looking) {
            return;
        }
        this.#looking = true;
        try {
            for (const row of this.#store.all()) {
                if (!this.#running) {
                    return;
                }
                await this.#warn(row);
                if (this.#isDue(row)) {
                    await this.#issuance.start(row, this.#systemCall(), false).catch((error: unknown) => {
                        // An attempt waits in the queue already, or the panel stops.
                        if (
                            !isFailure(error) ||
                            (error.reason !== 'IN_USE' && error.reason !== 'NOT_READY')
                        ) {
                            this.#log.error('A certificate could not be renewed', {
                                certificate: row.id,
                                error
                            });
                        }
                    });
                }
            }
        } finally {
            this.#looking = false;
            this.arm();
        }
    }

    async #warn({ id, name, domains, notAfter, fingerprint, warnedDays }: CertificateRow): Promise<void> {
        const due = fingerprint === '' ? null : warningDue(notAfter, warnedDays, this.#clock.now());
        if (due !== null) {
            await this.#db.write((tx) => this.#store.note(tx, id, { warnedDays: due }));
            this.#events.expiring({
                id,
                name,
                domains: JSON.parse(domains) as string[],
                notAfter,
                daysLeft: daysLeft(notAfter, this.#clock.now())
            });
        }
    }
}
