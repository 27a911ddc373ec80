/** What a task does that runs no program: a request, or a route of the panel. Fields of bodies, and how they are stored. */
import { joi } from '@portico/sdk';

/** Stands for a stored value that is never shown. */
export interface Mask {
    readonly set: true;
}

/** A request that a task sends, as a body has it; null for a header keeps the stored value. */
export interface RequestWork {
    readonly url: string;
    readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
    readonly headers: Readonly<Record<string, string | null>>;
    readonly body: string | null;
    /** Such as `2xx` or `204`. */
    readonly expectStatus: readonly string[];
    readonly expectText: string | null;
}

/** A route of the panel that a task calls. */
export interface RouteWork {
    readonly id: string;
    readonly params: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly payload: unknown;
}

/** A request as bodies give it. */
export interface RequestInput extends Omit<Partial<RequestWork>, 'headers' | 'url'> {
    readonly url: string;
    readonly headers?: Readonly<Record<string, string | Mask>>;
}

/** Fills in what the request of a task leaves out. */
export function requestOf({ headers = {}, ...given }: RequestInput): RequestWork {
    return {
        method: 'GET',
        body: null,
        expectStatus: ['2xx'],
        expectText: null,
        ...given,
        headers: Object.fromEntries(
            Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : null])
        )
    };
}

/** Completes a call of a route. */
export function routeOf(given: Partial<RouteWork> & { readonly id: string }): RouteWork {
    return { params: {}, query: {}, payload: null, ...given };
}

const text = () => joi.string().pattern(/^[^\0]*$/, 'text without zero bytes');
const headerValue = joi.alternatives(
    joi
        .string()
        .pattern(/^[\t\x20-\x7e\x80-\xff]*$/, 'value of a header')
        .max(8_192)
        .allow(''),
    joi.object({ set: joi.valid(true).required() })
);

/** The field `request` of a task: an HTTP request in place of a program. */
export const requestField = joi
    .object({
        url: text().max(4_096).required().label('Address'),
        method: joi.valid('GET', 'HEAD', 'POST', 'PUT', 'DELETE').label('Method').description('Default GET'),
        headers: joi
            .record(headerValue)
            .max(50)
            .label('Headers')
            .description(
                'Values are never read back: `{ "set": true }` stands for each, and keeps it in a write'
            ),
        body: text().max(262_144).allow(null, '').label('Body').meta({ media: 'text/plain' }),
        expectStatus: joi
            .array()
            .items(joi.string().pattern(/^[1-5](\d\d|xx)$/, 'status'))
            .min(1)
            .max(20)
            .label('Wanted status')
            .description('Such as 2xx or 204; default 2xx'),
        expectText: text().max(1_000).allow(null).label('Wanted text').description('A part of the answer')
    })
    .allow(null)
    .label('Request')
    .description('Instead of a program: sends a request, and looks at the answer');

const values = () => joi.object({}).unknown().label('Parameters');

/** The field `route` of a task: a route of the panel in place of a program. */
export const routeField = joi
    .object({
        id: joi
            .string()
            .pattern(/^[a-z][A-Za-z0-9_.-]{1,99}$/, 'id of a route')
            .required()
            .label('Route')
            .description('As in the document of the API, such as backup.runPlan'),
        params: values().label('Parameters of the path'),
        query: values().label('Parameters of the query'),
        payload: joi.any().label('Body')
    })
    .allow(null)
    .label('Route')
    .description('Instead of a program: calls a route of the panel, for the user who authorized the task');
