/** The host's doors in a test: what the panel would do, done in memory, where the test sees it. */
import { boundaryErrors } from '../boundary/failures.ts';
import type { Grants } from '../boundary/grants.ts';
import { plainCopy } from '../boundary/plain.ts';
import type { HostDoors, RouteDocument } from '../boundary/protocol.ts';
import { type Owned, type Scope, within } from '../boundary/scope.ts';
import { labelOf } from '../boundary/settings.ts';
import type { Outcome } from '../hooks.ts';
import { actorOf, type Caller } from './actors.ts';
import { createServingDoors } from './serving.ts';
import type { World } from './world.ts';

export interface DoorsOptions {
    readonly world: World;
    readonly grants: Grants;
    readonly scope: Scope;
    /** Aborts when the generation ends. */
    readonly signal: AbortSignal;
    /** The plugin's own routes, once it has declared them. */
    routes(): readonly RouteDocument[];
    /** Waits for what works in the plugin's name. */
    readonly schedules: Set<string>;
}

const taskPatienceMs = 4_000;

export function createDoors({ world, grants, scope, signal, routes, schedules }: DoorsOptions): HostDoors {
    const {
        api,
        faults,
        people,
        clock,
        tasks,
        tickets,
        hooks,
        partners,
        sealer,
        package: { manifest, package: npmName }
    } = world;
    const plugin = manifest.name;
    const label = `${labelOf(plugin, npmName)} own`;
    const serving = createServingDoors(world.serving, grants);
    const callerOf = (handle: number): Caller => people.get(handle).caller;
    const behalf = (handle: number | null): Caller | null => (handle === null ? null : callerOf(handle));
    const permissionOf = (name: string): string => {
        if (name !== 'authenticated' && !people.permissions.includes(name)) {
            throw new TypeError(`${plugin} declares no permission ${name}`);
        }
        return name === 'authenticated' ? name : `${plugin}:${name}`;
    };
    return {
        async log({ level, message, fields }) {
            world.write({ level, message, fields: fields as Record<string, unknown> });
        },
        async detail({ handle, detail }) {
            people.get(handle).audit?.(detail);
        },
        routes: faults.wrap('api.routes', async ({ handle, filter }) =>
            api.list(grants, routes(), behalf(handle), filter)
        ),
        call: faults.wrap('api.call', async ({ handle, call }) => {
            const caller = callerOf(handle);
            return api.call(
                grants,
                { ...caller, can: (permission) => caller.can(permission), fresh: false },
                call
            );
        }),
        listHosts: faults.wrap('hosts.list', async (filter) => plainCopy(serving.list(filter), 'hosts')),
        createHost: faults.wrap('hosts.create', async ({ host, handle }) =>
            serving.create(host, behalf(handle))
        ),
        updateHost: faults.wrap('hosts.update', async ({ id, change, version, handle }) =>
            serving.update(id, change, version, behalf(handle))
        ),
        removeHost: faults.wrap('hosts.remove', async ({ id, version, handle }) =>
            serving.remove(id, version, behalf(handle))
        ),
        upstreams: faults.wrap('hosts.upstreams', async ({ id }) => serving.upstreams(id)),
        listCertificates: faults.wrap('certificates.list', async (filter) => serving.certificates(filter)),
        uploadCertificate: faults.wrap('certificates.upload', async (body) => serving.upload(body)),
        removeCertificate: faults.wrap('certificates.remove', async ({ id }) =>
            serving.removeCertificate(id)
        ),
        seal: faults.wrap('secrets.seal', async ({ text }) => sealer.seal(label, text)),
        open: faults.wrap('secrets.open', async ({ text }) => sealer.open(label, text)),
        ticket: faults.wrap('tickets.issue', async ({ handle, permission, data, ttlSeconds }) =>
            tickets.issue(callerOf(handle), permissionOf(permission), data, ttlSeconds)
        ),
        task: faults.wrap('task', async ({ options: { kind, title = kind, access, key }, handle, run }) => {
            const caller = behalf(handle);
            const stopping = new AbortController();
            const { promise: over, resolve: finish } = Promise.withResolvers<void>();
            let owned: Owned | null = null;
            const view = tasks.start({
                kind: `${plugin}.${kind}`,
                title,
                access: permissionOf(access),
                key: key === undefined ? null : `${plugin}:${key}`,
                async work({ id, signal: cancelled, progress, log }) {
                    const asker =
                        caller === null
                            ? null
                            : people.begin({ caller, ip: null, requestId: `task-${id}`, audit: null });
                    try {
                        const { result } = await run({
                            id,
                            signal: AbortSignal.any([cancelled, stopping.signal]),
                            asker,
                            progress: async ({ fraction, text }) => progress(fraction, text),
                            log: async ({ line }) => log(line)
                        });
                        return result;
                    } finally {
                        if (asker !== null) {
                            people.finish(asker.handle);
                        }
                        owned?.drop();
                        finish();
                    }
                }
            });
            world.audit.push({
                action: 'start',
                resource: plugin,
                resourceId: kind,
                outcome: 'success',
                code: 0,
                username: caller?.plain.username ?? null
            });
            owned = scope.own('task', `${kind} ${view.id}`, async () => {
                stopping.abort(boundaryErrors.GENERATION_ENDED({ plugin }));
                await within(taskPatienceMs, () => over);
            });
            return view;
        }),
        schedule: faults.wrap('schedule', async ({ name, when, run }) => {
            await clock.add(name, when, ({ at, missed, signal: until }) =>
                run({ at, missed, signal: AbortSignal.any([until, signal]) })
            );
            schedules.add(name);
        }),
        async unschedule({ name }) {
            schedules.delete(name);
            await clock.remove(name);
        },
        nextRun: async ({ name }) => clock.next(name),
        notify: faults.wrap('notify', async (notification) => {
            if (
                !/^[a-z][a-z0-9.-]{0,60}$/i.test(notification.event) ||
                !['info', 'warning', 'error'].includes(notification.severity)
            ) {
                throw new TypeError(
                    'A notification has an event of letters, digits, dots and dashes, and a severity'
                );
            }
            world.notifications.push({ ...notification, event: `${plugin}.${notification.event}` });
        }),
        audit: faults.wrap('audit', async ({ handle, resource, outcome = 'success', ...entry }) => {
            world.audit.push({
                ...entry,
                resource: `${plugin}.${resource}`,
                outcome,
                code: outcome === 'success' ? 0 : 50000,
                username: behalf(handle)?.plain.username ?? null
            });
        }),
        runHook: async ({ name, payload }) => ({ result: await hooks.run(name as never, payload as never) }),
        collect: faults.wrap('hooks.collect', async ({ name, only, signal: stop, payload }) => {
            grants.require('collect', name);
            return {
                outcomes: hooks.host.collect(name, async (who) => (await payload({ plugin: who })).payload, {
                    only,
                    signal: stop === null ? signal : AbortSignal.any([signal, stop])
                }) as AsyncIterable<Outcome<unknown>>
            };
        }),
        partner: faults.wrap('plugins', async ({ plugin: partner, method, input, handle, signal: stop }) => {
            const caller = behalf(handle);
            return partners.call(partner, method, input, {
                plugin,
                actor: caller === null ? null : actorOf(caller, partner),
                signal: stop === null ? signal : AbortSignal.any([signal, stop])
            });
        })
    };
}
