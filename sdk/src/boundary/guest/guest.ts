/** One generation of a plugin in its guest runtime: answers the host's calls with the definition's code. */
import type Joi from 'joi';

import type { Context } from '../../context/context.ts';
import type { PluginDefinition } from '../../definition.ts';
import { isFailure, messageOf } from '../../errors.ts';
import { joiSchemaOf } from '../../joi.ts';
import { errors } from '../../plugin-errors.ts';
import type { Bytes, Download, StreamEvent } from '../../routes/route.ts';
import { boundaryErrors, failureOf } from '../failures.ts';
import type { LocalApi } from '../local-api.ts';
import { deepFreeze, isSeries, plainCopy } from '../plain.ts';
import type { ContractAnswer, Guest, HostApi, PlainRequest, Release } from '../protocol.ts';
import { secretPaths } from '../schemas/secrets.ts';
import { bodyOptions, faultsOf, validate } from '../schemas/validation.ts';
import { Scope } from '../scope.ts';
import { GuestActors } from './actors.ts';
import { createContext } from './context.ts';
import { describe, type GuestRoute, Registration } from './registration.ts';
import { GuestQueries } from './requests/queries.ts';
import { GuestRequest } from './requests/request.ts';
import { checkedEvents, serialise } from './requests/serialise.ts';
import { answerTap, lentFolder } from './taps.ts';
import type { GuestState } from './work.ts';

/** What a guest is made of. */
export interface GuestOptions {
    readonly name: string;
    readonly version: string;
    readonly dataDir: string;
    readonly definition: PluginDefinition;
    readonly hostApi: HostApi;
    readonly local: LocalApi;
    /** Holds every answer against its schema; on in tests and development. */
    readonly checkReturns: boolean;
}

type Asked = { readonly route: string; readonly request: PlainRequest; readonly signal: AbortSignal };
type Method = (
    input: unknown,
    call: { readonly plugin: string; readonly actor: unknown; readonly signal: AbortSignal }
) => unknown;

/** Makes the guest. Nothing of the plugin runs before `setup`. */
export function createGuest(options: GuestOptions): Guest {
    const guest = new GuestRuntime(options);
    const methods = Object.getOwnPropertyNames(GuestRuntime.prototype).filter(
        (name) => name !== 'constructor'
    ) as (keyof Guest)[];
    // The same methods, each behind `run`: `Object.fromEntries` does not keep which name has which type.
    return Object.fromEntries(
        methods.map((name) => [name, (input: never) => guest.run(name, input)])
    ) as unknown as Guest;
}

class GuestRuntime implements Guest {
    readonly #definition: PluginDefinition;
    readonly #checkReturns: boolean;
    readonly #state: GuestState;
    readonly #queries = new GuestQueries();
    #contract: Readonly<Record<string, Method>> = {};
    #context: Context | null = null;

