/** A supervisor of services with real processes, in a folder of its own. At the end, it stops with all of its services. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
    identify,
    isAlive,
    type ProcessIdentity
} from '../../../core/src/platform/process/process-identity.ts';
import type {
    ServiceCommand,
    ServiceLine,
    ServicesPort,
    ServiceStatus
} from '../../../core/src/services/port.ts';
import { SupervisedServices } from '../../../core/src/services/supervised.ts';
import { Connection } from '../../../core/src/services/supervisor/socket/connection.ts';
import { until } from '../until.ts';

/** The supervised services, as a panel and the panels after it see them. */
export class ServicesRig {
    readonly folder: string;
    services: SupervisedServices;

    constructor(folder = mkdtempSync(join(tmpdir(), 'portico-services-'))) {
        this.folder = folder;
        this.services = this.panel();
    }

    /** The services as another panel on the same folder sees them. */
    panel(): SupervisedServices {
        return new SupervisedServices({
            folder: join(this.folder, 'services'),
            log: { warn: () => undefined }
        });
    }

    /** What the supervisor says of itself. */
    async hello(): Promise<{ readonly version: number; readonly pid: number }> {
        return this.#call('hello');
    }

    /** The process of the supervisor. */
    async supervisor(): Promise<ProcessIdentity> {
        const { pid } = await this.#call('hello');
        return identify(pid) as ProcessIdentity;
    }

    /** The process that starts the supervisor again. */
    async watchdog(): Promise<ProcessIdentity> {
        const { pid } = await this.supervisor();
        const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
        return identify(Number(parent)) as ProcessIdentity;
    }

    /** Ends all services, the supervisor and its watchdog. */
    async end(): Promise<void> {
        if (!existsSync(join(this.folder, 'services', 'lock'))) {
            return;
        }
        // Without services, the supervisor ends by itself: one more brings it back, and holds it while it is asked who it is.
        await this.services.put('test', 'held', shell('exec sleep 600'));
        const [supervisor, watchdog] = [await this.supervisor(), await this.watchdog()];
        for (const id of readdirSync(join(this.folder, 'services', 'units'))) {
            const [owner = '', name = ''] = id.split('.');
            await this.services.remove(owner, name);
        }
        await this.services.close();
        await this.#call('retire');
        await until(() => !isAlive(supervisor) && !isAlive(watchdog), 'the supervisor ended');
    }

    async close(): Promise<void> {
        await this.end();
        await this.services.close();
        rmSync(this.folder, { recursive: true, force: true });
    }

    async #call(method: 'hello' | 'retire'): Promise<{ readonly version: number; readonly pid: number }> {
        let answer: { readonly version: number; readonly pid: number } | null = null;
        await until(async () => {
            const connection = await Connection.open(join(this.folder, 'services'));
            // A supervisor that is being killed may still accept connections.
            answer = ((await connection?.call(method, {}).catch(() => null)) ?? null) as typeof answer;
            connection?.close();
            return answer !== null || (method === 'retire' && connection !== null);
        });
        return answer as unknown as { readonly version: number; readonly pid: number }; // `until` sets it
    }
}

/** A command of the shell as a service. */
export function shell(script: string, more: Partial<ServiceCommand> = {}): ServiceCommand {
    return {
        grants: { exec: 'sh', user: null },
        path: '/bin/sh',
        args: ['-c', script],
        cwd: '/',
        env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
        account: null,
        limits: {},
        restart: 'always',
        stopSeconds: 2,
        stopSignal: 'SIGTERM',
        reloadSignal: null,
        ...more
    };
}

/** One service as it is now. */
export async function statusOf(
    services: ServicesPort,
    name: string,
    owner = 'web-1'
): Promise<ServiceStatus> {
    return (await services.list(owner)).find((each) => each.name === name) as ServiceStatus;
}

/** The whole kept output of a service. */
export async function outputOf(
    services: ServicesPort,
    name: string,
    owner = 'web-1'
): Promise<ServiceLine[]> {
    const options = { tail: 10_000, follow: false, signal: new AbortController().signal };
    return Array.fromAsync(services.output(owner, name, options));
}
