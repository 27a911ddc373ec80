/** The host API of one generation: what the panel does when a plugin calls a member of its context. */
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

import { recordedActor } from '../../../platform/call.ts';
import type { Logger } from '../../../platform/log/log.ts';
import { GrantedRoot } from '../files/granted-root.ts';
import { checkLent, type Reach } from '../files/lent.ts';
import { fragmentHook } from '../fragments.ts';
import type { Contracts } from '../partners/contracts.ts';
import type { PluginServices } from '../programs/services.ts';
import type { PluginTickets } from '../routes/tickets.ts';
import type { Schedules } from '../schedules.ts';
import type { PluginAccessLog } from './access-log.ts';
import { Callers, type CallersOptions } from './callers.ts';
import { callRoute } from './calls/call.ts';
import { planRoute } from './calls/plan.ts';
import { readRoute } from './calls/read.ts';
import type { Calling } from './calls/request.ts';
import { listRoutes } from './catalogue.ts';
import { PluginHosts } from './hosts-service.ts';
import { mandatesApi } from './mandates.ts';
import { servicesApi } from './services.ts';

/** What the host API of one generation works with. */
export interface HostApiOptions extends CallersOptions {
    /** Names the key under which secrets are sealed. */
    readonly label: string;
    readonly grants: Grants;
    readonly scope: Scope;
    readonly schedules: Schedules;
    readonly tickets: PluginTickets;
    readonly contracts: Contracts;
    readonly services: PluginServices;
    readonly accessLog: PluginAccessLog;
    readonly usage: Calling['usage'];
    readonly reach: Reach;
    readonly log: Logger;
    /** Asks this plugin alone for its part of the engine's configuration. */
    collectFragments(): Promise<Outcome<unknown> | null>;
    /** Runs a hook that this plugin published. */
    runHook(name: string, payload: unknown): Promise<unknown>;
}

/** How long a handle of a task is valid. */
const longestTaskMs = 24 * 60 * 60_000;
const taskPatienceMs = 4_000;
const mostChannels = 100;
const eventForm = /^[a-z][a-z0-9.-]{0,60}$/i;

/** Creates the host API of one generation: each call looks up its caller by handle, and checks the grants. */
export function createHostApi(options: HostApiOptions): HostApi {
    const callers = new Callers(options);
    return {
        ...panelApi(options, callers),
        ...ownPanelApi(options, callers),
        ...mandatesApi(options, callers),
        ...hostsApi(options, callers),
        ...workApi(options, callers),
        ...servicesApi(options.services, callers),
        accessLog: async ({ from, signal }) => ({
            batches: options.accessLog.read(from, callers.untilEnd(signal))
        }),
        ...recordApi(options, callers),
        ...partnersApi(options, callers)
    };
}

function panelApi(
    { ports, grants, handles, tickets, log, label, usage }: HostApiOptions,
    callers: Callers
): Pick<HostApi, 'log' | 'detail' | 'routes' | 'call' | 'read' | 'plan' | 'seal' | 'open' | 'ticket'> {
    return {
        async log({ level, message, fields }) {
            log[level](message, fields);
        },
        async detail({ handle, detail }) {
            handles.get(handle).audit?.(detail);
        },
        routes: async ({ handle, filter }) =>
            listRoutes(ports, grants, handle === null ? null : callers.holder(handle).caller, filter),
        call: callers.caused(async ({ handle, call, signal, follow }) => {
            const { held, caller } = callers.holder(handle);
            return callRoute({ ports, grants, held, caller, usage }, call, callers.untilEnd(signal), follow);
        }),
        read: callers.caused(async ({ handle, call, limits, signal }) => {
            const { held, caller } = callers.holder(handle);
            return readRoute({ ports, grants, held, caller, usage }, call, limits, callers.untilEnd(signal));
        }),
        plan: callers.caused(async ({ handle, call, signal }) => {
            const { held, caller } = callers.holder(handle);
            return planRoute({ ports, grants, held, caller, usage }, call, callers.untilEnd(signal));
        }),
        seal: async ({ text }) => ports.keyring.seal(`${label} own`, text),
        open: async ({ text }) => ports.keyring.open(`${label} own`, text),
        async ticket({ handle, permission, data, ttlSeconds }) {
            callers.unmandated(handle);
            const { caller } = callers.holder(handle);
            return tickets.issue(caller, callers.permissionOf(permission), data, ttlSeconds);
        }
    };
}

