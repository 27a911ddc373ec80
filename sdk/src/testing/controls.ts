/** What a test says of the world around its plugin, and sees of it. */
import type { ApiAnswer, ApiCall } from '../catalogue.ts';
import type { HookRun } from '../context.ts';
import type { HookName, Hooks, Tap } from '../hooks.ts';
import type { Certificate, Host, UpstreamState } from '../serving.ts';
import type { PanelRoute } from './api.ts';
import type { Door, FaultOptions } from './faults.ts';
import type { TestTapFailure } from './hooks.ts';
import type { NetworkAnswer, NetworkTarget } from './network.ts';
import type { FakeContract } from './partners.ts';
import type { ProgramAnswer, ProgramCall } from './programs.ts';
import type { TestTask } from './tasks.ts';

/** The panel's own routes. */
export interface TestApi {
    /** Puts a route there; the same id replaces. */
    route(route: PanelRoute): void;
    /** Every call that the plugin made, refused ones included. */
    readonly calls: readonly (ApiCall & { readonly username: string | null; readonly answer: ApiAnswer })[];
}

/** The fault switch: any door fails or hangs when a test says so. */
export interface TestFaults {
    /**
     * From now on the door fails.
     *
     * @param error - default: STORAGE_FULL 50700 of the database, NOT_READY 50300 of all else
     */
    fail(door: Door, error?: Error, options?: FaultOptions): void;
    /** From now on the door never answers; what hangs then fails when the fault is cleared, or the plugin stops. `reached` resolves when something hangs. */
    hang(door: Door, options?: FaultOptions): { readonly reached: Promise<void> };
    /** Puts one door in order again, or all of them. */
    clear(door?: Door): void;
}

/** The hooks of the core, and those that the plugin publishes. */
export interface TestHooks {
    /**
     * Runs a hook as its publisher does.
     *
     * @throws REFUSED_BY_PLUGIN 40920 when a guard refuses; Error for a hook that nobody publishes
     */
    run<K extends HookName>(name: K, payload: Hooks[K]['payload']): Promise<HookRun<K>>;
    /** Hangs something of the test on a hook, as another plugin: to hear what the plugin publishes, or to give something where it collects. */
    tap<K extends HookName>(name: K, tap: Tap<K>, plugin?: string): () => void;
    /** Every tap, in the order in which it runs. */
    taps(): readonly { readonly plugin: string; readonly hook: string }[];
    /** Taps that threw, were too slow, or refused by failing, in order. */
    readonly failures: readonly TestTapFailure[];
}

/** The outside. Nothing leaves the machine. */
export interface TestNetwork {
    /** Says what a host answers. A text or an object is a 200; an object goes as JSON. A function may throw: then the connection fails. */
    answer(
        host: string,
        answer: NetworkAnswer | ((request: Request) => NetworkAnswer | Promise<NetworkAnswer>)
    ): void;
    /** Leads `dial` to a socket of the test's: `lead('db.example:5432', { port })` to 127.0.0.1, or `lead('/run/docker.sock', { path })`. */
    lead(address: string, target: NetworkTarget): void;
    /** Every request that was let through, in order. */
    readonly requests: readonly Request[];
}

/** The plugins that this one works with. */
export interface TestPartners {
    /** A partner comes, is swapped for another generation, or goes (`null`); resolves when the plugin has heard of it. */
    set(name: string, contract: FakeContract | null): Promise<void>;
}

/** Programs of the machine. None runs that the test did not name. */
export interface TestPrograms {
    /** Says what a program answers, each time it runs. */
    answer(
        file: string,
        answer: ProgramAnswer | ((call: ProgramCall) => ProgramAnswer | Promise<ProgramAnswer>)
    ): void;
    /** Runs the machine's own program of that name, as the test's own user. */
    real(file: string): void;
    /** This machine does not have it: TOOL_MISSING 50302. */
    missing(file: string): void;
    /** Every use that was let through, in order. */
    readonly calls: readonly Omit<ProgramCall, 'stdin' | 'signal'>[];
}

/** What the panel serves. */
export interface TestServing {
    readonly hosts: readonly Host[];
    readonly certificates: readonly Certificate[];
    /** What the engine says of each upstream; what is not here has nothing in flight and is healthy. */
    readonly upstreams: Map<string, UpstreamState>;
    /** Puts a host there that the plugin finds; by default a person made it. */
    addHost(host: { readonly domain: string } & Partial<Host>): Host;
    addCertificate(certificate: { readonly name: string } & Partial<Certificate>): Certificate;
}

/** Scheduled work. */
export interface TestSchedules {
    names(): readonly string[];
    /** When it runs next; null when never. */
    next(name: string): Date | null;
    /** Runs it now, whatever the clock says. @throws Error when nothing has that name */
    run(name: string, options?: { readonly missed?: boolean }): Promise<void>;
}

/** Long work. */
export interface TestTasks {
    /** Every task, oldest first. */
    list(): readonly TestTask[];
    /** Waits for the end of one, by default the newest. @throws Error when there is none */
    wait(id?: number): Promise<TestTask>;
    /** Cancels one, as a person would, and waits for its end. */
    cancel(id?: number): Promise<TestTask>;
}
