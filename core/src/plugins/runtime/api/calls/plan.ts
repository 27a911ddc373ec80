/**
 * `ctx.api.plan`: a call as it would be, before it is made. The call is rehearsed through the front door, so identity, access and shape are
 * checked by the code that would check the call itself; decision 19 says how far a rehearsal goes.
 */
import { type AnySchema, type ApiAnswer, createFailure, type Plan } from '@portico/sdk';
import { isFields, mapSecrets, secretPaths } from '@portico/sdk/host';

import { Rehearsal } from '../../../../server/http/request/rehearsal.ts';
import { type CatalogueEntry, findByPath } from '../catalogue.ts';
import { callRoute } from './call.ts';
import { differences } from './difference.ts';
import {
    admitCall,
    type Admitted,
    answerOf,
    type Calling,
    isAnswer,
    type PlainCall,
    send
} from './request.ts';

type Validated = Plan['validated'];

const mask = '[secret]';

/** Plans a call. @throws a failure for a route that the plugin cannot call */
export async function planRoute(by: Calling, call: PlainCall, signal: AbortSignal): Promise<Plan> {
    const admitted = admitCall(by, call);
    if (isAnswer(admitted)) {
        const { code, message, data } = admitted;
        const { reason, ...more } = data as { readonly reason: string };
        throw createFailure({ code, reason, message, data: more });
    }
    const { info, route } = admitted.entry;
    const about = { method: info.method, path: admitted.url, permission: info.permission };
    const rehearsal = new Rehearsal();
    const checked = await sendAnswer(by, admitted, call, signal, rehearsal);
    if (checked.code !== 0) {
        return {
            ...about,
            etag: null,
            before: null,
            after: null,
            changes: [],
            validated: resultOf(checked),
            undo: null
        };
    }
    const { before, etag } = await readBefore(by, admitted, call, signal);
    const after = afterOf(admitted.entry, call, before, rehearsal);
    return {
        ...about,
        etag,
        before,
        after,
        changes:
            info.effect === 'read' || (before === null && after === null) ? [] : differences(before, after),
        validated: rehearsal.ran
            ? resultOf(checked)
            : (staleness(call, etag) ?? (await askValidate(by, admitted, call, signal))),
        undo: route.secret === true ? null : undoOf(by, admitted.entry, call, before)
    };
}

async function sendAnswer(
    by: Calling,
    admitted: Admitted,
    call: PlainCall,
    signal: AbortSignal,
    rehearsal?: Rehearsal
): Promise<ApiAnswer> {
    const mode = rehearsal === undefined ? {} : { rehearsal };
    const response = await send(by, admitted, call, { signal, mode });
    return isAnswer(response) ? response : answerOf(response);
}

function resultOf({ code, message }: ApiAnswer): Validated {
    return { code, message };
}

/** The object at the path of a change, as the caller may see it by this plugin. */
async function readBefore(
    by: Calling,
    { entry }: Admitted,
    call: PlainCall,
    signal: AbortSignal
): Promise<{ readonly before: unknown; readonly etag: string | null }> {
    const none = { before: null, etag: null };
    if (entry.info.method !== 'PUT' && entry.info.method !== 'DELETE') {
        return none;
    }
    const read = findByPath(by.ports, 'GET', entry.info.path);
    if (read === undefined || !by.grants.api(read.info.id, read.info.effect)) {
        return none;
    }
    const params = renamed(call.params ?? {}, entry.info.path, read.info.path);
    const { code, data, etag } = await callRoute(by, { id: read.info.id, params }, signal);
    return code === 0 ? { before: data, etag } : none;
}

/** Two routes of one path may name its parameters differently. */
function renamed(params: object, from: string, to: string): object {
    const names = (path: string): string[] =>
        [...path.matchAll(/\{(\w+)\*?\}/g)].map(([, name]) => name ?? '');
    const given = params as Readonly<Record<string, unknown>>;
    const targets = names(to);
    return Object.fromEntries(names(from).map((name, index) => [targets[index] ?? name, given[name]]));
}

function afterOf(
    { info, route }: CatalogueEntry,
    { payload }: PlainCall,
    before: unknown,
    { ran, reply }: Rehearsal
): unknown {
    if (info.method === 'DELETE' || info.effect === 'read') {
        return null;
    }
    if (ran && route.secret !== true) {
        return masked(reply, route.returns);
    }
    const given = masked(payload ?? null, route.validate?.payload);
    return info.method === 'PUT' && isFields(before) && isFields(given) ? { ...before, ...given } : given;
}

function masked(value: unknown, schema: AnySchema | undefined): unknown {
    return schema === undefined ? value : mapSecrets(value, secretsIn(schema), () => mask);
}

function secretsIn(schema: AnySchema): readonly string[] {
    // A schema of the SDK is a joi schema, or stands for one in the plugin's runtime: both describe themselves.
    return secretPaths((schema as unknown as { describe(): Readonly<Record<string, unknown>> }).describe());
}

function staleness({ ifMatch }: PlainCall, etag: string | null): Validated {
    return ifMatch === undefined || etag === null || ifMatch.replace(/^"(.*)"$/, '$1') === etag
        ? null
        : { code: 41200, message: `The object has changed: its version is ${etag}` };
}

/** The route `<path>/validate` takes the same body and changes nothing. The right to call the route itself includes it. */
async function askValidate(
    by: Calling,
    { entry, via }: Admitted,
    call: PlainCall,
    signal: AbortSignal
): Promise<Validated> {
    const { method, path } = entry.info;
    const validate = method === 'DELETE' ? undefined : findByPath(by.ports, 'POST', `${path}/validate`);
    if (validate === undefined || validate.info.effect !== 'read') {
        return null;
    }
    const params = renamed(call.params ?? {}, path, validate.info.path);
    const admitted = admitCall(by, { id: validate.info.id, params }, ['json'], { ofPlan: true });
    return isAnswer(admitted)
        ? null
        : resultOf(
              await sendAnswer(
                  by,
                  { ...admitted, via },
                  { id: validate.info.id, ...(call.payload === undefined ? {} : { payload: call.payload }) },
                  signal
              )
          );
}

/** An update by the earlier values, a creation by removal. */
function undoOf(
    { ports, grants }: Calling,
    { info, route }: CatalogueEntry,
    call: PlainCall,
    before: unknown
): Plan['undo'] {
    const { id, params } = call;
    const given = params === undefined ? {} : { params };
    if (info.method === 'PUT' && isFields(before) && isFields(call.payload)) {
        const secrets = new Set(
            route.validate?.payload === undefined
                ? []
                : secretsIn(route.validate.payload).map((path) => path.split('.', 1)[0])
        );
        const keys = Object.keys(call.payload).filter((key) => key !== 'version');
        return keys.every((key) => key in before && !secrets.has(key))
            ? { id, ...given, payload: Object.fromEntries(keys.map((key) => [key, before[key]])) }
            : null;
    }
    if (info.method === 'POST') {
        const remove = findByPath(ports, 'DELETE', `${info.path}/{id}`);
        return remove === undefined || !grants.api(remove.info.id, remove.info.effect)
            ? null
            : { id: remove.info.id, ...given };
    }
    return null;
}
