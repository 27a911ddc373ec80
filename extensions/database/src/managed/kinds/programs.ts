/** The programs of servers that the panel runs: their configuration, their services, and whether they answer. */
import { totalmem } from 'node:os';

import type { ServiceInfo } from '@portico/sdk';

import type { ManagedRow } from '../../entities.ts';
import { fail } from '../../errors.ts';
import type { Access, KindName } from '../../kinds/kind.ts';
import type { Servers } from '../../servers/servers.ts';
import type { Ctx } from '../../settings.ts';
import { accountOf, type MachineAccount } from '../accounts.ts';
import type { Containers } from '../containers/containers.ts';
import type { Engine, OptionValue, Plan, RunTool } from '../engine.ts';
import { certificateName, type Folders, keyName, type Passing } from '../folders.ts';
import { type ManagedRows, type ManagedServer, ownUsername } from '../rows.ts';
import { startSeconds } from '../states.ts';
import { waitUp } from '../wait-up.ts';

const servicePrefix = 'server-';
/** The new server of an upgrade until it takes the place of the old one. */
const nextPrefix = 'next-';
/** Sockets are named by a port, also of servers that listen on none. */
const passingPorts = { old: 1, new: 2 } as const;
const stopSeconds = 60;
/** An image fills its data folder before it serves. */
const containerSeconds = 300;
const initialiseSeconds = 600;
const longSeconds = 86_400;
/** A port may be taken for a moment by an outgoing connection; then a later start succeeds. */
const mostExits = 3;
/** The least memory that servers are sized for, where no limit is given. */
const leastBudget = 256 * 1024 * 1024;
/** Lines of a server's output that say why it did not start. */
const lastLines = 8;

/** Which lines of a server are read. */
interface OutputOptions {
    readonly tail: number;
    readonly follow: boolean;
    readonly signal: AbortSignal;
}

/** A server that is waited for, at most so long. */
interface WatchedRun {
    readonly seconds: number;
    info(): Promise<ServiceInfo | null>;
    lines(options: OutputOptions): AsyncIterable<string>;
}

/** What the programs need. */
export interface ProgramsOptions {
    readonly ctx: Ctx;
    readonly servers: Servers;
    readonly rows: ManagedRows;
    readonly folders: Folders;
    readonly engines: Readonly<Record<KindName, Engine>>;
    readonly containers: Containers;
}

/** Starts, configures and asks them. */
export class Programs {
    readonly #options: ProgramsOptions;

    constructor(options: ProgramsOptions) {
        this.#options = options;
    }

    /** How each of these servers runs, by number. One that is not there has no service. */
    async all(rows: readonly ManagedRow[]): Promise<ReadonlyMap<number, ServiceInfo>> {
        const { ctx, containers } = this.#options;
        const services = new Map((await ctx.services.list()).map((info) => [info.name, info]));
        const found = await Promise.all(
            rows.map(async ({ id, runtime }) => {
                const info =
                    runtime === 'container' ? await containers.look(id) : services.get(serviceOf(id));
                return [id, info] as const;
            })
        );
        return new Map(found.filter((entry): entry is [number, ServiceInfo] => entry[1] != null));
    }

    /** How a server runs; null when it has no service. */
    async info(id: number): Promise<ServiceInfo | null> {
        return (await this.#isContained(id))
            ? this.#options.containers.info(id)
            : this.#service(serviceOf(id));
    }

    /** Lines that a server writes. */
    async *lines(id: number, options: OutputOptions): AsyncGenerator<string> {
        yield* (await this.#isContained(id))
            ? this.#options.containers.lines(id, options)
            : this.#output(serviceOf(id), options);
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

    /** Writes the configuration; that of a container is written when it is made. */
    async configure(found: ManagedServer): Promise<void> {
        if (found.managed.runtime === 'container') {
            return;
        }
        await this.#configure(found, this.plan(found));
    }

    /** Makes the service, or restarts one whose command is another now. */
    async put(found: ManagedServer): Promise<void> {
        await (found.managed.runtime === 'container'
            ? this.#options.containers.put(found, this.wanted(found))
            : this.#put(serviceOf(found.server.id), found, this.plan(found)));
    }

    /** Starts or restarts a server as its row says. Where its command is another now, it is restarted by that. */
    async launch(id: number, change: 'start' | 'restart'): Promise<void> {
        const found = await this.#options.rows.get(id);
        const before = await this.info(id);
        await this.put(found);
        const { pid } = (await this.info(id)) ?? { pid: null };
        await this.change(id, change === 'restart' && pid === before?.pid ? 'restart' : 'start');
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
        await this.#waitUp(
            {
                info: () => this.#service(service),
                lines: (options) => this.#output(service, options),
                seconds: startSeconds
            },
            () => access.use(null, async () => undefined),
            signal
        );
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

    /** Starts, stops or restarts a server, or lets it read its configuration again. What stands in a container counts from its next start on. */
    async change(id: number, change: 'start' | 'stop' | 'restart' | 'reload'): Promise<void> {
        if (!(await this.#isContained(id))) {
            await this.#options.ctx.services[change](serviceOf(id));
        } else if (change !== 'reload') {
            await this.#options.containers.change(id, change);
        }
    }

    /** Ends a service of this machine, and forgets it; so too what an upgrade left that could not be undone. */
    async remove(id: number): Promise<void> {
        await this.endNext(id);
        await this.#options.ctx.services.remove(serviceOf(id));
    }

    /** Waits until a server answers. @throws SERVER_OFFLINE 50350 with what it wrote last */
    async waitUp(id: number, signal: AbortSignal): Promise<void> {
        await this.#waitUp(
            {
                info: () => this.info(id),
                lines: (options) => this.lines(id, options),
                seconds: (await this.#isContained(id)) ? containerSeconds : startSeconds
            },
            async () => void (await this.#options.servers.test(id)),
            signal
        );
    }

    async #waitUp(run: WatchedRun, test: () => Promise<void>, signal: AbortSignal): Promise<void> {
        const before = (await run.info())?.exits ?? 0;
        const hasEnded = async (): Promise<boolean> => {
            const info = await run.info();
            return info === null || info.state !== 'running' || info.exits > before + mostExits;
        };
        try {
            await waitUp(test, { seconds: run.seconds, signal, hasEnded });
        } catch (error) {
            signal.throwIfAborted();
            throw fail.SERVER_OFFLINE({ message: await this.#whyDown(run, error) }, { cause: error });
        }
    }

    /** The account that servers of a kind run as; null where the panel is not root. */
    account(kind: KindName): Promise<MachineAccount | null> {
        return accountOf([this.#options.engines[kind].account, 'nobody']);
    }

    async #isContained(id: number): Promise<boolean> {
        return (await this.#options.rows.get(id)).managed.runtime === 'container';
    }

    async #service(name: string): Promise<ServiceInfo | null> {
        return (await this.#options.ctx.services.list()).find((info) => info.name === name) ?? null;
    }

    async *#output(service: string, options: OutputOptions): AsyncGenerator<string> {
        for await (const { text } of this.#options.ctx.services.output(service, options)) {
            yield text;
        }
    }

    async #whyDown(run: WatchedRun, error: unknown): Promise<string> {
        const lines: string[] = [];
        try {
            const options = { tail: lastLines, follow: false, signal: this.#options.ctx.signal };
            for await (const text of run.lines(options)) {
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