    constructor({ name, version, dataDir, definition, hostApi, local, checkReturns }: GuestOptions) {
        this.#definition = definition;
        this.#checkReturns = checkReturns;
        this.#state = {
            name,
            version,
            dataDir,
            hostApi,
            local,
            requires: definition.requires,
            optional: definition.optional,
            ending: new AbortController(),
            registration: new Registration(),
            actors: new GuestActors(name),
            scope: new Scope(),
            present: new Set(),
            settings: Object.freeze({}),
            begun: false,
            ended: false
        };
    }

    /** Runs a call of the host. What the plugin throws leaves as a failure, and a bug is logged here, where its stack is known. */
    async run(name: keyof Guest, input: never): Promise<unknown> {
        try {
            if (this.#state.ended && name !== 'end') {
                throw boundaryErrors.GENERATION_ENDED({ plugin: this.#state.name });
            }
            return await (this[name] as (input: never) => Promise<unknown>)(input);
        } catch (error) {
            if (!isFailure(error) && name !== 'setup') {
                const { request } = input as { request?: PlainRequest };
                void this.#state.hostApi.log({
                    level: 'error',
                    message: `A plugin failed in ${name}`,
                    fields: {
                        error: errorFields(error),
                        ...(request === undefined
                            ? {}
                            : { requestId: request.id, route: (input as Asked).route })
                    }
                });
            }
            throw name === 'setup' || name === 'start' ? ownFailure(error) : failureOf(error);
        }
    }

    async define(): ReturnType<Guest['define']> {
        const { settings, requires, optional, migrations } = this.#definition;
        const description = settings === null ? null : describe(settings);
        return {
            settings: description,
            secrets: secretPaths(description),
            requires,
            optional,
            migrations: migrations.map(({ name }) => name)
        };
    }

    async readSettings({ values }: Parameters<Guest['readSettings']>[0]): ReturnType<Guest['readSettings']> {
        if (this.#definition.settings === null) {
            if (Object.keys(values).length > 0) {
                throw errors.invalid(
                    Object.keys(values).map((path) => ({ path, message: `${path} is not allowed` }))
                );
            }
            return { values: {} };
        }
        const { error, value } = joiSchemaOf(this.#definition.settings).validate(values, bodyOptions) as {
            error?: Joi.ValidationError;
            value: Record<string, unknown>;
        };
        if (error !== undefined) {
            throw errors.invalid(faultsOf(error));
        }
        return { values: value };
    }

    async setup({ settings, partners }: Parameters<Guest['setup']>[0]): ReturnType<Guest['setup']> {
        const { registration, present } = this.#state;
        this.#state.settings = deepFreeze(structuredClone(settings));
        partners.forEach((partner) => present.add(partner));
        this.#context = createContext(this.#state);
        const contract = await this.#definition.setup(this.#context as never); // `definePlugin` forgets the types of settings and partners
        registration.close();
        this.#contract = contractOf(contract);
        return registration.document(
            contract === undefined || contract === null ? null : Object.keys(this.#contract)
        );
    }

    async start({ signal }: Parameters<Guest['start']>[0]): Promise<void> {
        this.#state.begun = true;
        for (const work of this.#state.registration.starts) {
            await work(signal);
        }
    }

    async stop({ signal }: Parameters<Guest['stop']>[0]): ReturnType<Guest['stop']> {
        this.#state.ending.abort(boundaryErrors.GENERATION_ENDED({ plugin: this.#state.name }));
        const failures: string[] = [];
        for (const work of [...this.#state.registration.stops].reverse()) {
            try {
                await work(signal);
            } catch (error) {
                failures.push(messageOf(error));
            }
        }
        return { failures };
    }

    async end(): Promise<Release> {
        const { ending, scope, local, name } = this.#state;
        this.#state.ended = true;
        ending.abort(boundaryErrors.GENERATION_ENDED({ plugin: name }));
        const [own, inThread] = [await scope.release(), await local.release()];
        return {
            released: [...own.released, ...inThread.released],
            leaked: [...own.leaked, ...inThread.leaked]
        };
    }

    async settings({ values }: Parameters<Guest['settings']>[0]): Promise<void> {
        const before = this.#state.settings;
        this.#state.settings = deepFreeze(structuredClone(values));
        for (const work of this.#state.registration.onSettings) {
            await (work as (now: object, before: object) => unknown)(this.#state.settings, before);
        }
    }

    async partner({ name, present }: Parameters<Guest['partner']>[0]): Promise<void> {
        this.#state.present[present ? 'add' : 'delete'](name);
        const partner = (this.#context?.plugins as Readonly<Record<string, unknown>> | undefined)?.[name];
        for (const entry of this.#state.registration.onPartner.filter((each) => each.name === name)) {
            await (entry.work as (partner: unknown) => unknown)(partner);
        }
    }

    async health({ name, signal }: Parameters<Guest['health']>[0]): ReturnType<Guest['health']> {
        const check = this.#state.registration.health.get(name);
        if (check === undefined) {
            throw errors.notFound();
        }
        return plainCopy(await check(signal), `the health check ${name}`);
    }

    async tap(input: Parameters<Guest['tap']>[0]): ReturnType<Guest['tap']> {
        const found = this.#state.registration.taps[input.tap];
        const folder = lentFolder(found?.hook, input.payload);
        if (folder === null) {
            return answerTap(found, input);
        }
        const lease = await this.#state.local.lend(folder);
        try {
            return await answerTap(found, input);
        } finally {
            await lease[Symbol.asyncDispose]();
        }
    }

    async check({ route, request }: Parameters<Guest['check']>[0]): Promise<void> {
        this.#valid(this.#route(route), request);
    }

    async json(input: Asked): ReturnType<Guest['json']> {
        const route = this.#route(input.route);
        return serialise(
            await route.handler(this.#request(route, input)),
            this.#checkReturns ? route : null,
            input.route
        );
    }

    async upload(input: Parameters<Guest['upload']>[0]): ReturnType<Guest['upload']> {
        const route = this.#route(input.route);
        return serialise(
            await route.handler(Object.assign(this.#request(route, input), { body: input.body })),
            this.#checkReturns ? route : null,
            input.route
        );
    }

    async stream(input: Asked): ReturnType<Guest['stream']> {
        const route = this.#route(input.route);
        const events = (await route.handler(this.#request(route, input))) as AsyncIterable<StreamEvent>;
        return {
            events:
                this.#checkReturns && route.events !== null
                    ? checkedEvents(events, route.events, input.route)
                    : events
        };
    }

    async download(input: Asked): ReturnType<Guest['download']> {
        const route = this.#route(input.route);
        const { open, close, ...file } = (await route.handler(this.#request(route, input))) as Download;
        return {
            ...plainCopy(file, `the download of ${input.route}`),
            open: async (range) => ({ body: open.call(file, range) as AsyncIterable<Uint8Array> }),
            close: async () => close?.call(file)
        };
    }

    async http(input: Parameters<Guest['http']>[0]): ReturnType<Guest['http']> {
        const route = this.#route(input.route);
        const { method, url, request, body, signal } = input;
        const asked = new globalThis.Request(url, {
            method,
            headers: request.headers,
            signal,
            ...(body === null ? {} : { body, duplex: 'half' as const })
        });
        const call = this.#request(route, input);
        const answer = (await route.handler(asked, call)) as globalThis.Response;
        return { status: answer.status, headers: [...answer.headers], body: answer.body as Bytes | null };
    }

    async socket({ messages, send, close, ...input }: Parameters<Guest['socket']>[0]): Promise<void> {
        const route = this.#route(input.route);
        const socket = {
            send: (data: string | Uint8Array) => ignoreUnawaited(send({ data })),
            close: (code?: number, reason?: string) =>
                ignoreUnawaited(
                    close({
                        ...(code === undefined ? {} : { code }),
                        ...(reason === undefined ? {} : { reason })
                    })
                ),
            [Symbol.asyncIterator]: () => messages[Symbol.asyncIterator]()
        };
        await route.handler(socket, this.#request(route, input));
    }

    async contract({
        method,
        input,
        plugin,
        asker,
        signal
    }: Parameters<Guest['contract']>[0]): Promise<ContractAnswer> {
        const { name, actors } = this.#state;
        const contract = this.#contract;
        if (!Object.hasOwn(contract, method)) {
            throw boundaryErrors.PARTNER_UNAVAILABLE({ plugin: name, method });
        }
        const what = `the answer of ${name}.${method}`;
        const answer = contract[method]?.(input, {
            plugin,
            actor: asker === null ? null : actors.of(asker),
            signal
        });
        return isSeries(answer) ? { series: copied(answer, what) } : { value: plainCopy(await answer, what) };
    }

    #route(id: string): GuestRoute {
        const route = this.#state.registration.routes.get(id);
        if (route === undefined) {
            throw errors.notFound();
        }
        return route;
    }

    #valid(
        { validate: schemas, method }: GuestRoute,
        { params, query, payload }: PlainRequest
    ): { readonly params: unknown; readonly query: unknown; readonly payload: unknown } {
        return {
            params: validate(schemas.params, params, 'params', method),
            query: this.#queries.read(schemas.query, query, method),
            payload:
                schemas.payload === undefined
                    ? undefined
                    : validate(schemas.payload, payload, 'payload', method)
        };
    }

    #request(route: GuestRoute, input: Asked): GuestRequest {
        return new GuestRequest(input, this.#valid(route, input.request), this.#state);
    }
}

function contractOf(contract: unknown): Readonly<Record<string, Method>> {
    if (contract === undefined || contract === null) {
        return {};
    }
    const wrong =
        typeof contract === 'object'
            ? Object.entries(contract).find(([, method]) => typeof method !== 'function')?.[0]
            : 'what setup returned';
    if (wrong !== undefined) {
        throw new TypeError(`The contract has only functions (input, call): ${wrong} is none`);
    }
    return contract as Record<string, Method>;
}

async function* copied(series: AsyncIterable<unknown>, what: string): AsyncGenerator<unknown> {
    try {
        for await (const item of series) {
            yield plainCopy(item, what);
        }
    } catch (error) {
        throw failureOf(error);
    }
}

/** The error of a failed `setup` or start with the plugin's own message, which the plugin's record shows to admins. */
function ownFailure(error: unknown): Error {
    return isFailure(error)
        ? failureOf(error)
        : Object.assign(failureOf(error), {
              message: messageOf(error)
          });
}

function errorFields(error: unknown): object {
    return error instanceof Error
        ? { name: error.name, message: error.message, stack: error.stack }
        : { message: String(error) };
}

/** A caller that awaits the promise gets its failure. A failure that no caller awaits is ignored: a client that went away must not end the plugin. */
function ignoreUnawaited<T>(work: Promise<T>): Promise<T> {
    work.catch(() => undefined);
    return work;
}
