/** Services: programs that outlive the plugin's generation, the panel and its sudden end, as hosts of the proxy do. */
import type { SpawnOptions } from './process.ts';

/** A program to keep running, and how. */
export interface ServiceOptions {
    /** A program of the capability `exec`; not a shell. */
    readonly file: string;
    readonly args: readonly string[];
    /** Absolute; default `/`. The plugin's data folder is no place for a service: it moves when the plugin is upgraded. */
    readonly cwd?: string;
    /** As in {@link SpawnOptions.env}. It is kept in files that only the panel's account can read. */
    readonly env?: Readonly<Record<string, string>>;
    /** As in {@link SpawnOptions.user}. */
    readonly user?: string;
    readonly limits?: SpawnOptions['limits'];
    /** As in {@link SpawnOptions.umask}. */
    readonly umask?: number;
    /**
     * As in {@link SpawnOptions.privateFiles}. They are written again for each run, also while the panel is down, and are gone when it has ended. In
     * between they are kept where `env` is.
     */
    readonly privateFiles?: Readonly<Record<string, string>>;
    /**
     * When a program that ended is started again, after half a second at first and at most a minute. `always` (default); `on-failure`: unless its exit
     * code is 0; `never`: only when the machine was started again; `once`: not even then.
     */
    readonly restart?: 'always' | 'on-failure' | 'never' | 'once';
    /** How long it may take to end before it is killed, 0 to 3600; default 10. Where systemd keeps services, less than 2 counts as 2. */
    readonly stopSeconds?: number;
    /** Asks the program itself to end; its descendants are killed after it. Default SIGTERM. */
    readonly stopSignal?: NodeJS.Signals;
    /** What {@link ServicesService.reload} sends; without it, the service cannot be reloaded. */
    readonly reloadSignal?: NodeJS.Signals;
}

/** How a run of a service ended. */
export interface ServiceExit {
    /** Null when a signal ended it, and when it ended while neither the panel nor its supervisor ran to see it. */
    readonly code: number | null;
    readonly signal: string | null;
    /** `memory`: the kernel ended it, because `limits.group.memoryBytes` was used up. */
    readonly limit?: 'memory';
    readonly at: Date;
}

/** A service as it is now. */
export interface ServiceInfo {
    readonly name: string;
    /** `failed`: it should run and does not, or its only run failed. */
    readonly state: 'running' | 'stopped' | 'failed';
    readonly pid: number | null;
    /** Start of the present run; null unless it runs. */
    readonly startedAt: Date | null;
    /** How often it ended without being asked to. */
    readonly exits: number;
    readonly lastExit: ServiceExit | null;
}

/** One line of a service's output. */
export interface ServiceLine {
    readonly at: Date;
    readonly stream: 'stdout' | 'stderr';
    readonly text: string;
}

/**
 * `ctx.services`; needs the capability `services`. A service goes on when the plugin is disabled, upgraded or uninstalled, when the panel stops, and
 * when it is killed. It ends by `stop` or `remove`, when the plugin's data are deleted, and when an admin takes away the grant that it stands on. Its
 * name is unique within the plugin: `[a-z0-9][a-z0-9_-]{0,62}`.
 */
export interface ServicesService {
    /**
     * Makes a service, or changes it. A new one is started. One that runs is restarted when something is different, and left alone otherwise; so a plugin
     * can put all its services each time that it starts. One that was stopped stays so. Resolves when it was started, before it is ready to serve.
     *
     * @throws VALIDATION_FAILED 40001, CAPABILITY_MISSING 50305, TOOL_MISSING 50302, NOT_FOUND 40400 without the account or folder, STORAGE_FULL 50700
     */
    put(name: string, options: ServiceOptions): Promise<ServiceInfo>;
    /** All services of this plugin, by name. */
    list(): Promise<readonly ServiceInfo[]>;
    /** Starts a service that does not run; one that runs is left alone. @throws NOT_FOUND 40400 */
    start(name: string): Promise<ServiceInfo>;
    /** Ends it, until `start`. @throws NOT_FOUND 40400 */
    stop(name: string): Promise<ServiceInfo>;
    /** Ends a service and starts it again. @throws NOT_FOUND 40400 */
    restart(name: string): Promise<ServiceInfo>;
    /** Sends the `reloadSignal` to the program itself. @throws NOT_FOUND 40400; SERVICE_NOT_RELOADABLE 40905 when it does not run, or has no such signal */
    reload(name: string): Promise<ServiceInfo>;
    /** Ends a service, and forgets it with its output. A name that there is not is no error. */
    remove(name: string): Promise<void>;
    /**
     * Lines of its output, oldest first: the last `tail` of them (default 100, at most 10,000), and with `follow` each further one until the signal
     * aborts, the generation ends or the service is removed. The newest 4 to 8 MiB are kept; where systemd keeps services, what its journal keeps. @throws NOT_FOUND 40400
     */
    output(
        name: string,
        options?: { readonly tail?: number; readonly follow?: boolean; readonly signal?: AbortSignal }
    ): AsyncIterable<ServiceLine>;
}
