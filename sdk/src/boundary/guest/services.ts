/** The work of a plugin's context: what the host does for the plugin, and what works in the plugin's own guest runtime. */
import type { Context, TaskRun } from '../../context/context.ts';
import type { Files } from '../../context/files.ts';
import type { ServicesService } from '../../context/services.ts';
import type { Actor } from '../../routes/route.ts';
import { plainCopy } from '../plain.ts';
import type { HostApi, PlainTaskRun } from '../protocol.ts';
import type { GuestActors } from './actors.ts';
import type { GuestState, GuestWork } from './work.ts';

/** `ctx.api`, `ctx.secrets`, `ctx.tickets` and `ctx.audit`: calls that the host answers. */
export function createHostServices(
    { hostApi, actors }: GuestState,
    work: GuestWork
): Pick<Context, 'api' | 'secrets' | 'tickets' | 'audit'> {
    return {
        api: {
            routes: work.guard(async ({ for: actor, ...filter } = {}) =>
                hostApi.routes({ handle: work.handleOf(actor), filter })
            ),
            call: work.guard(async (actor, { signal = null, follow, ...call }) =>
                hostApi.call({
                    handle: actors.handleOf(actor),
                    call: plainCopy(call, 'the call'),
                    signal,
                    ...(follow === undefined ? {} : { follow: async (progress) => follow(progress) })
                })
            ),
            read: work.guard(async (actor, { signal = null, ...call }, limits) =>
                hostApi.read({
                    handle: actors.handleOf(actor),
                    call: plainCopy(call, 'the call'),
                    limits: plainCopy(limits, 'the limits'),
                    signal
                })
            ),
            plan: work.guard(async (actor, { signal = null, ...call }) =>
                hostApi.plan({ handle: actors.handleOf(actor), call: plainCopy(call, 'the call'), signal })
            )
        },
        secrets: {
            seal: work.guard(async (text) => hostApi.seal({ text })),
            open: work.guard(async (text) => hostApi.open({ text }))
        },
        tickets: {
            issue: work.guard(async (actor, { permission, data = null, ttlSeconds = 30 }) =>
                hostApi.ticket({
                    handle: actors.handleOf(actor),
                    permission,
                    data: plainCopy(data, 'the data of the ticket'),
                    ttlSeconds
                })
            )
        },
        audit: work.guard(async ({ actor, ...entry }) =>
            hostApi.audit({ ...plainCopy(entry, 'the entry'), handle: work.handleOf(actor) })
        )
    };
}

/** `ctx.mandates`. What `use` returns or throws never leaves the plugin's own runtime. */
export function createMandatesService(
    { hostApi, actors }: GuestState,
    work: GuestWork
): Pick<Context, 'mandates'> {
    return {
        mandates: {
            give: work.guard(async (actor, { title, routes, expiresAt = null }) =>
                hostApi.giveMandate({
                    ...plainCopy({ title, routes, expiresAt }, 'the mandate'),
                    handle: actors.handleOf(actor)
                })
            ),
            async use<T>(id: number, unit: (actor: Actor) => Promise<T>): Promise<T> {
                work.requireStarted('mandates.use');
                const { promise, resolve, reject } = Promise.withResolvers<T>();
                promise.catch(() => undefined); // the failure is thrown below
                await hostApi.useMandate({
                    id,
                    run: async (asker) => {
                        await unit(actors.of(asker)).then(resolve, reject);
                    }
                });
                return promise;
            },
            end: work.guard(async (id) => hostApi.endMandate({ id }))
        }
    };
}

/** Makes `ctx.hosts` and `ctx.certificates` of a generation. */
export function createProxyServices(
    hostApi: HostApi,
    work: GuestWork
): Pick<Context, 'hosts' | 'certificates'> {
    return {
        hosts: {
            list: work.guard(async (filter = {}) => hostApi.listHosts(filter)),
            create: work.guard(async (host, as) =>
                hostApi.createHost({ host: plainCopy(host, 'the host'), handle: work.handleOf(as) })
            ),
            update: work.guard(async (id, change, { version = null, as } = {}) =>
                hostApi.updateHost({
                    id,
                    change: plainCopy(change, 'the change'),
                    version,
                    handle: work.handleOf(as)
                })
            ),
            remove: work.guard(async (id, { version = null, as } = {}) =>
                hostApi.removeHost({ id, version, handle: work.handleOf(as) })
            ),
            upstreams: work.guard(async (id) => hostApi.upstreams({ id })),
            probe: work.guard(async (address, { signal = null, ...options } = {}) =>
                hostApi.probeHost({ address, options: plainCopy(options, 'the probe'), signal })
            ),
            account: work.guard(async () => hostApi.hostAccount({}))
        },
        certificates: {
            list: work.guard(async (filter = {}) => hostApi.listCertificates(filter)),
            upload: work.guard(async (certificate) => hostApi.uploadCertificate(certificate)),
            remove: work.guard(async (id) => hostApi.removeCertificate({ id }))
        }
    };
}

