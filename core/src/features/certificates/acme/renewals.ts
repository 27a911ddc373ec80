/** Sees to it that certificates are worked on when their time has come, and that somebody hears of those that come to their end. */
import { isFailure } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import type { Logger } from '../../../platform/log.ts';
import type { CertificateRow } from '../entities.ts';
import type { CertificateEvents } from '../ports.ts';
import type { DatabaseCertificateStore } from '../store.ts';
import type { Issuance } from './issuance.ts';
import { daysLeft, warningDue } from './pace.ts';

export interface RenewalsOptions {
    readonly store: DatabaseCertificateStore;
    readonly db: Database;
    readonly clock: Clock;
    readonly log: Pick<Logger, 'error'>;
    readonly events: CertificateEvents;
    readonly issuance: Pick<Issuance, 'start' | 'busy'>;
    systemCall(): Call;
}

/** However far the next date is: the time of day can be set while the panel runs. */
const longestPauseMs = 3_600_000;
/** One that is due and cannot be started now, as while others run, is looked at again after this. */
const shortestPauseMs = 5_000;

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

    stop(): void {
        this.#running = false;
        clearTimeout(this.#timer ?? undefined);
    }

    /** Looks again when the next one is due. */
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
                        // An attempt of it waits in the queue already, or the panel stops.
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
