/** The context that `setup` gets: registration, what crosses to the host, and what works in the plugin's own guest runtime. */
import type { Context, Db, Files, HookService, ScheduledRun, TaskOptions, TaskRun } from '../context.ts';
import type { RemoteOptions } from '../definition.ts';
import type { HookName } from '../hooks.ts';
import type { Actor } from '../route.ts';
import type { GuestActors } from './actors.ts';
import { boundaryErrors } from './failures.ts';
import { partnerProxy } from './partners.ts';
import { plainCopy } from './plain.ts';
import type { HostApi, LocalApi, PlainTaskRun } from './protocol.ts';
import type { AnyRoute, Registration } from './registration.ts';
import type { Scope } from './scope.ts';

/** The state of a generation in its realm. */
export interface GuestState {
    readonly name: string;
    readonly version: string;
    readonly dataDir: string;
    readonly ending: AbortController;
    readonly registration: Registration;
    readonly actors: GuestActors;
    readonly hostApi: HostApi;
    readonly local: LocalApi;
    readonly scope: Scope;
    readonly requires: readonly string[];
    readonly optional: readonly string[];
    /** Names of the partners that run. */
    readonly present: Set<string>;
    settings: object;
    /** `onStart` has begun. */
    begun: boolean;
    ended: boolean;
}

type Any = (...input: never[]) => never;

