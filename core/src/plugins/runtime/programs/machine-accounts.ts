/** Accounts of the machine under which programs can run. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** An account of the machine. */
export interface MachineAccount {
    readonly name: string;
    readonly uid: number;
    readonly gid: number;
    readonly home: string;
}

const form = /^[a-z_][a-z0-9_.-]{0,31}\$?$/i;

/** Finds an account by name, wherever the machine keeps its accounts (files, LDAP); null when there is none. */
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
