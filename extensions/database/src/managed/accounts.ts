/** Accounts of the machine, as which servers run. */
import { readFile } from 'node:fs/promises';

/** An account of this machine. */
export interface MachineAccount {
    readonly name: string;
    readonly uid: number;
    readonly gid: number;
}

/** The first of these accounts that the machine has; null where the panel is not root, so that all it starts runs as its own account. */
export async function accountOf(names: readonly string[]): Promise<MachineAccount | null> {
    if (process.getuid?.() !== 0) {
        return null;
    }
    const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
    for (const wanted of names) {
        const [name, , uid, gid] = lines.find(([each]) => each === wanted) ?? [];
        if (name !== undefined && Number(uid) > 0) {
            return { name, uid: Number(uid), gid: Number(gid) };
        }
    }
    throw new Error(`This machine has none of the accounts ${names.join(', ')}`);
}
