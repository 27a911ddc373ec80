/** The doors of one generation, on the host's side: who asks is looked up by handle, what is asked is held against the grants. */
import type { Outcome } from '@portico/sdk';
import {
    type Asker,
    boundaryErrors,
    type GenerationDocument,
    type Grants,
    type HostApi,
    type Owned,
    plainCopy,
    type PlainTaskRun,
    type Scope,
    within
} from '@portico/sdk/host';

import type { Call, Caller } from '../../../platform/call.ts';
import type { Logger } from '../../../platform/log.ts';
import { fragmentHook } from '../fragments.ts';
import type { Contracts } from '../partners/contracts.ts';
import type { PluginHostPorts } from '../ports.ts';
import type { PluginTickets } from '../routes/tickets.ts';
import type { Schedules } from '../schedules.ts';
import { callRoute, listRoutes } from './catalogue.ts';
import { type Handles, type Held, onBehalf } from './handles.ts';
import { PluginHosts } from './hosts-service.ts';
import { createPluginCall, pluginCaller } from './plugin-call.ts';

export interface HostApiOptions {
    readonly ports: PluginHostPorts;
    readonly plugin: string;
    /** Under which secrets are sealed. */
    readonly label: string;
    readonly grants: Grants;
    readonly handles: Handles;
    readonly scope: Scope;
    readonly schedules: Schedules;
    readonly tickets: PluginTickets;
    readonly contracts: Contracts;
    readonly log: Logger;
    /** Aborts when the generation ends. */
    readonly signal: AbortSignal;
    readonly permissions: ReadonlySet<string>;
    /** Asks this plugin, and no other, for what it has for the engine. */
    collectFragments(): Promise<Outcome<unknown> | null>;
    /** Runs a hook that this plugin published. */
    runHook(name: string, payload: unknown): Promise<unknown>;
}

/** An actor in a task is good for so long. */
const longestTaskMs = 24 * 60 * 60_000;
const taskPatienceMs = 4_000;
const eventForm = /^[a-z][a-z0-9.-]{0,60}$/i;