function ownPanelApi(
    { ports, grants, reach }: HostApiOptions,
    callers: Callers
): Pick<HostApi, 'panelFolders' | 'panelHasPlugin' | 'panelListeners' | 'panelUrl' | 'rehearse'> {
    return {
        panelUrl: async () => ports.panel.url(),
        panelHasPlugin: ({ name }) => ports.panel.hasPlugin(name),
        async panelListeners() {
            grants.require('panel', 'listeners');
            return ports.panel.listeners();
        },
        async panelFolders() {
            grants.require('panel', 'folders');
            return ports.panel.folders();
        },
        async rehearse({ folder, signal }) {
            grants.require('panel', 'rehearse');
            const real = await new GrantedRoot(folder, reach).real();
            return ports.panel.rehearse(real, callers.untilEnd(signal));
        }
    };
}

function hostsApi(
    { ports, grants }: HostApiOptions,
    callers: Callers
): Pick<
    HostApi,
    | 'listHosts'
    | 'createHost'
    | 'updateHost'
    | 'removeHost'
    | 'upstreams'
    | 'probeHost'
    | 'hostAccount'
    | 'listCertificates'
    | 'uploadCertificate'
    | 'removeCertificate'
> {
    const hosts = new PluginHosts({
        grants,
        hosts: ports.hosts,
        certificates: ports.certificates,
        forbidden: () => ports.forbidden(),
        // For unsafe parts the plugin's grants stand, which an admin gave from a fresh session.
        call: (as, can, ifMatch) => callers.callOf({ ...(as ?? callers.own(can)), can, fresh: true }, ifMatch)
    });
    return {
        listHosts: async (filter) => plainCopy(hosts.list(filter), 'hosts', Infinity),
        createHost: callers.caused(async ({ host, handle }) =>
            hosts.create(host, callers.unmandated(handle))
        ),
        updateHost: callers.caused(async ({ id, change, version, handle }) =>
            hosts.update(id, change, version, callers.unmandated(handle))
        ),
        removeHost: callers.caused(async ({ id, version, handle }) =>
            hosts.remove(id, version, callers.unmandated(handle))
        ),
        upstreams: async ({ id }) => hosts.upstreams(id),
        probeHost: async ({ address, options: asked, signal }) =>
            hosts.probe(address, { ...asked, signal: callers.untilEnd(signal) }),
        hostAccount: async () => hosts.account(),
        listCertificates: async (filter) => hosts.certificates(filter),
        uploadCertificate: callers.caused(async (body) => hosts.upload(body)),
        removeCertificate: callers.caused(async ({ id }) => hosts.removeCertificate(id))
    };
}

function workApi(
    options: HostApiOptions,
    callers: Callers
): Pick<HostApi, 'task' | 'schedule' | 'unschedule' | 'nextRun'> {
    const { schedules } = options;
    return {
        task: (input) => startTask(options, callers, input),
        async schedule({ name, when, run }) {
            await schedules.add(name, when, (due) => run(due));
        },
        unschedule: async ({ name }) => schedules.remove(name),
        nextRun: async ({ name }) => schedules.next(name)
    };
}

/** Starts a task whose work runs in the plugin. The task is over when the work ends, or soon after the generation ends. */
async function startTask(
    { ports, plugin, handles, scope }: HostApiOptions,
    callers: Callers,
    { options: { kind, title, access, resource, key }, handle, run }: Parameters<HostApi['task']>[0]
): ReturnType<HostApi['task']> {
    const caller = callers.behalf(handle) ?? callers.own();
    let owned: Owned | null = null;
    const { promise: over, resolve: finish } = Promise.withResolvers<void>();
    const { promise: abandoned, reject: abandon } = Promise.withResolvers<never>();
    abandoned.catch(() => undefined);
    const stopping = new AbortController();
    const view = await ports.tasks.start({
        kind: `${plugin}.${kind}`,
        ...(title === undefined ? {} : { title }),
        access: callers.permissionOf(access),
        ...(key === undefined ? {} : { key: `${plugin}:${key}` }),
        call: callers.callOf(caller, null, handle),
        audit: { action: 'start', resource: plugin, resourceId: resource ?? kind },
        async work(task) {
            const signal = AbortSignal.any([task.signal, stopping.signal]);
            let asker: Asker | null = null;
            const expire = setTimeout(
                () => asker !== null && handles.end(asker.handle),
                longestTaskMs
            ).unref();
            try {
                signal.throwIfAborted();
                asker =
                    handle === null
                        ? null
                        : handles.begin({ caller, ip: null, requestId: `task-${task.id}`, audit: null });
                const input: PlainTaskRun = {
                    id: task.id,
                    signal,
                    asker,
                    progress: async ({ fraction, text }) => task.progress(fraction, text),
                    log: async ({ line }) => task.log(line)
                };
                return (await Promise.race([run(input), abandoned])).result;
            } finally {
                clearTimeout(expire);
                if (asker !== null) {
                    handles.end(asker.handle);
                }
                owned?.drop();
                finish();
            }
        }
    });
    owned = scope.own('task', `${kind} ${view.id}`, async () => {
        const reason = boundaryErrors.GENERATION_ENDED({ plugin });
        stopping.abort(reason);
        // The work may go on; the task is over.
        await within(taskPatienceMs, () => over).finally(() => abandon(reason));
    });
    void over.then(() => owned?.drop());
    return view;
}

