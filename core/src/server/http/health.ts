/** Is the panel alive, and is it ready? Asked by supervisors and load balancers, which have no token. */
import { joi } from '@portico/sdk';

import { fail } from '../../platform/errors.ts';
import { json, type Route } from './route.ts';

/** What the panel is at: it accepts work only while `ready`. */
export type Readiness = 'starting' | 'ready' | 'stopping';

/**
 * `/healthz` tells that the process answers, `/readyz` that the panel takes requests, `/api/health` what is wrong with the panel itself.
 *
 * @param problems - a sentence for each
 */
export function healthRoutes(readiness: () => Readiness, problems: () => readonly string[]): Route[] {
    return [
        json({
            id: 'health.live',
            method: 'GET',
            path: '/healthz',
            access: { public: 'Supervisors ask it, and it says nothing of the inside' },
            summary: 'Tells that the process answers',
            returns: joi.object({ status: joi.string().valid('ok').required() }),
            handler: () => ({ status: 'ok' as const })
        }),
        json({
            id: 'health.ready',
            method: 'GET',
            path: '/readyz',
            access: { public: 'Supervisors ask it, and it says nothing of the inside' },
            summary: 'Tells that the panel takes requests: 200, or 50300 while it starts or stops',
            returns: joi.object({ status: joi.string().valid('ready').required() }),
            handler() {
                const state = readiness();
                if (state !== 'ready') {
                    throw fail.NOT_READY(null, { message: `The panel is ${state}` });
                }
                return { status: 'ready' as const };
            }
        }),
        json({
            id: 'health.problems',
            method: 'GET',
            path: '/api/health',
            access: 'settings:read',
            summary: 'Tells what is wrong with the panel itself',
            description:
                'Rows of its database that it cannot read and does without, lines of its log that were lost, a disk that is nearly full, and a proxy engine that does not serve what it should',
            returns: joi.object({
                status: joi.string().valid('ok', 'degraded').required(),
                problems: joi.array().items(joi.string()).required()
            }),
            handler() {
                const found = problems();
                return {
                    status: found.length === 0 ? ('ok' as const) : ('degraded' as const),
                    problems: found
                };
            }
        })
    ];
}
