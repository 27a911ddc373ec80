/** Sees to it that certificates are worked on when their time has come, and that somebody hears of those that come to their end. */
import { isFailure } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import type { Logger } from '../../../platform/log.ts';
import type { CertificateRow } from '../entities.ts';
import type { CertificateEvents } from '../ports.ts';
import type { Store } from '../store.ts';
import type { Issuance } from './issuance.ts';
import { daysLeft, warningDue } from './pace.ts';

export interface RenewalsOptions {
    readonly store: Store;
    readonly db: Database;
    readonly clock: Clock;
    readonly log: Pick<Logger, 'error'>;
    readonly events: CertificateEvents;
    readonly issuance: Issuance;
    systemCall(): Call;
}

export interface Renewals {
    /** Looks at once, and from now on. */
    start(): void;
    /** Looks again when the next one is due. */
    arm(): void;
    stop(): void;
}

/** However far the next date is: the time of day can be set while the panel runs. */
const longestPauseMs = 3_600_000;
/** One that is due and cannot be started now, as while others run, is looked at again after this. */
const shortestPauseMs = 5_000;

export function createRenewals({
    store,
    db,
    clock,
    log,
    events,
    issuance,
    systemCall
}: RenewalsOptions): Renewals {
    let timer: NodeJS.Timeout | null = null;
    let running = false;
    let looking = false;

    const isDue = (row: CertificateRow): boolean =>
        row.autoRenew &&
        row.source === 'acme' &&
        row.nextAttemptAt !== null &&
        row.nextAttemptAt <= clock.now() &&
        !issuance.busy(row.id);

    async function look(): Promise<void> {
        if (looking) {
            return;
        }
        looking = true;
        try {
            for (const row of store.all()) {
                if (!running) {
                    return;
                }
                await warn(row);
                if (isDue(row)) {
                    await issuance.start(row, systemCall(), false).catch((error: unknown) => {
                        // An attempt of it waits in the queue already, or the panel stops.
                        if (
                            !isFailure(error) ||
                            (error.reason !== 'IN_USE' && error.reason !== 'NOT_READY')
                        ) {
                            log.error('A certificate could not be renewed', { certificate: row.id, error });
                        }
                    });
                }
            }
        } finally {
            looking = false;
            arm();
        }
    }

    async function warn({
        id,
        name,
        domains,
        notAfter,
        fingerprint,
        warnedDays
    }: CertificateRow): Promise<void> {
        const due = fingerprint === '' ? null : warningDue(notAfter, warnedDays, clock.now());
        if (due !== null) {
            await db.write((tx) => store.note(tx, id, { warnedDays: due }));
            events.expiring({
                id,
                name,
                domains: JSON.parse(domains) as string[],
                notAfter,
                daysLeft: daysLeft(notAfter, clock.now())
            });
        }
    }

    function arm(): void {
        clearTimeout(timer ?? undefined);
        if (!running) {
            return;
        }
        const next = Math.min(
            ...store
                .all()
                .flatMap((row) =>
                    row.autoRenew && row.nextAttemptAt !== null && !issuance.busy(row.id)
                        ? [row.nextAttemptAt]
                        : []
                )
        );
        const pause = Math.min(longestPauseMs, Math.max(shortestPauseMs, next - clock.now()));
        timer = setTimeout(() => {
            look().catch((error: unknown) => log.error('Certificates could not be looked after', { error }));
        }, pause).unref();
    }

    return {
        arm,
        start() {
            running = true;
            look().catch((error: unknown) => log.error('Certificates could not be looked after', { error }));
        },
        stop() {
            running = false;
            clearTimeout(timer ?? undefined);
        }
    };
}
