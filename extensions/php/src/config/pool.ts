/** The pool of a site: how many workers it has, and how long a request may take. */
import { errors, joi, type Value } from '@portico/sdk';

const workers = () => joi.number().integer().min(1).max(500);

/** The fields of a pool; what a request leaves out stays as it is. */
const fields = {
    mode: joi
        .choice({
            ondemand: 'As they are needed',
            dynamic: 'Some wait for requests',
            static: 'Always all'
        })
        .label('Workers are started')
        .meta({ ui: { group: 'Workers' } }),
    maxChildren: workers()
        .label('Most workers')
        .description('Requests at the same time')
        .meta({ ui: { group: 'Workers' } }),
    startServers: workers()
        .label('Workers at the start')
        .description('Only where some wait for requests')
        .meta({ ui: { group: 'Workers', advanced: true } }),
    minSpare: workers()
        .label('Fewest waiting workers')
        .description('Only where some wait for requests')
        .meta({ ui: { group: 'Workers', advanced: true } }),
    maxSpare: workers()
        .label('Most waiting workers')
        .description('Only where some wait for requests')
        .meta({ ui: { group: 'Workers', advanced: true } }),
    maxRequests: joi
        .number()
        .integer()
        .min(0)
        .max(1_000_000)
        .label('Requests of a worker')
        .description('Then a new one takes its place; 0: never')
        .meta({ ui: { group: 'Workers', advanced: true } }),
    idleSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(86_400)
        .label('An idle worker ends after')
        .description('Only where they are started as they are needed')
        .unit('second')
        .meta({ ui: { group: 'Workers', advanced: true } }),
    requestSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(86_400)
        .label('Longest request')
        .description('Then its worker is ended')
        .unit('second')
        .meta({ ui: { group: 'Requests' } }),
    slowSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(86_400)
        .allow(null)
        .label('A request is slow after')
        .description('Its stack is written to the slow log; empty: never')
        .unit('second')
        .meta({ ui: { group: 'Requests' } })
};

/** A change of a pool. */
export const poolChangeSchema = joi.object(fields);

/** The pool of a site with all of its fields. */
export const poolSchema = joi.object({
    mode: fields.mode.required(),
    maxChildren: fields.maxChildren.required(),
    startServers: fields.startServers.required(),
    minSpare: fields.minSpare.required(),
    maxSpare: fields.maxSpare.required(),
    maxRequests: fields.maxRequests.required(),
    idleSeconds: fields.idleSeconds.required(),
    requestSeconds: fields.requestSeconds.required(),
    slowSeconds: fields.slowSeconds.required()
});

/** The checked pool of a site. */
export type Pool = Value<typeof poolSchema>;

/** The pool of a new site. */
export const usualPool: Pool = {
    mode: 'ondemand',
    maxChildren: 5,
    startServers: 2,
    minSpare: 1,
    maxSpare: 3,
    maxRequests: 500,
    idleSeconds: 10,
    requestSeconds: 60,
    slowSeconds: null
};

/** Checks what one field alone cannot say. @throws VALIDATION_FAILED 40001 */
export function checkPool({
    mode,
    maxChildren,
    startServers,
    minSpare,
    maxSpare,
    slowSeconds,
    requestSeconds
}: Pool): void {
    const faults: { path: string; message: string }[] = [];
    if (mode === 'dynamic' && (minSpare > maxSpare || maxSpare > maxChildren)) {
        faults.push({ path: 'maxSpare', message: 'minSpare ≤ maxSpare ≤ maxChildren' });
    }
    if (mode === 'dynamic' && (startServers < minSpare || startServers > maxSpare)) {
        faults.push({ path: 'startServers', message: 'startServers lies between minSpare and maxSpare' });
    }
    if (slowSeconds !== null && slowSeconds > requestSeconds) {
        faults.push({ path: 'slowSeconds', message: 'slowSeconds is at most requestSeconds' });
    }
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
}
