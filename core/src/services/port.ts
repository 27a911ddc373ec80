/** Programs that outlive the panel: what the panel asks for, and what a backing promises. systemd and the panel's own supervisor are the two backings. */

import { createHash } from 'node:crypto';

import type { GroupLimits } from '../platform/process/control-group/control-group.ts';

/** When a service that ended is started again. `never`: only after a reboot; `once`: not even then. */
export type RestartPolicy = 'always' | 'on-failure' | 'never' | 'once';

/** The grants that a service stands on. */
export interface ServiceGrants {
    /** The program as the plugin named it. */
    readonly exec: string;
    /** The account as the plugin named it; null for the panel's own. */
    readonly user: string | null;
}

/** A service as a backing keeps it. Everything is decided: no grant, path or account is looked up later. */
export interface ServiceCommand {
    readonly grants: ServiceGrants;
    /** Absolute path of the program. */
    readonly path: string;
    readonly args: readonly string[];
    /** Absolute; without a meaning for a service with private files. */
    readonly cwd: string;
    /** The whole environment. */
    readonly env: Readonly<Record<string, string>>;
    /** Null: the panel's own account. */
    readonly account: { readonly name: string; readonly uid: number; readonly gid: number } | null;
    /** Texts by plain file name. Each run has them in a folder of its own, its working folder, which is gone with the run; absent where there are none. */
    readonly privateFiles?: Readonly<Record<string, string>>;
    /** Limits of the program and all its descendants together. */
    readonly limits: GroupLimits;
    readonly restart: RestartPolicy;
    /** How long the program may take to end before it is killed. */
    readonly stopSeconds: number;
    readonly stopSignal: NodeJS.Signals;
    /** Null: it cannot be reloaded. */
    readonly reloadSignal: NodeJS.Signals | null;
}

/** How a program ended. Both are null when no process of ours was its parent at that time. */
export interface ServiceExit {
    readonly code: number | null;
    readonly signal: string | null;
    /** The kernel ended a process of it, because its memory was used up. */
    readonly limit?: 'memory';
    /** Milliseconds since 1970. */
    readonly at: number;
}

/** A service as it is now. */
export interface ServiceStatus {
    readonly name: string;
    /** `failed`: it should run and does not, or its only run failed. */
    readonly state: 'running' | 'stopped' | 'failed';
    /** Null unless it runs. */
    readonly pid: number | null;
    /** Start of the present run, milliseconds since 1970; null unless it runs. */
    readonly startedAt: number | null;
    /** How often it ended without being asked to. */
    readonly exits: number;
    readonly lastExit: ServiceExit | null;
    readonly grants: ServiceGrants;
    /** Failed runs in a row; 0 again once it has run for a minute. */
    readonly failures: number;
}

/** One line that a service wrote. */
export interface ServiceLine {
    /** Milliseconds since 1970. */
    readonly at: number;
    readonly stream: 'stdout' | 'stderr';
    readonly text: string;
}

/** Which lines of a service's output are wanted. */
export interface OutputOptions {
    /** How many of the lines so far. */
    readonly tail: number;
    /** Goes on with each further line until the signal aborts or the service is removed. */
    readonly follow: boolean;
    readonly signal: AbortSignal;
}

/**
 * Services of this panel. An owner is one plugin of one package (`ownerOf`); names are unique within an owner. Every method is safe to repeat, and
 * what it acknowledged survives the end of the panel and of the supervisor.
 *
 * @throws ServiceUnknown for a name that the owner does not have; ServicesUnavailable when the backing does not answer; StorageFull
 */
export interface ServicesPort {
    /** Adopts or starts what should run. Never rejects. */
    open(): Promise<void>;
    /** Makes a service or changes it. A new one is started, one that runs with another command is restarted, and one that is the same is left as it is. */
    put(owner: string, name: string, command: ServiceCommand): Promise<ServiceStatus>;
    list(owner: string): Promise<readonly ServiceStatus[]>;
    start(owner: string, name: string): Promise<ServiceStatus>;
    stop(owner: string, name: string): Promise<ServiceStatus>;
    restart(owner: string, name: string): Promise<ServiceStatus>;
    /** Sends the reload signal to the program itself. @throws ServiceNotReloadable */
    reload(owner: string, name: string): Promise<ServiceStatus>;
    /** Ends a service and forgets it with its output. A name that there is not is no error. */
    remove(owner: string, name: string): Promise<void>;
    output(owner: string, name: string, options: OutputOptions): AsyncIterable<ServiceLine>;
    /** Gives all services of an owner to another one. They go on. A service that the other one has under the same name is removed. */
    adopt(from: string, to: string): Promise<void>;
    /** Lets go of the backing. Services go on. */
    close(): Promise<void>;
}

/** The owner has no service of that name. */
export class ServiceUnknown extends Error {}

/** The service has no reload signal, or does not run. */
export class ServiceNotReloadable extends Error {}

/** There was no space for what had to be kept; nothing was changed. */
export class StorageFull extends Error {}

/** The supervisor or systemd did not answer. */
export class ServicesUnavailable extends Error {}

/** Names the owner of services: one plugin of one package. Another package under the same name is another owner. */
export function ownerOf(plugin: string, packageName: string): string {
    return `${plugin}-${createHash('sha256').update(packageName).digest('hex').slice(0, 12)}`;
}

/** What a service's name looks like. */
export const serviceName = /^[a-z0-9][a-z0-9_-]{0,62}$/;
