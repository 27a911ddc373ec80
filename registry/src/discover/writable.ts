/** Who can write into a folder besides the panel. An account that can write into a plugin's folder owns the panel. */
import { readFile, stat } from 'node:fs/promises';

/** Files in which the machine names its groups and accounts. */
export interface AccountFiles {
    readonly group: string;
    readonly passwd: string;
}

const usual: AccountFiles = { group: '/etc/group', passwd: '/etc/passwd' };

/** Says why a folder cannot be trusted; null when only the panel's own account and root can write there. `missing`: it is not there. */
export async function unsafe(path: string, files: AccountFiles = usual): Promise<string | null> {
    try {
        const { mode, uid, gid } = await stat(path);
        const self = process.getuid?.() ?? uid;
        if ((mode & 0o002) !== 0 || (uid !== self && uid !== 0)) {
            return 'others may write to it';
        }
        return (mode & 0o020) !== 0 && !(await isPrivate(gid, self, files))
            ? 'its group may write to it'
            : null;
    } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : (error as Error).message;
    }
}

/** Many machines give every user a group of its own and make folders writable for it: such a group has no other member. A group that the files do not name may have any member. */
async function isPrivate(gid: number, self: number, files: AccountFiles): Promise<boolean> {
    const [groups, accounts] = await Promise.all(
        [files.group, files.passwd].map(async (file) =>
            (await readFile(file, 'utf8').catch(() => '')).split('\n').map((line) => line.split(':'))
        )
    );
    const own = new Set(
        (accounts ?? [])
            .filter(([, , uid]) => Number(uid) === self || Number(uid) === 0)
            .map(([name]) => name)
    );
    const named = (groups ?? []).filter(([, , id]) => id !== undefined && id !== '' && Number(id) === gid);
    const others = [
        ...named.flatMap(([, , , members = '']) => members.split(',').filter((name) => name !== '')),
        ...(accounts ?? [])
            .filter(([, , , group]) => group !== undefined && group !== '' && Number(group) === gid)
            .map(([name = '']) => name)
    ];
    return named.length > 0 && others.every((name) => own.has(name));
}