export function createContext(state: GuestState): Context {
    const { hostApi, local, registration, actors, name } = state;

    /** Work: rejects once the generation has ended. */
    const alive = (): void => {
        if (state.ended) {
            throw boundaryErrors.GENERATION_ENDED({ plugin: name });
        }
    };
    const work = <F extends (...input: never[]) => Promise<unknown>>(door: F): F =>
        (async (...input: Parameters<F>) => {
            alive();
            return door(...input);
        }) as unknown as F;
    const started = (door: string): void => {
        alive();
        if (!state.begun) {
            throw boundaryErrors.NOT_STARTED({ plugin: name, door });
        }
    };
    const handleOf = (actor: Actor | undefined): number | null =>
        actor === undefined ? null : actors.handleOf(actor);
    const log =
        (level: 'debug' | 'info' | 'warn' | 'error') =>
        (message: string, fields: object = {}): void => {
            void hostApi.log({ level, message: String(message), fields });
        };
    const declare =
        (kind: Parameters<Registration['route']>[0]) =>
        (route: unknown): void =>
            registration.route(kind, route as AnyRoute);
    const add =
        <T>(member: string, list: T[]) =>
        (item: T): void => {
            registration.begin(member);
            list.push(item);
        };

    const db: Db = {
        read: work((unit) => local.db.read(unit)) as Db['read'],
        write: work((unit) => local.db.write(unit)) as Db['write']
    };

    return {
        name,
        version: state.version,
        dataDir: state.dataDir,
        log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
        signal: state.ending.signal,
        get settings() {
            return state.settings as never;
        },
        plugins: partners(state, alive),
        route: declare('json'),
        stream: declare('stream'),
        socket: declare('socket'),
        upload: declare('upload'),
        download: declare('download'),
        http: declare('http'),
        assets: add('assets', registration.assets) as Context['assets'],
        hooks: hookService(state, work, alive),
        health(check, run) {
            registration.begin('health');
            if (registration.health.has(check)) {
                throw new TypeError(`The health check ${check} is declared twice`);
            }
            registration.health.set(check, run);
        },
        onStart: add('onStart', registration.starts) as Context['onStart'],
        onStop: add('onStop', registration.stops) as Context['onStop'],
        onSettings: add('onSettings', registration.onSettings) as Context['onSettings'],
        onPartner(partner: string, run: Any) {
            registration.begin('onPartner');
            if (!state.optional.includes(partner) && !state.requires.includes(partner)) {
                throw new TypeError(`ctx.onPartner: ${partner} is no partner of this definition`);
            }
            registration.onPartner.push({ name: partner, work: run });
        },
        db,
        api: {
            routes: work(async ({ for: actor, ...filter } = {}) =>
                hostApi.routes({ handle: handleOf(actor), filter })
            ),
            call: work(async (actor, { signal = null, ...call }) =>
                hostApi.call({
                    handle: actors.handleOf(actor),
                    call: plainCopy(call, 'the call'),
                    signal: signal as AbortSignal | null
                })
            )
        },
        hosts: {
            list: work(async (filter = {}) => hostApi.listHosts(filter)),
            create: work(async (host, as) =>
                hostApi.createHost({ host: plainCopy(host, 'the host'), handle: handleOf(as) })
            ),
            update: work(async (id, change, { version = null, as } = {}) =>
                hostApi.updateHost({
                    id,
                    change: plainCopy(change, 'the change'),
                    version: version as number | null,
                    handle: handleOf(as)
                })
            ),
            remove: work(async (id, { version = null, as } = {}) =>
                hostApi.removeHost({ id, version: version as number | null, handle: handleOf(as) })
            ),
            upstreams: work(async (id) => hostApi.upstreams({ id }))
        },
        certificates: {
            list: work(async (filter = {}) => hostApi.listCertificates(filter)),
            upload: work(async (certificate) => hostApi.uploadCertificate(certificate)),
            remove: work(async (id) => hostApi.removeCertificate({ id }))
        },
        files(root) {
            alive();
            const files = local.files(root);
            return Object.fromEntries(
                Object.entries(files).map(([member, door]) => [member, work(door as never)])
            ) as unknown as Files;
        },
        secrets: {
            seal: work(async (text) => hostApi.seal({ text })),
            open: work(async (text) => hostApi.open({ text }))
        },
        tickets: {
            issue: work(async (actor, { permission, data = null, ttlSeconds = 30 }) =>
                hostApi.ticket({
                    handle: actors.handleOf(actor),
                    permission,
                    data: plainCopy(data, 'the data of the ticket'),
                    ttlSeconds: ttlSeconds as number
                })
            )
        },
        fetch: work(async (input, init) => local.fetch(input, init)),
        dial(target) {
            alive();
            return local.dial(target);
        },
        exec: work(async (file, args, options) => local.exec(file, args, options)),
        spawn: work(async (file, args, options) => local.spawn(file, args, options)),
        task: (async <T>({ actor, ...options }: TaskOptions, run: (run: TaskRun) => Promise<T>) => {
            started('task');
            return hostApi.task({
                options: plainCopy(options, 'the task'),
                handle: handleOf(actor),
                run: async (input) => ({
                    result: plainCopy(await run(taskRun(input, actors)), 'the result of the task')
                })
            });
        }) as Context['task'],
        async schedule(entry, when, run) {
            started('schedule');
            await hostApi.schedule({
                name: entry,
                when: plainCopy(when, 'the schedule'),
                run: async (input: ScheduledRun) => run(input)
            });
            return {
                next: work(async () => hostApi.nextRun({ name: entry })),
                [Symbol.asyncDispose]: () =>
                    state.ended ? Promise.resolve() : hostApi.unschedule({ name: entry })
            };
        },
        async notify(message) {
            started('notify');
            await hostApi.notify(plainCopy(message, 'the notification'));
        },
        audit: work(async ({ actor, ...entry }) =>
            hostApi.audit({ ...plainCopy(entry, 'the entry'), handle: handleOf(actor) })
        ),
        use(owned) {
            const dispose =
                (owned as AsyncDisposable)[Symbol.asyncDispose] ?? (owned as Disposable)[Symbol.dispose];
            if (typeof dispose !== 'function') {
                throw new TypeError('ctx.use takes something disposable');
            }
            state.scope.own('disposable', owned.constructor?.name ?? 'object', () => dispose.call(owned));
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

function partners(state: GuestState, alive: () => void): never {
    const ask = async ({
        plugin,
        method,
        input,
        options
    }: {
        plugin: string;
        method: string;
        input: unknown;
        options: RemoteOptions;
    }) => {
        alive();
        return state.hostApi.partner({
            plugin,
            method,
            input,
            handle: options.actor === undefined ? null : state.actors.handleOf(options.actor),
            signal: options.signal ?? null
        });
    };
    const plugins = {};
    for (const partner of [...state.requires, ...state.optional]) {
        const proxy = partnerProxy(partner, ask);
        Object.defineProperty(plugins, partner, {
            enumerable: true,
            get: () => (state.requires.includes(partner) || state.present.has(partner) ? proxy : undefined)
        });
    }
    return Object.freeze(plugins) as never;
}

function hookService(
    state: GuestState,
    work: <F extends (...input: never[]) => Promise<unknown>>(door: F) => F,
    alive: () => void
): HookService {
    const { registration, hostApi, name } = state;
    return {
        tap(hook, tap, order = {}) {
            registration.begin('hooks.tap');
            registration.taps.push({
                hook,
                tap: tap as never,
                order: plainCopy(order, 'the order of the tap')
            });
        },
        define(hook, { kind, summary, timeoutSeconds }) {
            registration.begin('hooks.define');
            if (!hook.startsWith(`${name}.`)) {
                throw new TypeError(`ctx.hooks.define: ${hook} does not start with ${name}.`);
            }
            registration.hooks.push({
                name: hook,
                kind,
                summary,
                ...(timeoutSeconds === undefined ? {} : { timeoutSeconds })
            });
            return work(
                async (payload: unknown) =>
                    (
                        await hostApi.runHook({
                            name: hook,
                            payload: plainCopy(payload, `the payload of ${hook}`)
                        })
                    ).result
            ) as never;
        },
        async *collect<K extends HookName>(
            hook: K,
            payload: (plugin: string) => unknown,
            { only, signal }: { readonly only?: readonly string[]; readonly signal?: AbortSignal } = {}
        ) {
            alive();
            const { outcomes } = await hostApi.collect({
                name: hook,
                only: only ?? null,
                signal: signal ?? null,
                payload: async ({ plugin }) => ({
                    payload: plainCopy(payload(plugin), `the payload of ${hook}`)
                })
            });
            yield* outcomes as AsyncIterable<never>;
        }
    };
}
