/** The services of a test's machine: no process runs, and the test says how each of them ends and what it writes. */
import {
    type OutputOptions,
    type ServiceCommand,
    type ServiceLine,
    ServiceNotReloadable,
    type ServiceStatus,
    ServiceUnknown
} from '@portico/core/plugin-runtime';
import { EventBuffer } from '@portico/sdk';

/** What is known of one service. */
interface Kept {
    command: ServiceCommand;
    status: ServiceStatus;
    readonly lines: EventBuffer<ServiceLine>;
    /** Aborts when the service is removed. */
    readonly gone: AbortController;
}

let lastPid = 200_000;

/** What the plugin keeps running, which stays when the plugin stops. */
export class TestServices {
    /** What was asked of services, in order: `put web`, `reload web`. */
    readonly calls: string[] = [];
    readonly #kept = new Map<string, Kept>();
    readonly #now: () => Date;

    /** @internal */
    constructor(now: () => Date) {
        this.#now = now;
    }

    /** The services, by name, in the states that the test gave them. */
    get all(): readonly ServiceStatus[] {
        return [...this.#kept.values()].map(({ status }) => status);
    }

    /** The command of a service, with its arguments, environment and account. @throws Error when there is none */
    command(name: string): ServiceCommand {
        return this.#require(name).command;
    }

    /** Ends a service as if its program had ended by itself. Its policy says whether it runs again. */
    end(name: string, exit: { readonly code?: number; readonly signal?: string } = {}): void {
        const kept = this.#require(name);
        const { code = exit.signal === undefined ? 0 : null, signal = null } = exit;
        const isClean = code === 0;
        const { restart } = kept.command;
        const runsAgain = restart === 'always' || (restart === 'on-failure' && !isClean);
        const { exits, failures } = kept.status;
        kept.status = {
            ...kept.status,
            ...(runsAgain ? this.#run() : { ...idle, state: isClean ? 'stopped' : 'failed' }),
            exits: exits + 1,
            failures: isClean && !runsAgain ? 0 : failures + 1,
            lastExit: { code, signal, at: this.#now().getTime() }
        };
    }

    /** Writes a line as a service does. */
    say(name: string, text: string, stream: ServiceLine['stream'] = 'stdout'): void {
        this.#require(name).lines.publish({ at: this.#now().getTime(), stream, text });
    }

    /** @internal */
    async open(): Promise<void> {
        // Nothing runs that could be found again.
    }

    /** @internal */
    async put(_owner: string, name: string, command: ServiceCommand): Promise<ServiceStatus> {
        this.calls.push(`put ${name}`);
        const known = this.#kept.get(name);
        const isSame = known !== undefined && JSON.stringify(known.command) === JSON.stringify(command);
        const kept: Kept = known ?? {
            command,
            status: { name, ...this.#run(), exits: 0, lastExit: null, failures: 0, grants: command.grants },
            lines: new EventBuffer(Infinity),
            gone: new AbortController()
        };
        kept.command = command;
        if (known?.status.state === 'running' && !isSame) {
            kept.status = { ...kept.status, ...this.#run(), grants: command.grants };
        }
        this.#kept.set(name, kept);
        return kept.status;
    }

    /** @internal */
    async list(): Promise<readonly ServiceStatus[]> {
        return [...this.all].sort((one, two) => (one.name < two.name ? -1 : 1));
    }

    /** @internal */
    async start(_owner: string, name: string): Promise<ServiceStatus> {
        const { state } = this.#known(name).status;
        return this.#change('start', name, state === 'running' ? {} : this.#run());
    }

    /** @internal */
    async stop(_owner: string, name: string): Promise<ServiceStatus> {
        return this.#change('stop', name, idle);
    }

    /** @internal */
    async restart(_owner: string, name: string): Promise<ServiceStatus> {
        return this.#change('restart', name, this.#run());
    }

    /** @internal */
    async reload(_owner: string, name: string): Promise<ServiceStatus> {
        const { command, status } = this.#known(name);
        if (command.reloadSignal === null || status.state !== 'running') {
            throw new ServiceNotReloadable('It does not run, or has no reloadSignal');
        }
        return this.#change('reload', name, {});
    }

    /** @internal */
    async remove(_owner: string, name: string): Promise<void> {
        this.calls.push(`remove ${name}`);
        this.#kept.get(name)?.gone.abort();
        this.#kept.delete(name);
    }

    /** @internal */
    async *output(
        _owner: string,
        name: string,
        { tail, follow, signal }: OutputOptions
    ): AsyncGenerator<ServiceLine> {
        const { lines, gone } = this.#known(name);
        const start = Math.max(0, lines.last - tail);
        const end = follow ? Infinity : lines.last;
        let at = start;
        if (at < end) {
            for await (const next of lines.after(start, AbortSignal.any([signal, gone.signal]))) {
                if ('event' in next) {
                    yield next.event;
                }
                at += 1;
                if (at === end) {
                    return;
                }
            }
        }
    }

    /** @internal */
    async adopt(): Promise<void> {
        // There is one plugin, so there is no other owner.
    }

    /** @internal */
    async close(): Promise<void> {
        // Nothing runs that would have to end.
    }

    #change(call: string, name: string, change: Partial<ServiceStatus>): ServiceStatus {
        const kept = this.#known(name);
        this.calls.push(`${call} ${name}`);
        kept.status = { ...kept.status, ...change };
        return kept.status;
    }

    #known(name: string): Kept {
        const kept = this.#kept.get(name);
        if (kept === undefined) {
            throw new ServiceUnknown(`There is no service ${name}`);
        }
        return kept;
    }

    #require(name: string): Kept {
        const kept = this.#kept.get(name);
        if (kept === undefined) {
            const names = [...this.#kept.keys()].join(', ');
            throw new Error(`The plugin has no service ${name}; it has ${names === '' ? 'none' : names}`);
        }
        return kept;
    }

    #run(): Pick<ServiceStatus, 'state' | 'pid' | 'startedAt'> {
        lastPid += 1;
        return { state: 'running', pid: lastPid, startedAt: this.#now().getTime() };
    }
}

const idle = { state: 'stopped', pid: null, startedAt: null } as const;
