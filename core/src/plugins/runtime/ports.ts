/** What the host side of plugins asks of the rest of the panel. `panel.ts` hands it over; nothing here knows who implements it. */
import type { NetConnectOpts } from 'node:net';

import type { ServerInjectOptions, ServerInjectResponse } from '@hapi/hapi';
import type { Certificate, Host, Reply, UpstreamState } from '@portico/sdk';
import type { HookHost } from '@portico/sdk/host';

import type { TaskView } from '../../features/tasks/task.ts';
import type { TaskStart } from '../../features/tasks/tasks.ts';
import type { Call, Caller } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Keyring } from '../../platform/keyring.ts';
import type { Logger } from '../../platform/log.ts';
import type { Outbound } from '../../platform/outbound/client.ts';
import type { Gate } from '../../server/gateway/gate.ts';
import type { Parking } from '../../server/gateway/gateway.ts';
import type { HttpPorts } from '../../server/http/ports.ts';
import type { HttpServer } from '../../server/http/server.ts';
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
    /** Parks its gate while its generation is swapped. */
    park(name: string): Parking;
    /** Everything that reaches a plugin from outside passes its gate. */
    gate(name: string): Gate;
    servers(): readonly HttpServer[];
    inject(options: ServerInjectOptions & { readonly url: string }): Promise<ServerInjectResponse>;
}

/** Hosts, as the panel's own service has them. */
export interface HostsPort {
    all(): readonly Host[];
    create(body: Readonly<Record<string, unknown>>, call: Call, owner: string): Promise<Reply<Host>>;
    update(id: number, change: Readonly<Record<string, unknown>>, call: Call): Promise<Reply<Host>>;
    remove(id: number, call: Call): Promise<unknown>;
    upstreams(): Promise<readonly UpstreamState[]>;
    /** Number of the newest revision. */
    revision(): number;
}

export interface CertificatesPort {
    all(): Promise<readonly Certificate[]>;
    upload(
        body: { readonly name: string; readonly certificate: string; readonly key: string },
        call: Call,
        owner: string
    ): Promise<Certificate>;
    remove(id: number, call: Call): Promise<unknown>;
}

/** Connections to the outside, with the addresses that one plugin may reach beside the public ones. */
export interface NetworkPort {
    /** A client that reaches private addresses in `allow` only. */
    outbound(allow: () => readonly string[]): Pick<Outbound, 'open'>;
    /** What forbids an address, in a few words; null when nothing does. */
    forbids(address: string, allow: readonly string[]): string | null;
    /** Whether an address lies in one of these ranges. */
    within(address: string, ranges: readonly string[]): boolean;
    /** Where a socket that is granted leads instead, or why nowhere. Without it, sockets lead where they say. */
    redirect?(target: NetConnectOpts): NetConnectOpts | Error;
}

/** The machine below the plugins. */
export interface MachinePorts {
    readonly programs: ProgramsPort;
    /** What schedules wait with. */
    readonly alarm: Alarm;
    /** Folder that stands for the root of the file system; empty for the root itself. */
    readonly root: string;
}

/** What the generations of all plugins need. */
export interface PluginHostPorts {
    readonly gateway: PluginGateway;
    /** Of every server: identity, record, idempotency. */
    readonly http: HttpPorts;
    readonly hooks: HookHost;
    readonly db: Database;
    readonly tasks: { start(options: TaskStart): Promise<TaskView> };
    notify(notification: {
        readonly event: string;
        readonly severity: 'info' | 'warning' | 'error';
        readonly title: string;
        readonly text?: string;
        readonly data?: Readonly<Record<string, unknown>>;
    }): void;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly clock: Clock;
    readonly log: Logger;
    /** A caller as of now. @throws TOKEN_REVOKED when session, token or account are over */
    renew(caller: Caller): Caller;
    readonly hosts: HostsPort;
    readonly certificates: CertificatesPort;
    readonly network: NetworkPort;
    /** Default: the machine that the panel runs on. */
    readonly machine?: MachinePorts;
    readonly fragments: FragmentsPort;
    /** Folders and sockets that are in no grant, whatever it says: the panel's data folder, the engine's home and socket. Absolute. */
    forbidden(): readonly string[];
}
