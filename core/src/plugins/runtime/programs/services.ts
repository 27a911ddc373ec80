/** The services of one plugin: the same checks as for programs, and then the panel's services keep them. */
import { stat } from 'node:fs/promises';
import { constants } from 'node:os';

import {
    errors,
    isFailure,
    messageOf,
    type ServiceInfo,
    type ServiceLine,
    type ServiceOptions
} from '@portico/sdk';
import { boundaryErrors, type Grants } from '@portico/sdk/host';

import { ControlGroups } from '../../../platform/process/control-group/control-groups.ts';
import {
    type ServiceCommand,
    serviceName,
    ServiceNotReloadable,
    type ServicesPort,
    type ServiceStatus,
    ServicesUnavailable,
    ServiceUnknown,
    StorageFull
} from '../../../services/port.ts';
import type { HealthReport } from '../generation/generation.ts';
import { accountOf } from './machine.ts';
import { checkProgram, withAttributes } from './options.ts';
import { findProgram, fixedPath } from './path.ts';
import { makeGroup } from './processes/group.ts';

/** What the services of one plugin need. */
export interface PluginServicesOptions {
    readonly grants: Grants;
    readonly services: ServicesPort;
    /** Names the plugin and its package. */
    readonly owner: string;
    /** Records a use. */
    used(file: string, args: readonly string[], user: string | null): void;
}

const policies: readonly unknown[] = ['always', 'on-failure', 'never', 'once'];
const longestStopSeconds = 3_600;
const mostLines = 10_000;
/** The number of failed runs in a row after which a service that runs again is worth a warning. */
const manyFailures = 3;

/** The services of one plugin. Names of other plugins' services cannot be said: the owner is part of each name, and only the panel says it. */
export class PluginServices {
    readonly #options: PluginServicesOptions;

    constructor(options: PluginServicesOptions) {
        this.#options = options;
    }

    async put(name: string, options: ServiceOptions): Promise<ServiceInfo> {
        const { owner, used } = this.#options;
        this.#require();
        checkService(name, options);
        const { file, args, user = null } = options;
        const command = await this.#command(options);
        const status = await this.#asked(name, (services) => services.put(owner, name, command));
        used(file, args, user);
        return infoOf(status);
    }

    async list(): Promise<readonly ServiceInfo[]> {
        this.#require();
        const { owner } = this.#options;
        return (await this.#asked('', (services) => services.list(owner))).map(infoOf);
    }

    async change(name: string, change: 'start' | 'stop' | 'restart' | 'reload'): Promise<ServiceInfo> {
        this.#require();
        const { owner, grants } = this.#options;
        const known = (await this.#asked(name, (services) => services.list(owner))).find(
            (each) => each.name === name
        );
        if (known !== undefined && change !== 'stop') {
            grants.require('exec', known.grants.exec);
            if (known.grants.user !== null) {
                grants.require('users', known.grants.user);
            }
        }
        return infoOf(await this.#asked(name, (services) => services[change](owner, name)));
    }

    async remove(name: string): Promise<void> {
        this.#require();
        if (serviceName.test(name)) {
            await this.#asked(name, (services) => services.remove(this.#options.owner, name));
        }
    }

    /** @param signal - ends the lines */
    async *output(
        name: string,
        {
            tail,
            follow,
            signal
        }: { readonly tail: number; readonly follow: boolean; readonly signal: AbortSignal }
    ): AsyncGenerator<ServiceLine> {
        this.#require();
        const { services, owner } = this.#options;
        if (!Number.isInteger(tail) || tail < 0 || tail > mostLines) {
            throw refused('tail', `tail is a whole number, at most ${mostLines}`);
        }
        try {
            for await (const { at, ...line } of services.output(owner, name, { tail, follow, signal })) {
                yield { ...line, at: new Date(at) };
            }
        } catch (error) {
            throw serviceFailure(error, name);
        }
    }

    /** Stops the services whose grants no longer exist. */
    async revoke(): Promise<void> {
        const { services, owner, grants } = this.#options;
        const gone = (await services.list(owner)).filter(
            ({ grants: { exec, user } }) =>
                !grants.services || !grants.has('exec', exec) || (user !== null && !grants.has('users', user))
        );
        await Promise.all(gone.map(({ name }) => services.stop(owner, name)));
    }

    /** One check that names the services that keep failing; none without services. */
    async health(): Promise<readonly HealthReport[]> {
        const { services, owner } = this.#options;
        try {
            const all = await services.list(owner);
            return all.length === 0 ? [] : [reportOf(all)];
        } catch (error) {
            const evidence = messageOf(error);
            return [{ name: 'services', state: 'degraded', evidence }];
        }
    }

    async #command(options: ServiceOptions): Promise<ServiceCommand> {
        const { grants } = this.#options;
        const {
            file,
            args,
            cwd = '/',
            user,
            umask,
            limits = {},
            restart = 'always',
            privateFiles = {}
        } = options;
        const hasFiles = Object.keys(privateFiles).length > 0;
        grants.require('exec', file);
        if (user !== undefined) {
            grants.require('users', user);
        }
        const account = user === undefined ? null : await accountOf(user, grants.plugin);
        const path = await findProgram(file);
        if (path === null) {
            throw errors.toolMissing(file, `install ${file.split('/').at(-1)}`);
        }
        if ((await stat(cwd).catch(() => null))?.isDirectory() !== true) {
            throw errors.notFound(`There is no folder ${cwd}`);
        }
        if (limits.group !== undefined) {
            // The supervisor makes a group of its own; this one says whether the machine allows it.
            await (await makeGroup(new ControlGroups(), limits.group))?.remove();
        }
        return {
            grants: { exec: file, user: user ?? null },
            ...(await withAttributes({ path, args }, { limits, umask })),
            cwd,
            env: {
                ...(process.env['TZ'] === undefined ? {} : { TZ: process.env['TZ'] }),
                LANG: 'C.UTF-8',
                // With private files and no account, the folder of the files is the home; the backing makes it.
                ...(hasFiles && account === null ? {} : { HOME: account?.home ?? cwd }),
                ...options.env,
                PATH: fixedPath
            },
            ...(hasFiles ? { privateFiles } : {}),
            account: account === null ? null : { name: account.name, uid: account.uid, gid: account.gid },
            limits: limits.group ?? {},
            restart,
            stopSeconds: options.stopSeconds ?? 10,
            stopSignal: options.stopSignal ?? 'SIGTERM',
            reloadSignal: options.reloadSignal ?? null
        };
    }

    #require(): void {
        const { grants } = this.#options;
        if (!grants.services) {
            throw grants.missing('services');
        }
    }

