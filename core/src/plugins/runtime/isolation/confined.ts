/** Both sides of a generation in the same process, each in its own asynchronous context: what runs, and fails, is known by whose it is. */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';

import type { Guest, HostApi } from '@portico/sdk/host';

import type { Confine } from './error-owner.ts';
import { isOutside } from './leak-detector.ts';

type Methods = Readonly<Record<string, (input: never) => unknown>>;

/** Where this was imported, there was no context yet. */
const outside = AsyncLocalStorage.snapshot();

/**
 * The plugin's methods, run as the plugin's. Most calls come from the network, and there is nothing in their context: they go in by one that was
 * made ready, since to make two for each costs as much as all else that lies between the panel and the plugin.
 */
export function confinedGuest(guest: Guest, { enter }: Confine): Guest {
    const ready = outside(() => enter(() => new AsyncResource('Plugin')));
    const run = <T>(work: () => T): T => (isOutside() ? ready.runInAsyncScope(work) : enter(work));
    return Object.fromEntries(
        Object.entries(guest as unknown as Methods).map(([name, method]) => [
            name,
            (input: never) => run(() => method(input))
        ])
    ) as unknown as Guest;
}

/** The panel's methods, run as the panel's; functions of the plugin that come with a call are the plugin's again. */
export function confinedApi(doors: HostApi, { enter, leave }: Confine): HostApi {
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
    return Object.fromEntries(
        Object.entries(doors as unknown as Methods).map(([name, method]) => [
            name,
            (input: object) => leave(() => method(returned(input)))
        ])
    ) as unknown as HostApi;
}
