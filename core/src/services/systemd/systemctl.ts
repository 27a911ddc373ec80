/** Calls of `systemctl`. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { Mutex } from '@portico/sdk';

import { ServicesUnavailable } from '../port.ts';
import { unitPrograms } from './unit.ts';

/** A unit as systemd sees it. */
export interface UnitStatus {
    /** `active`, `activating`, `deactivating`, `inactive`, `failed`. */
    readonly active: string;
    /** Its main process. */
    readonly pid: number | null;
}

const callMs = 30_000;
const environment = {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LC_ALL: 'C',
    SYSTEMD_PAGER: '',
    SYSTEMD_COLORS: '0'
};

/** systemd, where it is the first process of the machine. */
export class Systemctl {
    readonly #reloads = new Mutex();

    /** The state of units. One that systemd does not know is `inactive`. @throws ServicesUnavailable */
    async show(units: readonly string[]): Promise<ReadonlyMap<string, UnitStatus>> {
        if (units.length === 0) {
            return new Map();
        }
        const text = await call(['show', '--property=Id,ActiveState,MainPID', '--', ...units]);
        return new Map(
            text.split('\n\n').map((block) => {
                const value = (name: string): string =>
                    new RegExp(`^${name}=(.*)$`, 'm').exec(block)?.[1] ?? '';
                const pid = Number(value('MainPID'));
                return [value('Id'), { active: value('ActiveState'), pid: pid === 0 ? null : pid }];
            })
        );
    }

    /** Starts a unit. Resolves also when its program cannot be started: `show` says what became of it. @throws ServicesUnavailable */
    async start(unit: string): Promise<void> {
        await call(['start', '--', unit], { takesMs: callMs, isTried: true });
    }

    /** Ends a unit with all its processes. @param takesMs - how long it may take @throws ServicesUnavailable when it does not end */
    async stop(unit: string, takesMs: number): Promise<void> {
        await call(['stop', '--', unit], { takesMs: callMs + takesMs, isTried: true });
        await call(['reset-failed', '--', unit], { isTried: true });
        const { active = 'inactive' } = (await this.show([unit])).get(unit) ?? {};
        if (active !== 'inactive') {
            throw new ServicesUnavailable(`systemd could not stop ${unit}: it is ${active}`);
        }
    }

    /** Signals the program itself. */
    async signal(unit: string, name: NodeJS.Signals): Promise<void> {
        // Newer versions call it `--kill-whom`, of which this is the beginning of the word.
        await call(['kill', '--kill-who=main', `--signal=${name}`, '--', unit]);
    }

    /** Makes systemd read the files of its units again. @throws ServicesUnavailable */
    async reload(): Promise<void> {
        await this.#reloads.run(() => call(['daemon-reload']));
    }
}

interface CallOptions {
    readonly takesMs?: number;
    /** An exit code other than 0 is no error. */
    readonly isTried?: boolean;
}

async function call(
    args: readonly string[],
    { takesMs = callMs, isTried = false }: CallOptions = {}
): Promise<string> {
    try {
        const { stdout } = await promisify(execFile)(unitPrograms.systemctl, args, {
            timeout: takesMs,
            env: environment
        });
        return stdout;
    } catch (error) {
        const { code, stderr = '' } = error as { readonly code?: unknown; readonly stderr?: string };
        if (isTried && typeof code === 'number') {
            return '';
        }
        throw new ServicesUnavailable(`systemctl ${args[0]}: ${stderr.trim() || String(error)}`, {
            cause: error
        });
    }
}
