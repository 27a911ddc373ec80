/** The PHP-FPM masters of sites: services of the panel that run as the account of their site. */
import { setTimeout as wait } from 'node:timers/promises';

import { isFailure, type ServiceInfo } from '@portico/sdk';

import { iniEnvironment } from '../config/configurations.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { siteUmask } from '../sites/machine/folders.ts';
import { configFolder, serviceName, type Site } from '../sites/site.ts';
import type { Release } from '../versions/releases.ts';
import { readStatus } from './status.ts';

const upMs = 10_000;
const pollMs = 15;
/** A graceful stop waits no longer for requests. */
const stopSeconds = 15;

/** Starts and stops masters. */
export class Masters {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** The service of a slot; null when there is none. */
    async info({ id }: Pick<Site, 'id'>, slot: number): Promise<ServiceInfo | null> {
        const name = serviceName(id, slot);
        return (await this.#ctx.services.list()).find((each) => each.name === name) ?? null;
    }

    /** All services by their names: for lists. */
    async all(): Promise<ReadonlyMap<string, ServiceInfo>> {
        return new Map((await this.#ctx.services.list()).map((info) => [info.name, info]));
    }

    /** Makes the service of a slot, and starts it unless it was stopped. With the same release it is left as it is. */
    async put(site: Site, slot: number, { fpm }: Release): Promise<ServiceInfo> {
        const folder = configFolder(site, slot);
        return this.#ctx.services.put(serviceName(site.id, slot), {
            file: fpm,
            args: ['--nodaemonize', '--fpm-config', `${folder}/fpm.conf`],
            cwd: '/',
            env: iniEnvironment(folder),
            user: site.account,
            umask: siteUmask,
            stopSignal: 'SIGQUIT',
            stopSeconds
        });
    }

    async start({ id }: Pick<Site, 'id'>, slot: number): Promise<void> {
        await this.#ctx.services.start(serviceName(id, slot));
    }

    async stop({ id }: Pick<Site, 'id'>, slot: number): Promise<void> {
        await this.#ctx.services.stop(serviceName(id, slot));
    }

    async restart({ id }: Pick<Site, 'id'>, slot: number): Promise<void> {
        await this.#ctx.services.restart(serviceName(id, slot));
    }

    /** Ends a slot after its requests, and forgets it. */
    async remove({ id }: Pick<Site, 'id'>, slot: number): Promise<void> {
        await this.#ctx.services.remove(serviceName(id, slot));
    }

    /** Waits until a master serves with the configuration of this revision. @throws SITE_DOWN 50351 with what it wrote */
    async waitUp(site: Site, slot: number, revision: number): Promise<void> {
        const end = performance.now() + upMs;
        const before = (await this.info(site, slot))?.exits ?? 0;
        for (;;) {
            const status = await readStatus(this.#ctx, site, slot, revision).catch(() => null);
            if (status !== null) {
                return;
            }
            const info = await this.info(site, slot);
            const isEnding = info !== null && info.exits > before + 1;
            if (info === null || info.state === 'failed' || isEnding || performance.now() > end) {
                throw fail.SITE_DOWN({ why: await this.#whyDown(site, info) });
            }
            await wait(pollMs);
        }
    }

    async #whyDown(site: Site, info: ServiceInfo | null): Promise<string> {
        if (info === null) {
            return 'it has no service';
        }
        const lines: string[] = [];
        try {
            for await (const { text } of this.#ctx.services.output(info.name, { tail: 5 })) {
                lines.push(text);
            }
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
        }
        const { lastExit, state } = info;
        const exit =
            lastExit === null ? '' : `, its last end: ${lastExit.signal ?? `exit code ${lastExit.code}`}`;
        return [`PHP-FPM is ${state}${exit}`, ...lines, `see the error log of ${site.name}`].join('; ');
    }
}
