/** Accounts of the machine, as programs are run under them. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export interface MachineAccount {
    readonly name: string;
    readonly uid: number;
    readonly gid: number;
    readonly home: string;
}

const form = /^[a-z_][a-z0-9_.-]{0,31}\$?$/i;

/** Asks the machine, whatever it keeps its accounts in; null for a name that it does not know. */
export async function findAccount(name: string): Promise<MachineAccount | null> {
    if (!form.test(name)) {
        return null;
    }
    try {
        const { stdout } = await promisify(execFile)('getent', ['--', 'passwd', name], {
            timeout: 5_000,
            env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }
        });
        const [found, , uid, gid, , home] = stdout.split('\n', 1)[0]?.split(':') ?? [];
        return found === name && Number.isInteger(Number(uid))
            ? {
                  name,
                  uid: Number(uid),
                  gid: Number(gid),
                  home: home === undefined || home === '' ? '/' : home
              }
            : null;
    } catch {
        return null;
    }
}
