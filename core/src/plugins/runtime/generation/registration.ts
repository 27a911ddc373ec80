/** Registers the hooks and taps of a generation with the core, and takes them back when its scope ends. */
import type { HookHost, HookName } from '@portico/sdk';
import { AskedTap, type GenerationDocument, type Guest, type Scope } from '@portico/sdk/host';

import { collectBackup, givingItems, type Reach } from '../files/lent.ts';

/** Hooks that a plugin published, by name. */
export type Publishers = Map<string, { run(payload: never): Promise<unknown> }>;

/** What is registered, and where. */
export interface HookRegistration {
    readonly hooks: HookHost;
    /** The plugin that taps, with the gate that its taps wait at. */
    readonly owner: Parameters<HookHost['tap']>[0];
    readonly document: GenerationDocument;
    readonly guest: Guest;
    readonly scope: Scope;
    /** What the plugin's files may reach. */
    readonly reach: Reach;
    readonly publishers: Publishers;
}

/** Defines the hooks that the plugin publishes, and taps those that it listens to. */
export function registerHooks({
    hooks,
    owner,
    document,
    guest,
    scope,
    reach,
    publishers
}: HookRegistration): void {
    for (const { name, kind, timeoutSeconds } of document.hooks) {
        const published = hooks.define(
            name as HookName,
            kind as never, // the document says which kind a name has
            timeoutSeconds === undefined ? {} : { timeoutSeconds }
        );
        publishers.set(name, published as never); // payloads are the plugin's own
        scope.own('hook', name, () => hooks.withdraw(name));
    }
    for (const { tap, hook, order } of document.taps) {
        const ask = async (payload: unknown, call: { signal: AbortSignal }): Promise<unknown> =>
            (await guest.tap(new AskedTap(tap, payload, call))).result;
        const run = hook === collectBackup ? givingItems(ask, reach) : ask;
        // The hook's own type decides what the tap gets; the boundary carries plain data.
        const untap = hooks.tap(owner, hook as HookName, run as never, order);
        scope.own('tap', hook, untap);
    }
}