function recordApi(
    { ports, plugin, handles }: HostApiOptions,
    callers: Callers
): Pick<HostApi, 'notify' | 'audit'> {
    return {
        async notify({ event, severity, title, text, data, channels }) {
            if (!eventForm.test(event) || !['info', 'warning', 'error'].includes(severity)) {
                throw new TypeError(
                    'A notification has an event of letters, digits, dots and dashes, and a severity'
                );
            }
            if (
                channels !== undefined &&
                !(
                    Array.isArray(channels) &&
                    channels.length <= mostChannels &&
                    channels.every(Number.isInteger)
                )
            ) {
                throw new TypeError(`The channels of a notification are at most ${mostChannels} ids`);
            }
            ports.notify({
                event: `${plugin}.${event}`,
                severity,
                title: String(title),
                ...(text === undefined ? {} : { text: String(text) }),
                ...(data === undefined ? {} : { data }),
                ...(channels === undefined ? {} : { channels })
            });
        },
        async audit({ handle, action, resource, resourceId, outcome = 'success', before, after }) {
            await ports.http.recorder.recordAlone({
                actor: recordedActor(callers.behalf(handle) ?? callers.own()),
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
        }
    };
}

function partnersApi(
    { ports, plugin, grants, handles, contracts, reach, runHook, collectFragments }: HostApiOptions,
    callers: Callers
): Pick<HostApi, 'runHook' | 'collect' | 'partner'> {
    return {
        runHook: callers.caused(async ({ name, payload }) => ({ result: await runHook(name, payload) })),
        collect: callers.caused(async ({ name, only, signal, payload }) => {
            if (name === fragmentHook) {
                grants.require('taps', name);
                return { outcomes: outcomesOf(collectFragments()) };
            }
            grants.require('collect', name);
            return {
                outcomes: ports.hooks.collect(
                    name,
                    async (who) => {
                        const { payload: given } = await payload({ plugin: who });
                        await checkLent(name, given, reach);
                        return given;
                    },
                    { only, signal: callers.untilEnd(signal) }
                ) as AsyncIterable<Outcome<unknown>>
            };
        }),
        partner: callers.caused(async ({ plugin: partner, method, input, handle, signal }) => {
            const caller = callers.unmandated(handle);
            const from = handle === null ? null : handles.get(handle);
            return contracts.call(partner, {
                method,
                input,
                plugin,
                signal: callers.untilEnd(signal),
                held:
                    caller === null || from === null
                        ? null
                        : { caller, ip: from.ip, requestId: from.requestId }
            });
        })
    };
}

async function* outcomesOf(one: Promise<Outcome<unknown> | null>): AsyncGenerator<Outcome<unknown>> {
    const outcome = await one;
    if (outcome !== null) {
        yield outcome;
    }
}

/** Notify hooks that need the capability `taps`, because they watch what users do. */
const watched = new Set(['settings.changed', 'audit.recorded']);

/** Checks that the plugin may tap what it taps. @throws CAPABILITY_MISSING 50305 */
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

/** Checks that a plugin with files at the root of the site may have them. @throws CAPABILITY_MISSING 50305 */
export function requirePages(assets: GenerationDocument['assets'], grants: Grants): void {
    if (assets.some(({ at }) => at === 'root') && !grants.pages) {
        throw grants.missing('pages');
    }
}
