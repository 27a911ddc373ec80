/** For whom a plugin acts: itself, or the holder of a handle. */
import type { Call, Caller } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';
import { createInternalCall } from '../../../server/http/request/internal-call.ts';
import type { PluginHostPorts } from '../ports.ts';
import { type Handles, type Held, onBehalf } from './handles.ts';
import { pluginCaller } from './plugin-caller.ts';

/** What {@link Callers} needs of its generation. */
export interface CallersOptions {
    readonly ports: PluginHostPorts;
    readonly plugin: string;
    readonly handles: Handles;
    /** Aborts when the generation ends. */
    readonly signal: AbortSignal;
    readonly permissions: ReadonlySet<string>;
}

/** Finds out for whom a generation acts. */
export class Callers {
    readonly #options: CallersOptions;

    constructor(options: CallersOptions) {
        this.#options = options;
    }

    /** The holder of a handle as of now: session, account and role are checked each time. */
    holder(handle: number): { readonly held: Held; readonly caller: Caller } {
        const held = this.#options.handles.get(handle);
        return { held, caller: this.#options.ports.renew(held.caller) };
    }

    /** The caller that the plugin acts for; null when it acts for itself. */
    behalf(handle: number | null): Caller | null {
        if (handle === null) {
            return null;
        }
        const { held, caller } = this.holder(handle);
        return onBehalf(caller, this.#options.plugin, held.depth);
    }

    /** The same, but not by a mandate of this plugin: that is for its routes alone. @throws FORBIDDEN 40300 */
    unmandated(handle: number | null): Caller | null {
        const caller = this.behalf(handle);
        if (caller?.mandate?.plugin === this.#options.plugin) {
            throw fail.FORBIDDEN({ permission: 'mandate' }, { message: 'A mandate only calls its routes' });
        }
        return caller;
    }

    /** The plugin itself. */
    own(can: (permission: string) => boolean = () => false): Caller {
        return pluginCaller(this.#options.plugin, can);
    }

    /** @param handle - of the request that it is made for */
    callOf(caller: Caller, ifMatch: number | null = null, handle: number | null = null): Call {
        const route = handle === null ? undefined : this.#options.handles.get(handle).route;
        return createInternalCall({
            caller,
            recorder: this.#options.ports.http.recorder,
            signal: this.#options.signal,
            ifMatch: ifMatch === null ? null : String(ifMatch),
            ...(route === undefined ? {} : { route })
        });
    }

    permissionOf(name: string): string {
        const { plugin, permissions } = this.#options;
        if (name !== 'authenticated' && !permissions.has(name)) {
            throw new TypeError(`${plugin} declares no permission ${name}`);
        }
        return name === 'authenticated' ? name : `${plugin}:${name}`;
    }

    /** Lets what the plugin causes pass its own gate, and the gates that the request passed for which it acts. */
    caused<I extends object, O>(work: (input: I) => Promise<O>): (input: I) => Promise<O> {
        const { handles, ports, plugin } = this.#options;
        return async (input) => {
            const { handle = null } = input as { readonly handle?: number | null };
            const onward = handle === null ? <T>(run: () => T): T => run() : handles.get(handle).onward;
            return onward(() => ports.gateway.gate(plugin).within(() => work(input)));
        };
    }

    /** A signal that also aborts when the generation ends. */
    untilEnd(stop: AbortSignal | null): AbortSignal {
        const { signal } = this.#options;
        return stop === null ? signal : AbortSignal.any([signal, stop]);
    }
}
