/** The programs of servers that the panel runs: their configuration, their services, and whether they answer. */
import { totalmem } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';

import type { ServiceInfo } from '@portico/sdk';

import { fail } from '../../errors.ts';
import type { Access, KindName } from '../../kinds/kind.ts';
import type { Servers } from '../../servers/servers.ts';
import type { Ctx } from '../../settings.ts';
import { accountOf, type MachineAccount } from '../accounts.ts';
import type { Engine, OptionValue, Plan, RunTool } from '../engine.ts';
import { certificateName, type Folders, keyName, type Passing } from '../folders.ts';
import { type ManagedRows, type ManagedServer, ownUsername } from '../rows.ts';
import { startSeconds } from '../states.ts';

const servicePrefix = 'server-';
/** The new server of an upgrade until it takes the place of the old one. */
const nextPrefix = 'next-';
/** Sockets are named by a port, also of servers that listen on none. */
const passingPorts = { old: 1, new: 2 } as const;
const stopSeconds = 60;
const initialiseSeconds = 600;
const longSeconds = 86_400;
const pollMs = 50;
/** A port may be taken for a moment by an outgoing connection; then a later start succeeds. */
const mostExits = 3;
/** The least memory that servers are sized for, where no limit is given. */
const leastBudget = 256 * 1024 * 1024;
/** Lines of a server's output that say why it did not start. */
const lastLines = 8;

/** What the programs need. */
export interface ProgramsOptions {
    readonly ctx: Ctx;
    readonly servers: Servers;
    readonly rows: ManagedRows;
    readonly folders: Folders;
    readonly engines: Readonly<Record<KindName, Engine>>;
}

/** Starts, configures and asks them. */
export class Programs {
    readonly #options: ProgramsOptions;

    constructor(options: ProgramsOptions) {
        this.#options = options;
    }

    /** The services of all servers, by the servers' numbers. */
    async all(): Promise<ReadonlyMap<number, ServiceInfo>> {
        const all = await this.#options.ctx.services.list();
        const served = all.filter(({ name }) => name.startsWith(servicePrefix));
        return new Map(served.map((info) => [Number(info.name.slice(servicePrefix.length)), info]));
    }

    /** The service of a server; null when there is none. */
    async info(id: number): Promise<ServiceInfo | null> {
        return this.#service(serviceOf(id));
    }

    /** Lines that a server writes. */
    async *lines(
        id: number,
        options: { readonly tail: number; readonly follow: boolean; readonly signal: AbortSignal }
    ): AsyncGenerator<string> {
        for await (const { text } of this.#options.ctx.services.output(serviceOf(id), options)) {
            yield text;
        }
    }

    /** The options that a server is to have, beside its own defaults. */
    wanted({ server, managed }: ManagedServer): Readonly<Record<string, OptionValue>> {
        const budget = managed.memoryBytes ?? Math.max(leastBudget, totalmem() / 4);
        return {
            ...this.#options.engines[server.kind].presetOptions(managed.preset, budget),
            ...managed.options
        };
    }

