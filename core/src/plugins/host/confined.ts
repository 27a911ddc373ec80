/** Both sides of a generation in the same process, each in its own asynchronous context: what runs, and fails, is known by whose it is. */
import type { Guest, HostDoors } from '@portico/sdk/host';
import type { Confine } from '../blame.ts';

type Methods = Readonly<Record<string, (input: never) => unknown>>;

/** The plugin's methods, run as the plugin's. */
export function confinedGuest(guest: Guest, { enter }: Confine): Guest {
    return Object.fromEntries(Object.entries(guest as unknown as Methods).map(([name, method]) => [name, (input: never) => enter(() => method(input))])) as unknown as Guest;
}

/** The panel's methods, run as the panel's; functions of the plugin that come with a call are the plugin's again. */
export function confinedDoors(doors: HostDoors, { enter, leave }: Confine): HostDoors {
    const returned = (input: object): never => Object.fromEntries(Object.entries(input).map(([key, value]: [string, unknown]) =>
        [key, typeof value === 'function' ? (...args: unknown[]): unknown => enter(() => (value as (...args: unknown[]) => unknown)(...args)) : value])) as never;
    return Object.fromEntries(Object.entries(doors as unknown as Methods).map(([name, method]) => [name, (input: object) => leave(() => method(returned(input)))])) as unknown as HostDoors;
}