/** Makes `ctx.panel` of a generation. */
export function createPanelService(hostApi: HostApi, work: GuestWork): Pick<Context, 'panel'> {
    return {
        panel: {
            url: work.guard(async () => hostApi.panelUrl({})),
            hasPlugin: work.guard(async (name) => hostApi.panelHasPlugin({ name })),
            listeners: work.guard(async () => hostApi.panelListeners({})),
            folders: work.guard(async () => hostApi.panelFolders({})),
            async rehearse(folder, { signal = null } = {}) {
                work.requireStarted('panel.rehearse');
                return hostApi.rehearse({ folder, signal });
            }
        }
    };
}

/** Makes `ctx.services` of a generation. */
export function createServicesService(state: GuestState, work: GuestWork): ServicesService {
    const { hostApi } = state;
    const change = (name: 'start' | 'stop' | 'restart' | 'reload') => async (service: string) => {
        work.requireStarted(`services.${name}`);
        return hostApi.changeService({ name: service, change: name });
    };
    return {
        async put(name, options) {
            work.requireStarted('services.put');
            return hostApi.putService({ name, options: plainCopy(options, 'the service') });
        },
        list: work.guard(async () => hostApi.listServices({})),
        start: change('start'),
        stop: change('stop'),
        restart: change('restart'),
        reload: change('reload'),
        async remove(name) {
            work.requireStarted('services.remove');
            await hostApi.removeService({ name });
        },
        async *output(name, { tail = 100, follow = false, signal = null } = {}) {
            work.requireAlive();
            const { lines } = await hostApi.serviceOutput({ name, tail, follow, signal });
            yield* lines;
        }
    };
}

/** Makes `ctx.accessLog` of a generation. */
export function createAccessLogService({ hostApi }: GuestState, work: GuestWork): Pick<Context, 'accessLog'> {
    return {
        async *accessLog({ from = null, signal = null } = {}) {
            work.requireAlive();
            const { batches } = await hostApi.accessLog({ from, signal });
            for await (const batch of batches) {
                for (const record of batch) {
                    yield record;
                }
            }
        }
    };
}

/** `ctx.task`, `ctx.schedule` and `ctx.notify`: work that acts on the world, which is refused before `onStart`. */
export function createStartedServices(
    state: GuestState,
    work: GuestWork
): Pick<Context, 'task' | 'schedule' | 'notify'> {
    const { hostApi, actors } = state;
    return {
        async task({ actor, ...options }, run) {
            work.requireStarted('task');
            return hostApi.task({
                options: plainCopy(options, 'the task'),
                handle: work.handleOf(actor),
                run: async (input) => ({
                    result: plainCopy(await run(taskRun(input, actors)), 'the result of the task')
                })
            });
        },
        async schedule(name, when, run) {
            work.requireStarted('schedule');
            await hostApi.schedule({
                name,
                when: plainCopy(when, 'the schedule'),
                run: async (input) => run(input)
            });
            return {
                next: work.guard(async () => hostApi.nextRun({ name })),
                [Symbol.asyncDispose]: () => (state.ended ? Promise.resolve() : hostApi.unschedule({ name }))
            };
        },
        async notify(message) {
            work.requireStarted('notify');
            await hostApi.notify(plainCopy(message, 'the notification'));
        }
    };
}

/** `ctx.db`, `ctx.files`, `ctx.fetch`, `ctx.dial`, `ctx.resolve`, `ctx.exec`, `ctx.spawn` and `ctx.use`: live objects, which cannot cross to the host. */
export function createLocalServices(
    { local, scope }: GuestState,
    work: GuestWork
): Pick<Context, 'db' | 'files' | 'fetch' | 'dial' | 'resolve' | 'exec' | 'spawn' | 'use'> {
    return {
        db: {
            async read(unit) {
                work.requireAlive();
                return local.db.read(unit);
            },
            async write(unit) {
                work.requireAlive();
                return local.db.write(unit);
            }
        },
        files(root) {
            work.requireAlive();
            const methods = Object.entries(local.files(root));
            // The same methods, each guarded: `Object.entries` does not keep which name has which type.
            return Object.fromEntries(
                methods.map(([name, method]) => [name, work.guard(method as never)])
            ) as unknown as Files;
        },
        fetch: work.guard(async (input, init) => local.fetch(input, init)),
        dial(target) {
            work.requireAlive();
            return local.dial(target);
        },
        resolve: work.guard(async (host) => local.resolve(host)),
        exec: work.guard(async (file, args, options) => local.exec(file, args, options)),
        spawn: work.guard(async (file, args, options) => local.spawn(file, args, options)),
        use(owned) {
            const dispose =
                (owned as AsyncDisposable)[Symbol.asyncDispose] ?? (owned as Disposable)[Symbol.dispose];
            if (typeof dispose !== 'function') {
                throw new TypeError('ctx.use takes something disposable');
            }
            scope.own('disposable', owned.constructor?.name ?? 'object', () => dispose.call(owned));
            return owned;
        }
    };
}

function taskRun({ id, signal, asker, progress, log }: PlainTaskRun, actors: GuestActors): TaskRun {
    return {
        id,
        signal,
        actor: asker === null ? null : actors.of(asker),
        progress: (fraction, text) =>
            void progress({ fraction, ...(text === undefined ? {} : { text: String(text) }) }),
        log: (line) => void log({ line: String(line) })
    };
}
