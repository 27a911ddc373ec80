/** Runs the plugin's code and the panel's code of a generation in separate asynchronous contexts, which tell the owner of an error or a leak. */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';

import { isOutside } from '@portico/registry';
import type { Guest, HostApi } from '@portico/sdk/host';

import type { Confine } from './error-owner.ts';

type Methods = Readonly<Record<string, (input: never) => unknown>>;

/** The empty context: no plugin runs yet when this module is imported. */
const outside = AsyncLocalStorage.snapshot();

/**
 * The guest with each method run in the plugin's context. Most calls come from the network and have an empty context. For these, one context
 * is made in advance: entering two contexts for each call costs as much as everything else between the panel and the plugin.
 */
export function confinedGuest(guest: Guest, { enter }: Confine): Guest {
    const ready = outside(() => enter(() => new AsyncResource('Plugin')));
    const run = <T>(work: () => T): T => (isOutside() ? ready.runInAsyncScope(work) : enter(work));
    // The casts: methods are only passed on, so the result has the same names with the same inputs.
    return Object.fromEntries(
        Object.entries(guest as unknown as Methods).map(([name, method]) => [
            name,
            (input: never) => run(() => method(input))
        ])
    ) as unknown as Guest;
}

/** The panel's API with each method run in the panel's context; functions that the plugin passes with a call run in the plugin's context. */
export function confinedApi(api: HostApi, { enter, leave }: Confine): HostApi {
    // The cast: each method has its own type of input, of which this keeps every key.
    const returned = (input: object): never =>
        Object.fromEntries(
            Object.entries(input).map(([key, value]: [string, unknown]) => [
                key,
                typeof value === 'function'
                    ? (...args: unknown[]): unknown =>
                          enter(() => (value as (...args: unknown[]) => unknown)(...args))
                    : value
            ])
        ) as never;
    // The casts as above: the same names with the same inputs.
    return Object.fromEntries(
        Object.entries(api as unknown as Methods).map(([name, method]) => [
            name,
            (input: object) => leave(() => method(returned(input)))
        ])
    ) as unknown as HostApi;
}
