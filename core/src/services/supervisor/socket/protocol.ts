/** What the panel and its supervisor say to each other: one line of JSON for each call, and one for each answer. */
import { type ServiceCommand, serviceName, type ServiceStatus } from '../../port.ts';

/** Changes with every change of what crosses or lies on the disk. A panel replaces a supervisor of another version; services go on. */
export const protocolVersion = 2;

/** Name of the socket in the supervisor's folder. */
export const socketName = 'control.sock';
/** Name of the folder that holds one folder for each service. */
export const servicesFolder = 'units';
/** Between the owner and the name of a service, in the name of its folder. */
export const ownerMark = '.';

/** A service of an owner. */
export interface Target {
    readonly owner: string;
    readonly name: string;
}

const ownerForm = /^[a-z0-9][a-z0-9-]{0,63}$/;

/** Name of a service's folder. @throws TypeError when owner or name would lead elsewhere */
export function idOf({ owner, name }: Target): string {
    if (!ownerForm.test(owner) || !serviceName.test(name)) {
        throw new TypeError(`${owner} ${name} is no name of a service`);
    }
    return `${owner}${ownerMark}${name}`;
}

/** The calls of the panel. */
export interface Calls {
    hello(input: object): { readonly version: number; readonly pid: number };
    put(input: Target & { readonly command: ServiceCommand }): ServiceStatus;
    list(input: { readonly owner: string }): readonly ServiceStatus[];
    start(input: Target): ServiceStatus;
    stop(input: Target): ServiceStatus;
    restart(input: Target): ServiceStatus;
    reload(input: Target): ServiceStatus;
    remove(input: Target): null;
    /** Gives the services of an owner to another one. */
    adopt(input: { readonly from: string; readonly to: string }): null;
    /** Ends the supervisor. Services go on. */
    retire(input: object): null;
}

/** One call of the panel to the supervisor; the reply has the same id. */
export interface Call {
    readonly id: number;
    readonly method: keyof Calls;
    readonly input: unknown;
}

/** Why a call failed, as the port's errors name it. */
export type Refusal = 'unknown' | 'notReloadable' | 'storageFull' | 'failed';

/** The answer to a call. */
export type Answer =
    | { readonly id: number; readonly result: unknown }
    | { readonly id: number; readonly refusal: Refusal; readonly message: string };

/** Cuts what comes from a socket into lines. */
export class Lines {
    #rest = '';

    push(text: string): string[] {
        const lines = (this.#rest + text).split('\n');
        this.#rest = lines.pop() ?? '';
        return lines;
    }
}
