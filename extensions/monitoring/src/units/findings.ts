/** Units that failed, as findings of `/unhealthy`. */
import { isFailure } from '@portico/sdk';

import type { Finding } from '../findings/finding.ts';
import type { Ctx } from '../settings.ts';
import { listUnits, readSince } from './units.ts';

/** TOOL_MISSING: systemd is not the first process of this machine, or not installed. */
const missing = 50302;

/** Finds units that failed; none where there is no systemd, null where it does not answer. */
export async function findFailedUnits(ctx: Ctx): Promise<Finding[] | null> {
    try {
        const failed = (await listUnits(ctx)).filter(({ state }) => state === 'failed');
        const since = await readSince(
            ctx,
            failed.map(({ name }) => name)
        );
        return failed.map(({ name, description, sub }) => ({
            kind: 'unit',
            severity: 'warning',
            subject: name,
            message: `${description === '' ? name : description} failed${sub === 'failed' ? '' : ` (${sub})`}`,
            since: since.get(name) ?? null,
            remedy: `Read its log, mend the cause, and start it: journalctl -u ${name}`
        }));
    } catch (error) {
        return isFailure(error) && error.code === missing ? [] : null;
    }
}
