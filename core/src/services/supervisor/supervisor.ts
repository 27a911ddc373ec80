/** All services of one panel, by owner and name. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { ServiceUnknown } from '../port.ts';
import { Service, type ServiceTiming } from './service/service.ts';
import {
    type Calls,
    idOf,
    ownerMark,
    protocolVersion,
    servicesFolder,
    type Target
} from './socket/protocol.ts';
import { isLeftover, Store } from './store.ts';

/** The calls that are about services. */
export type ServedCalls = {
    readonly [K in Exclude<keyof Calls, 'retire'>]: (
        input: Parameters<Calls[K]>[0]
    ) => Promise<ReturnType<Calls[K]>>;
};

/** Looks after the services of one folder. Only one supervisor may have a folder at a time. */
export class Supervisor implements ServedCalls {
    readonly #folder: string;
    readonly #timing: ServiceTiming;
    readonly #services = new Map<string, Service>();
    /** The services that are being made or removed. */
    readonly #changing = new Map<string, Promise<unknown>>();
    readonly #log: (message: string) => void;

    constructor(folder: string, timing: ServiceTiming, log: (message: string) => void) {
        this.#folder = join(folder, servicesFolder);
        this.#timing = timing;
        this.#log = log;
    }

    /** Adopts the services that run. */
    load(): void {
        mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
        for (const id of readdirSync(this.#folder)) {
            const folder = join(this.#folder, id);
            try {
                if (isLeftover(folder)) {
                    rmSync(folder, { recursive: true, force: true });
                } else {
                    const name = id.slice(id.indexOf(ownerMark) + 1);
                    this.#services.set(id, new Service(name, new Store(folder), this.#timing));
                }
            } catch (error) {
                this.#log(`${id}: ${String(error)}`);
            }
        }
    }

    /** Starts the services that should run. Never rejects. */
    async open(): Promise<void> {
        await Promise.all(
            [...this.#services].map(([id, service]) =>
                service.open().catch((error: unknown) => this.#log(`${id}: ${String(error)}`))
            )
        );
    }

    async hello(): Promise<ReturnType<Calls['hello']>> {
        return { version: protocolVersion, pid: process.pid };
    }

    async put({ command, ...target }: Parameters<Calls['put']>[0]): Promise<ReturnType<Calls['put']>> {
        const id = idOf(target);
        return this.#change(id, async () => {
            const known = this.#services.get(id);
            if (known !== undefined) {
                await known.put(command);
                return known.status;
            }
            const store = new Store(join(this.#folder, id));
            store.create({ mark: randomUUID(), command });
            const service = new Service(target.name, store, this.#timing);
            this.#services.set(id, service);
            await service.open();
            return service.status;
        });
    }

    async list({ owner }: { readonly owner: string }): Promise<ReturnType<Calls['list']>> {
        return [...this.#services]
            .filter(([id]) => id.startsWith(`${owner}${ownerMark}`))
            .map(([, service]) => service.status)
            .sort((one, two) => (one.name < two.name ? -1 : 1));
    }

    start(target: Target): Promise<ReturnType<Calls['start']>> {
        return this.#with(target, (service) => service.start());
    }

    stop(target: Target): Promise<ReturnType<Calls['stop']>> {
        return this.#with(target, (service) => service.stop());
    }

    restart(target: Target): Promise<ReturnType<Calls['restart']>> {
        return this.#with(target, (service) => service.restart());
    }

    reload(target: Target): Promise<ReturnType<Calls['reload']>> {
        return this.#with(target, async (service) => service.reload());
    }

    async remove(target: Target): Promise<null> {
        const id = idOf(target);
        return this.#change(id, async () => {
            await this.#services.get(id)?.remove();
            this.#services.delete(id);
            return null;
        });
    }

    async adopt({ from, to }: Parameters<Calls['adopt']>[0]): Promise<null> {
        const names = (await this.list({ owner: from })).map(({ name }) => name);
        for (const name of names) {
            await this.remove({ owner: to, name });
            const [before, after] = [idOf({ owner: from, name }), idOf({ owner: to, name })];
            await this.#change(before, async () => {
                const service = this.#services.get(before);
                await service?.move(join(this.#folder, after));
                if (service !== undefined) {
                    this.#services.delete(before);
                    this.#services.set(after, service);
                }
            });
        }
        return null;
    }

    /** Whether there is any service. */
    get isEmpty(): boolean {
        return this.#services.size === 0 && this.#changing.size === 0;
    }

    /** Lets go of all services. They go on. */
    async close(): Promise<void> {
        await Promise.all([...this.#services.values()].map((service) => service.release()));
    }

    async #with(target: Target, work: (service: Service) => Promise<void>): ReturnType<ServedCalls['start']> {
        const service = this.#services.get(idOf(target));
        if (service === undefined) {
            throw new ServiceUnknown(`There is no service ${target.name}`);
        }
        await work(service);
        return service.status;
    }

    /** Makes and removes one service at a time. */
    async #change<T>(id: string, work: () => Promise<T>): Promise<T> {
        while (this.#changing.has(id)) {
            await this.#changing.get(id)?.catch(() => undefined);
        }
        const changing = work().finally(() => this.#changing.delete(id));
        this.#changing.set(id, changing);
        return changing;
    }
}
