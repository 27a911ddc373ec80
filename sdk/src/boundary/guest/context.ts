/** The context that `setup` gets: registration, what crosses to the host, and what works in the plugin's own guest runtime. */
import type { Context, HookRun, HookService } from '../../context/context.ts';
import type { RemoteOptions } from '../../definition.ts';
import type { HookName, Hooks, Outcome } from '../../hooks.ts';
import { plainCopy } from '../plain.ts';
import { partnerProxy } from './partners.ts';
import type { AnyRoute, GuestTap, Registration } from './registration.ts';
import {
    createAccessLogService,
    createHostServices,
    createLocalServices,
    createMandatesService,
    createPanelService,
    createProxyServices,
    createServicesService,
    createStartedServices
} from './services.ts';
import { type GuestState, GuestWork } from './work.ts';

/** Makes the context of one generation. It does no work before the plugin asks for it. */
export function createContext(state: GuestState): Context {
    const { name, version, dataDir, hostApi } = state;
    const work = new GuestWork(state);
    const log =
        (level: 'debug' | 'info' | 'warn' | 'error') =>
        (message: string, fields: object = {}): void => {
            void hostApi.log({ level, message: String(message), fields });
        };
    return {
        name,
        version,
        dataDir,
        log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
        signal: state.ending.signal,
        get settings() {
            return state.settings;
        },
        plugins: createPartners(state, work),
        hooks: createHookService(state, work),
        services: createServicesService(state, work),
        ...createRouteRegistration(state.registration),
        ...createLifecycleRegistration(state),
        ...createHostServices(state, work),
        ...createMandatesService(state, work),
        ...createProxyServices(hostApi, work),
        ...createAccessLogService(state, work),
        ...createPanelService(hostApi, work),
        ...createStartedServices(state, work),
        ...createLocalServices(state, work)
    };
}

function createRouteRegistration(
    registration: Registration
): Pick<Context, 'route' | 'stream' | 'socket' | 'upload' | 'download' | 'http'> {
    const declare =
        (kind: Parameters<Registration['route']>[0]) =>
        (route: unknown): void =>
            registration.route(kind, route as AnyRoute);
    return {
        route: declare('json'),
        stream: declare('stream'),
        socket: declare('socket'),
        upload: declare('upload'),
        download: declare('download'),
        http: declare('http')
    };
}

function createLifecycleRegistration({
    registration,
    requires,
    optional
}: GuestState): Pick<Context, 'assets' | 'health' | 'onStart' | 'onStop' | 'onSettings' | 'onPartner'> {
    const add =
        <T>(member: string, list: T[]) =>
        (item: T): void => {
            registration.begin(member);
            list.push(item);
        };
    return {
        assets: add('assets', registration.assets),
        health(name, check) {
            registration.begin('health');
            if (registration.health.has(name)) {
                throw new TypeError(`The health check ${name} is declared twice`);
            }
            registration.health.set(name, check);
        },
        onStart: add('onStart', registration.starts),
        onStop: add('onStop', registration.stops),
        onSettings: add('onSettings', registration.onSettings),
        onPartner(name: string, work: Registration['onPartner'][number]['work']) {
            registration.begin('onPartner');
            if (!optional.includes(name) && !requires.includes(name)) {
                throw new TypeError(`ctx.onPartner: ${name} is no partner of this definition`);
            }
            registration.onPartner.push({ name, work });
        }
    };
}

function createPartners(state: GuestState, work: GuestWork): object {
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
        work.requireAlive();
        return state.hostApi.partner({
            plugin,
            method,
            input,
            handle: work.handleOf(options.actor),
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
    return Object.freeze(plugins);
}

function createHookService(
    { registration, hostApi, name: plugin }: GuestState,
    work: GuestWork
): HookService {
    return {
        tap(hook, tap, order = {}) {
            registration.begin('hooks.tap');
            registration.taps.push({
                hook,
                tap: tap as GuestTap['tap'],
                order: plainCopy(order, 'the order of the tap')
            });
        },
        define<K extends HookName>(
            name: K,
            { kind, summary, timeoutSeconds }: Parameters<HookService['define']>[1]
        ) {
            registration.begin('hooks.define');
            if (!name.startsWith(`${plugin}.`)) {
                throw new TypeError(`ctx.hooks.define: ${name} does not start with ${plugin}.`);
            }
            registration.hooks.push({
                name,
                kind,
                summary,
                ...(timeoutSeconds === undefined ? {} : { timeoutSeconds })
            });
            return work.guard(async (payload: Hooks[K]['payload']) => {
                const copy = plainCopy<unknown>(payload, `the payload of ${name}`);
                return (await hostApi.runHook({ name, payload: copy })).result as HookRun<K>;
            });
        },
        async *collect<K extends HookName>(
            hook: K,
            payload: (plugin: string) => unknown,
            { only, signal }: { readonly only?: readonly string[]; readonly signal?: AbortSignal } = {}
        ) {
            work.requireAlive();
            const { outcomes } = await hostApi.collect({
                name: hook,
                only: only ?? null,
                signal: signal ?? null,
                payload: async ({ plugin: asked }) => ({
                    payload: plainCopy(payload(asked), `the payload of ${hook}`)
                })
            });
            yield* outcomes as AsyncIterable<Outcome<Hooks[K]['result']>>;
        }
    };
}
