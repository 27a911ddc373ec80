/** The fault switch: whatever a plugin asks of the panel or the machine fails or hangs when a test says so. */
import type { GuestSides } from '@portico/core/plugin-runtime';
import { createFailure } from '@portico/sdk';

import { inTime } from './deadline.ts';

/** What a plugin asks the panel for, by the names that its code uses. */
const asked = {
    accessLog: 'accessLog',
    call: 'api.call',
    plan: 'api.plan',
    read: 'api.read',
    routes: 'api.routes',
    audit: 'audit',
    listCertificates: 'certificates.list',
    removeCertificate: 'certificates.remove',
    uploadCertificate: 'certificates.upload',
    collect: 'hooks.collect',
    createHost: 'hosts.create',
    listHosts: 'hosts.list',
    removeHost: 'hosts.remove',
    updateHost: 'hosts.update',
    upstreams: 'hosts.upstreams',
    probeHost: 'hosts.probe',
    hostAccount: 'hosts.account',
    endMandate: 'mandates.end',
    giveMandate: 'mandates.give',
    useMandate: 'mandates.use',
    notify: 'notify',
    panelListeners: 'panel.listeners',
    panelFolders: 'panel.folders',
    panelHasPlugin: 'panel.hasPlugin',
    panelUrl: 'panel.url',
    rehearse: 'panel.rehearse',
    partner: 'plugins',
    schedule: 'schedule',
    open: 'secrets.open',
    seal: 'secrets.seal',
    task: 'task',
    ticket: 'tickets.issue'
} as const satisfies Partial<Record<keyof GuestSides['hostApi'], string>>;

/** A part of the context that can fail, by the name that a plugin's code calls it by. */
export type FaultPoint =
    | (typeof asked)[keyof typeof asked]
    | 'db.read'
    | 'db.write'
    | 'dial'
    | 'exec'
    | 'fetch'
    | 'files'
    | 'resolve'
    | 'spawn';

/** How often; default: until it is cleared. */
export interface FaultOptions {
    readonly times?: number;
}

interface Fault {
    readonly act: () => Promise<never>;
    left: number;
}

type Method = (...input: readonly unknown[]) => unknown;

/** What is wrong with which part of the context now. */
export class TestFaults {
    readonly #patienceMs: number;
    readonly #faults = new Map<FaultPoint, Fault>();
    #cleared = Promise.withResolvers<void>();

    /** @internal */
    constructor(patienceMs: number) {
        this.#patienceMs = patienceMs;
    }

    /**
     * From now on it fails.
     *
     * @param error - default: STORAGE_FULL 50700 of the database, NOT_READY 50300 of all else
     */
    fail(point: FaultPoint, error?: Error, { times = Infinity }: FaultOptions = {}): void {
        const [code, reason, message] = point.startsWith('db.')
            ? [50700, 'STORAGE_FULL', 'There is no space left; nothing was changed']
            : [50300, 'NOT_READY', `The test has put ${point} out of order`];
        const thrown =
            error ??
            createFailure({
                code: Number(code),
                reason: String(reason),
                message: String(message),
                data: null
            });
        this.#faults.set(point, { act: () => Promise.reject(thrown), left: times });
    }

    /**
     * From now on it never answers. What hangs then fails when the fault is cleared, or the plugin stops.
     *
     * @returns `reached` resolves when something hangs; it fails when nothing does in time
     */
    hang(point: FaultPoint, { times = Infinity }: FaultOptions = {}): { readonly reached: Promise<void> } {
        const { promise, resolve } = Promise.withResolvers<void>();
        const act = async (): Promise<never> => {
            const { promise: cleared } = this.#cleared;
            resolve();
            await cleared;
            throw new Error(`${point} hung until the test cleared it`);
        };
        this.#faults.set(point, { act, left: times });
        const reached = inTime(`a use of ${point}`, this.#patienceMs, promise);
        reached.catch(() => undefined);
        return { reached };
    }

    /** Puts one part in order again, or all of them. */
    clear(point?: FaultPoint): void {
        if (point === undefined) {
            this.#faults.clear();
        } else {
            this.#faults.delete(point);
        }
        this.#cleared.resolve();
        this.#cleared = Promise.withResolvers();
    }

    /** The same sides with this switch in front of them. @internal */
    wrap({ hostApi, local }: GuestSides): GuestSides {
        const guarded = Object.fromEntries(
            Object.entries(hostApi).map(([name, method]) => [
                name,
                Object.hasOwn(asked, name)
                    ? this.#guard(asked[name as keyof typeof asked], method as Method)
                    : method
            ])
        );
        return {
            // The same names with the same methods behind the switch.
            hostApi: guarded as unknown as GuestSides['hostApi'],
            local: {
                ...local,
                db: {
                    read: this.#guard('db.read', local.db.read),
                    write: this.#guard('db.write', local.db.write)
                },
                fetch: this.#guard('fetch', local.fetch),
                resolve: this.#guard('resolve', local.resolve),
                exec: this.#guard('exec', local.exec),
                spawn: this.#guard('spawn', local.spawn),
                files: (root) =>
                    new Proxy(local.files(root), {
                        get: (files, name) =>
                            this.#guard('files', Reflect.get(files, name).bind(files) as Method)
                    }),
                dial: (target) => {
                    const fault = this.#take('dial');
                    const socket = local.dial(fault === null ? target : undefined);
                    fault?.catch((error: unknown) => socket.destroy(error as Error));
                    return socket;
                }
            }
        };
    }

    #guard<M extends (...input: never[]) => unknown>(point: FaultPoint, method: M): M {
        const guarded = async (...input: never[]): Promise<unknown> =>
            (await this.#take(point)) ?? method(...input);
        return guarded as M;
    }

    #take(point: FaultPoint): Promise<never> | null {
        const fault = this.#faults.get(point);
        if (fault === undefined || fault.left <= 0) {
            return null;
        }
        fault.left -= 1;
        return fault.act();
    }
}