    async #asked<T>(name: string, work: (services: ServicesPort) => Promise<T>): Promise<T> {
        try {
            return await work(this.#options.services);
        } catch (error) {
            throw serviceFailure(error, name);
        }
    }
}

/** @throws VALIDATION_FAILED 40001 */
function checkService(name: unknown, options: ServiceOptions): void {
    if (typeof name !== 'string' || !serviceName.test(name)) {
        throw refused('name', `The name of a service is ${serviceName.source}`);
    }
    const {
        file,
        args,
        env,
        cwd,
        umask,
        privateFiles,
        limits = {},
        restart = 'always',
        stopSeconds = 0
    } = options;
    try {
        checkProgram(file, args, {
            limits,
            ...(env === undefined ? {} : { env }),
            ...(cwd === undefined ? {} : { cwd }),
            ...(umask === undefined ? {} : { umask }),
            ...(privateFiles === undefined ? {} : { privateFiles })
        });
    } catch (error) {
        throw isFailure(error) ? error : refused('options', messageOf(error));
    }
    const text = Object.entries(env ?? {}).find(
        ([, value]) => typeof value !== 'string' || value.includes('\0')
    );
    if (text !== undefined) {
        throw refused(`env.${text[0]}`, 'Values of the environment are texts without zero bytes');
    }
    if (!policies.includes(restart)) {
        throw refused('restart', `restart is one of ${policies.join(', ')}`);
    }
    if (!(stopSeconds >= 0 && stopSeconds <= longestStopSeconds)) {
        throw refused('stopSeconds', `stopSeconds is 0 to ${longestStopSeconds}`);
    }
    for (const signal of ['stopSignal', 'reloadSignal'] as const) {
        if (options[signal] !== undefined && !Object.hasOwn(constants.signals, options[signal])) {
            throw refused(signal, `${signal} is the name of a signal, such as SIGTERM`);
        }
    }
}

function refused(path: string, message: string): Error {
    return errors.invalid([{ path, message }]);
}

/** What a plugin or an admin sees of an error of the panel's services. @param service - its name */
export function serviceFailure(error: unknown, service: string): unknown {
    if (error instanceof ServiceUnknown) {
        return errors.notFound(`There is no service ${service}`);
    }
    if (error instanceof ServiceNotReloadable) {
        return boundaryErrors.SERVICE_NOT_RELOADABLE(
            { service },
            { message: `${service}: ${error.message}` }
        );
    }
    if (error instanceof StorageFull) {
        return errors.storageFull();
    }
    return error instanceof ServicesUnavailable
        ? boundaryErrors.SERVICES_UNAVAILABLE({}, { message: error.message })
        : error;
}

function infoOf({ name, state, pid, startedAt, exits, lastExit }: ServiceStatus): ServiceInfo {
    return {
        name,
        state,
        pid,
        startedAt: startedAt === null ? null : new Date(startedAt),
        exits,
        lastExit: lastExit === null ? null : { ...lastExit, at: new Date(lastExit.at) }
    };
}

function reportOf(all: readonly ServiceStatus[]): HealthReport {
    const failing = all.filter(({ state, failures }) => state === 'failed' || failures >= manyFailures);
    const [first] = failing;
    if (first === undefined) {
        const running = all.filter(({ state }) => state === 'running').length;
        return { name: 'services', state: 'ok', evidence: `${running} of ${all.length} run` };
    }
    return {
        name: 'services',
        state: failing.some(({ state }) => state === 'failed') ? 'failed' : 'degraded',
        evidence: failing.map(failureOf).join('; '),
        remedy: {
            text: `Look at the output of ${first.name} for its reason, and correct it; it is then started again by itself`
        }
    };
}

function failureOf({ name, state, failures, lastExit }: ServiceStatus): string {
    const how =
        lastExit === null
            ? 'it could not be started'
            : lastExit.limit === 'memory'
              ? 'its memory was used up'
              : lastExit.code !== null
                ? `exit code ${lastExit.code}`
                : (lastExit.signal ?? 'it ended unseen');
    return `${name} ${state === 'failed' ? 'does not run' : 'runs again'} after ${failures} failed runs in a row, the last: ${how}`;
}