    /** Fills the data folder of a new server. @throws SERVER_OFFLINE 50350 with what the program wrote */
    async initialise(
        found: ManagedServer,
        password: string,
        signal: AbortSignal,
        plan = this.plan(found)
    ): Promise<void> {
        const { kind } = found.server;
        await this.#options.engines[kind].initialise(plan, await this.tool(kind, password, signal), {
            username: ownUsername,
            password
        });
    }

    /** What runs programs as the account of servers of a kind. The password is kept out of messages. */
    async tool(kind: KindName, password: string, signal: AbortSignal): Promise<RunTool> {
        const account = await this.account(kind);
        return async (file, args, { isLong = false, ...given } = {}) => {
            const { code, stdout, stderr } = await this.#options.ctx.exec(file, args, {
                ...(account === null ? {} : { user: account.name }),
                ...given,
                ...(given.privateFiles === undefined ? { cwd: '/' } : {}),
                timeoutSeconds: isLong ? longSeconds : initialiseSeconds,
                signal
            });
            signal.throwIfAborted();
            if (code !== 0) {
                const said = `${stdout}\n${stderr}`.replaceAll(password, '…').trim().slice(-1_000);
                throw fail.SERVER_OFFLINE({ message: `${file} ended with ${code}: ${said}` });
            }
        };
    }

    /** Writes the configuration. */
    async configure(found: ManagedServer): Promise<void> {
        await this.#configure(found, this.plan(found));
    }

    /** Makes the service, or restarts one whose command is another now. */
    async put(found: ManagedServer): Promise<ServiceInfo> {
        return this.#put(serviceOf(found.server.id), found, this.plan(found));
    }

    /** How one of the two servers of an upgrade runs: where only the panel reaches it. */
    alone(found: ManagedServer, which: Passing): Plan {
        return {
            ...this.plan(found),
            ...this.#options.folders.passing(found.server.id, which),
            port: passingPorts[which],
            remote: null,
            alone: true
        };
    }

    /** Starts one of the two servers of an upgrade, and waits until it answers; the old one in place of the service that serves. @throws SERVER_OFFLINE 50350 */
    async runAlone(found: ManagedServer, which: Passing, access: Access, signal: AbortSignal): Promise<void> {
        const { id } = found.server;
        const plan = this.alone(found, which);
        await this.#configure(found, plan);
        const service = which === 'old' ? serviceOf(id) : nextOf(id);
        await this.#put(service, found, plan);
        await this.#waitUp(service, () => access.use(null, async () => undefined), signal);
    }

    /** Ends the new server of an upgrade in good order. */
    async endNext(id: number): Promise<void> {
        await this.#options.ctx.services.remove(nextOf(id));
    }

    async #configure(found: ManagedServer, plan: Plan): Promise<void> {
        const { folders, engines } = this.#options;
        await folders.configure(plan.configFolder, engines[found.server.kind].configFiles(plan));
    }

    async #put(service: string, { server, managed }: ManagedServer, plan: Plan): Promise<ServiceInfo> {
        const { ctx, engines } = this.#options;
        const account = await this.account(server.kind);
        return ctx.services.put(service, {
            ...engines[server.kind].service(plan),
            ...(account === null ? {} : { user: account.name }),
            ...(managed.memoryBytes === null
                ? {}
                : { limits: { group: { memoryBytes: managed.memoryBytes } } }),
            stopSeconds
        });
    }

    /** Starts, stops or restarts a service, or lets the server read its configuration again. */
    async change(id: number, change: 'start' | 'stop' | 'restart' | 'reload'): Promise<void> {
        await this.#options.ctx.services[change](serviceOf(id));
    }

    /** Ends a service, and forgets it; so too what an upgrade left that could not be undone. */
    async remove(id: number): Promise<void> {
        await this.endNext(id);
        await this.#options.ctx.services.remove(serviceOf(id));
    }

    /** Waits until a server answers. @throws SERVER_OFFLINE 50350 with what it wrote last */
    async waitUp(id: number, signal: AbortSignal): Promise<void> {
        await this.#waitUp(serviceOf(id), async () => void (await this.#options.servers.test(id)), signal);
    }

    async #waitUp(service: string, test: () => Promise<void>, signal: AbortSignal): Promise<void> {
        const before = (await this.#service(service))?.exits ?? 0;
        for (const end = performance.now() + startSeconds * 1_000; ;) {
            signal.throwIfAborted();
            try {
                await test();
                return;
            } catch (error) {
                const info = await this.#service(service);
                const isEnding = info === null || info.state !== 'running' || info.exits > before + mostExits;
                if (isEnding || performance.now() > end) {
                    throw fail.SERVER_OFFLINE(
                        { message: await this.#whyDown(service, error) },
                        { cause: error }
                    );
                }
            }
            await wait(pollMs);
        }
    }

    /** The account that servers of a kind run as; null where the panel is not root. */
    account(kind: KindName): Promise<MachineAccount | null> {
        // eslint-disable-next-line portico/glossary -- it is the name of the account
        return accountOf([this.#options.engines[kind].account, 'nobody']);
    }

    async #service(name: string): Promise<ServiceInfo | null> {
        return (await this.#options.ctx.services.list()).find((info) => info.name === name) ?? null;
    }

    async #whyDown(service: string, error: unknown): Promise<string> {
        const lines: string[] = [];
        try {
            const { ctx } = this.#options;
            const options = { tail: lastLines, follow: false, signal: ctx.signal };
            for await (const { text } of ctx.services.output(service, options)) {
                lines.push(text);
            }
        } catch {
            // Without its output, the failed login is what there is to say.
        }
        return ['it did not start', ...lines, (error as Error).message].join('; ').slice(0, 2_000);
    }

    /** What a server is run with. */
    plan(found: ManagedServer): Plan {
        const { server, managed } = found;
        const { tlsFolder, archiveFolder, ...folders } = this.#options.folders.of(server.id, managed.folder);
        return {
            release: managed.release,
            port: server.port,
            ...folders,
            logFolder: managed.pointInTime === 'on' ? `${archiveFolder}/log` : null,
            remote: managed.remote
                ? {
                      certificateFile: `${tlsFolder}/${certificateName}`,
                      keyFile: `${tlsFolder}/${keyName}`,
                      allow: managed.allow
                  }
                : null,
            alone: false,
            options: this.wanted(found)
        };
    }
}

/** The name of a server's service. */
function serviceOf(id: number): string {
    return `${servicePrefix}${id}`;
}

function nextOf(id: number): string {
    return `${nextPrefix}${id}`;
}
