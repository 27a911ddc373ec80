/** What the plugin runtime needs from the rest of the panel. The composition root passes the implementations. */
import type { NetConnectOpts } from 'node:net';

import type { ServerInjectOptions, ServerInjectResponse } from '@hapi/hapi';
import type {
    AccessRecord,
    Certificate,
    EngineAccount,
    Host,
    Notification,
    PanelListener,
    PanelRehearsal,
    ProbeAnswer,
    ProbeOptions,
    Reply,
    UpstreamState
} from '@portico/sdk';
import type { HookHost } from '@portico/sdk/host';

import type { Tasks } from '../../features/tasks/tasks.ts';
import type { Call, Caller } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import type { Logger } from '../../platform/log/log.ts';
import type { Outbound } from '../../platform/outbound/client.ts';
import type { Gate } from '../../server/gateway/gate.ts';
import type { Parking } from '../../server/gateway/gateway.ts';
import type { HttpPorts } from '../../server/http/ports.ts';
import type { HttpServer } from '../../server/http/server.ts';
import type { ServicesPort } from '../../services/port.ts';
import type { FragmentsPort } from './fragments.ts';
import type { ProgramsPort } from './programs/machine.ts';
import type { Alarm } from './schedules.ts';

/** The gateway, as plugins need it. */
export interface PluginGateway {
    /** @throws Error when `root` is given, and another plugin serves the root of the site */
    mount(name: string, server: HttpServer, root?: HttpServer | null): Promise<void>;
    /** Resolves with how many requests had to be cut. */
    unmount(name: string): Promise<number>;
    hurry(name: string): void;
    /** Parks the plugin's gate while its generation is swapped. */
    park(name: string): Parking;
    /** The gate that every request from outside to the plugin passes. */
    gate(name: string): Gate;
    servers(): readonly HttpServer[];
    inject(options: ServerInjectOptions & { readonly url: string }): Promise<ServerInjectResponse>;
}

/** The panel's hosts service. */
export interface HostsPort {
    all(): readonly Host[];
    create(body: Readonly<Record<string, unknown>>, call: Call, owner: string): Promise<Reply<Host>>;
    update(id: number, change: Readonly<Record<string, unknown>>, call: Call): Promise<Reply<Host>>;
    remove(id: number, call: Call): Promise<unknown>;
    upstreams(): Promise<readonly UpstreamState[]>;
    /** Asks an address that the caller may ask. @throws Error when there is no answer */
    probe(address: string, options: ProbeOptions): Promise<ProbeAnswer>;
    /** The account that the engine runs as; null without one. */
    account(): Promise<EngineAccount | null>;
    /** Number of the newest revision. */
    revision(): number;
}

/** The panel's certificates service. */
export interface CertificatesPort {
    all(): Promise<readonly Certificate[]>;
    upload(
        body: { readonly name: string; readonly certificate: string; readonly key: string },
        call: Call,
        owner: string
    ): Promise<Certificate>;
    remove(id: number, call: Call): Promise<unknown>;
}

/** The engine's access log. */
export interface AccessLogPort {
    /**
     * The records of `from` on, or those to come, in batches, until the signal aborts. Each reader gets records of its own, and waits for
     * no other.
     */
    follow(options: {
        readonly from: Date | null;
        readonly signal: AbortSignal;
    }): AsyncIterable<readonly AccessRecord[]>;
    /** Whether the engine is to write it. */
    isOn(): boolean;
}

/** Connections to the outside for plugins, which may reach some private addresses beside the public ones. */
export interface NetworkPort {
    /** A client that reaches private addresses in `allow` only. */
    outbound(allow: () => readonly string[]): Pick<Outbound, 'open'>;
    /** Why an address is forbidden, in a few words; null when it is allowed. */
    forbids(address: string, allow: readonly string[]): string | null;
    /** Whether an address lies in one of these ranges. */
    within(address: string, ranges: readonly string[]): boolean;
    /** For tests: the addresses of a name. Without it, the machine looks them up. */
    addresses?(host: string): Promise<readonly string[]>;
    /** For tests: the target that a granted socket connects to instead, or the error that it gets. Without it, sockets connect to the given target. */
    redirect?(target: NetConnectOpts): NetConnectOpts | Error;
}

/** What people let plugins do in their absence. */
export interface MandatesPort {
    /** @throws VALIDATION_FAILED 40001 */
    give(
        call: Call,
        mandate: {
            readonly plugin: string;
            readonly title: string;
            readonly routes: readonly string[];
            readonly expiresAt: number | null;
        }
    ): Promise<{ readonly id: number }>;
    /** The giver, as of now. @throws TOKEN_REVOKED 40103 */
    use(plugin: string, id: number): Caller;
    /** Ends one; one that has ended stays as it is. */
    end(call: Call, plugin: string, id: number): Promise<void>;
}

/** The port through which plugins learn about the panel itself. */
export interface PanelPort {
    /** The setting `panel.url`. */
    url(): string | null;
    /** Whether a plugin of this name is installed, or its data are kept. */
    hasPlugin(name: string): Promise<boolean>;
    /** Where panel and engine listen now. Never rejects: an engine that does not answer is known by what it was given. */
    listeners(): Promise<readonly PanelListener[]>;
    /** Absolute paths of the folders in which panel and engine keep their own files. */
    folders(): readonly string[];
    /** Boots a copy of a data folder. @param folder - real path of a folder that the plugin may open @throws the signal's reason */
    rehearse(folder: string, signal: AbortSignal): Promise<PanelRehearsal>;
}

/** The port through which plugins start and follow tasks of the panel. */
export type TasksPort = Pick<Tasks, 'start' | 'get' | 'events' | 'cancel'>;

/** The parts of the machine that plugins use. */
export interface MachinePorts {
    readonly programs: ProgramsPort;
    /** The timer of schedules. */
    readonly alarm: Alarm;
    /** Folder that stands for the root of the file system; empty for the root itself. */
    readonly root: string;
}

/** What the generations of all plugins need. */
export interface PluginHostPorts {
    readonly gateway: PluginGateway;
    /** What every HTTP server needs: identity, audit, idempotency. */
    readonly http: HttpPorts;
    readonly hooks: HookHost;
    readonly db: Database;
    readonly tasks: TasksPort;
    notify(notification: Notification): void;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly clock: Clock;
    readonly log: Logger;
    /** The caller with the rights of now. @throws TOKEN_REVOKED when the session, token or account has ended */
    renew(caller: Caller): Caller;
    readonly hosts: HostsPort;
    readonly certificates: CertificatesPort;
    readonly accessLog: AccessLogPort;
    readonly network: NetworkPort;
    /** Default: the machine that the panel runs on. */
    readonly machine?: MachinePorts;
    /** Programs that outlive the panel. */
    readonly services: ServicesPort;
    readonly fragments: FragmentsPort;
    /** Mandates, which the auth feature keeps. */
    readonly mandates: MandatesPort;
    readonly panel: PanelPort;
    /** Whether a permission is marked as dangerous. */
    isDangerous(permission: string): boolean;
    /** Absolute paths of folders and sockets that no grant opens: the panel's data folder, the engine's home and socket. */
    forbidden(): readonly string[];
}