export function createHostApi(options: HostApiOptions): HostApi {
    const { ports, plugin, grants, handles, scope, schedules, tickets, log, signal } = options;

    /** Who asks as of now: session, account and role are looked at each time. */
    const asker = (handle: number): { readonly held: Held; readonly caller: Caller } => {
        const held = handles.get(handle);
        return { held, caller: ports.renew(held.caller) };
    };
    const behalf = (handle: number | null): Caller | null => {
        if (handle === null) {
            return null;
        }
        const { held, caller } = asker(handle);
        return onBehalf(caller, plugin, held.depth);
    };
    const own = (can: (permission: string) => boolean = () => false): Caller => pluginCaller(plugin, can);
    const callOf = (caller: Caller, ifMatch: number | null = null): Call =>
        createPluginCall({
            caller,
            recorder: ports.http.recorder,
            signal,
            ifMatch: ifMatch === null ? null : String(ifMatch)
        });
    const serving = new PluginHosts({
        grants,
        hosts: ports.hosts,
        certificates: ports.certificates,
        call: (as, can, ifMatch) => callOf(as === null ? own(can) : { ...as, can }, ifMatch)
    });
    const permissionOf = (name: string): string => {
        if (name !== 'authenticated' && !options.permissions.has(name)) {
            throw new TypeError(`${plugin} declares no permission ${name}`);
        }
        return name === 'authenticated' ? name : `${plugin}:${name}`;
    };

    /** What the plugin causes passes its own gate, and those that the request passed which it acts for. */
    const caused =
        <I extends object, O>(door: (input: I) => Promise<O>) =>
        async (input: I): Promise<O> => {
            const { handle = null } = input as { readonly handle?: number | null };
            const onward = handle === null ? <T>(work: () => T): T => work() : handles.get(handle).onward;
            return onward(() => ports.gateway.gate(plugin).within(() => door(input)));
        };

    const doors: HostApi = {
        async log({ level, message, fields }) {
            log[level](message, fields);
        },
        async detail({ handle, detail }) {
            handles.get(handle).audit?.(detail);
        },
        routes: async ({ handle, filter }) =>
            listRoutes(ports.gateway, grants, handle === null ? null : asker(handle).caller, filter),
        async call({ handle, call, signal: stop }) {
            const { held, caller } = asker(handle);
            return callRoute(
                ports.gateway,
                grants,
                held,
                caller,
                call,
                stop === null ? signal : AbortSignal.any([signal, stop])
            );
        },
        listHosts: async (filter) => plainCopy(serving.list(filter), 'hosts'),
        createHost: async ({ host, handle }) => serving.create(host, behalf(handle)),
        updateHost: async ({ id, change, version, handle }) =>
            serving.update(id, change, version, behalf(handle)),
        removeHost: async ({ id, version, handle }) => serving.remove(id, version, behalf(handle)),
        upstreams: async ({ id }) => serving.upstreams(id),
        listCertificates: async (filter) => serving.certificates(filter),
        uploadCertificate: async (body) => serving.upload(body),
        removeCertificate: async ({ id }) => serving.removeCertificate(id),
        seal: async ({ text }) => ports.keyring.seal(`${options.label} own`, text),
        open: async ({ text }) => ports.keyring.open(`${options.label} own`, text),
        async ticket({ handle, permission, data, ttlSeconds }) {
            return tickets.issue(asker(handle).caller, permissionOf(permission), data, ttlSeconds);
        },
        async task({ options: { kind, title, access, resource, key }, handle, run }) {
            const caller = behalf(handle) ?? own();
            let owned: Owned | null = null;
            const { promise: over, resolve: finish } = Promise.withResolvers<void>();
            const { promise: abandoned, reject: abandon } = Promise.withResolvers<never>();
            abandoned.catch(() => undefined);
            const stopping = new AbortController();
            const view = await ports.tasks.start({
                kind: `${plugin}.${kind}`,
                ...(title === undefined ? {} : { title }),
                access: permissionOf(access),
                ...(key === undefined ? {} : { key: `${plugin}:${key}` }),
                call: callOf(caller),
                audit: { action: 'start', resource: plugin, resourceId: resource ?? kind },
                async work(task) {
                    const until = AbortSignal.any([task.signal, stopping.signal]);
                    let who: Asker | null = null;
                    const expire = setTimeout(
                        () => who !== null && handles.end(who.handle),
                        longestTaskMs
                    ).unref();
                    try {
                        until.throwIfAborted();
                        who =
                            handle === null
                                ? null
                                : handles.begin({
                                      caller,
                                      ip: null,
                                      requestId: `task-${task.id}`,
                                      audit: null
                                  });
                        const input: PlainTaskRun = {
                            id: task.id,
                            signal: until,
                            asker: who,
                            progress: async ({ fraction, text }) => task.progress(fraction, text),
                            log: async ({ line }) => task.log(line)
                        };
                        return (await Promise.race([run(input), abandoned])).result;
                    } finally {
                        clearTimeout(expire);
                        if (who !== null) {
                            handles.end(who.handle);
                        }
                        owned?.drop();
                        finish();
                    }
                }
            });
            owned = scope.own('task', `${kind} ${view.id}`, async () => {
                const reason = boundaryErrors.GENERATION_ENDED({ plugin });
                stopping.abort(reason);
                await within(taskPatienceMs, () => over).finally(() => abandon(reason)); // whatever it still does, as a task it is over
            });
            void over.then(() => owned?.drop());
            return view;
        },
        async schedule({ name, when, run }) {
            await schedules.add(name, when, (due) => run(due));
        },
        unschedule: async ({ name }) => schedules.remove(name),
        nextRun: async ({ name }) => schedules.next(name),
        async notify({ event, severity, title, text, data }) {
            if (!eventForm.test(event) || !['info', 'warning', 'error'].includes(severity)) {
                throw new TypeError(
                    'A notification has an event of letters, digits, dots and dashes, and a severity'
                );
            }
            ports.notify({
                event: `${plugin}.${event}`,
                severity,
                title: String(title),
                ...(text === undefined ? {} : { text: String(text) }),
                ...(data === undefined ? {} : { data })
            });
        },
        async audit({ handle, action, resource, resourceId, outcome = 'success', before, after }) {
            const caller = behalf(handle) ?? own();
            await ports.http.recorder.recordAlone({
                actor: { id: caller.id, username: caller.username, tokenId: caller.tokenId, plugin },
                action: String(action),
                resource: `${plugin}.${resource}`,
                resourceId: resourceId ?? null,
                before,
                after,
                outcome,
                status: null,
                code: outcome === 'success' ? 0 : 50000,
                ip: handle === null ? null : handles.get(handle).ip,
                userAgent: null,
                requestId: handle === null ? null : handles.get(handle).requestId
            });
        },
        runHook: async ({ name, payload }) => ({ result: await options.runHook(name, payload) }),
        async collect({ name, only, signal: stop, payload }) {
            if (name === fragmentHook) {
                grants.require('taps', name);
                return { outcomes: outcomesOf(options.collectFragments()) };
            }
            grants.require('collect', name);
            return {
                outcomes: ports.hooks.collect(name, async (who) => (await payload({ plugin: who })).payload, {
                    only,
                    signal: stop === null ? signal : AbortSignal.any([signal, stop])
                }) as AsyncIterable<Outcome<unknown>>
            };
        },
        async partner({ plugin: partner, method, input, handle, signal: stop }) {
            const caller = behalf(handle);
            return options.contracts.call(partner, {
                method,
                input,
                plugin,
                signal: stop === null ? signal : AbortSignal.any([signal, stop]),
                held:
                    caller === null || handle === null
                        ? null
                        : { caller, ip: handles.get(handle).ip, requestId: handles.get(handle).requestId }
            });
        }
    };
    return {
        ...doors,
        call: caused(doors.call),
        createHost: caused(doors.createHost),
        updateHost: caused(doors.updateHost),
        removeHost: caused(doors.removeHost),
        uploadCertificate: caused(doors.uploadCertificate),
        removeCertificate: caused(doors.removeCertificate),
        runHook: caused(doors.runHook),
        collect: caused(doors.collect),
        partner: caused(doors.partner)
    };
}

async function* outcomesOf(one: Promise<Outcome<unknown> | null>): AsyncGenerator<Outcome<unknown>> {
    const outcome = await one;
    if (outcome !== null) {
        yield outcome;
    }
}

/** Hooks that a plugin hangs on only with the capability `taps`: they can change, refuse or watch what others do. */
const watched = new Set(['settings.changed', 'audit.recorded']);

/** @throws CAPABILITY_MISSING 50305 */
export function checkTaps(
    taps: GenerationDocument['taps'],
    grants: Grants,
    kindOf: (hook: string) => string | null
): void {
    for (const { hook } of taps) {
        const kind = kindOf(hook);
        if (watched.has(hook) || (kind !== null && kind !== 'notify')) {
            grants.require('taps', hook);
        }
    }
}

/** @throws CAPABILITY_MISSING 50305 */
export function requirePages(assets: GenerationDocument['assets'], grants: Grants): void {
    if (assets.some(({ at }) => at === 'root') && !grants.pages) {
        throw grants.missing('pages');
    }
}
