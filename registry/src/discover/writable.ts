/** Who can write into a folder besides the panel. An account that can write into a plugin's folder owns the panel. */
import { readFileSync, statSync } from 'node:fs';

/** Files in which the machine names its groups and accounts. */
export interface AccountFiles {
    readonly group: string;
    readonly passwd: string;
}

const usual: AccountFiles = { group: '/etc/group', passwd: '/etc/passwd' };

/** Says why a folder cannot be trusted; null when only the panel's own account and root can write there. `missing`: it is not there. */
export function foreignWriter(path: string, files: AccountFiles = usual): string | null {
    try {
        const { mode, uid, gid } = statSync(path);
        const self = process.getuid?.() ?? uid;
        if ((mode & 0o002) !== 0 || (uid !== self && uid !== 0)) {
            return 'others may write to it';
        }
        return (mode & 0o020) !== 0 && !isPrivate(gid, self, files) ? 'its group may write to it' : null;
    } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : (error as Error).message;
    }
}

/** Many machines give every user a group of its own and make folders writable for it: such a group has no other member. A group that the files do not name may have any member. */
function isPrivate(gid: number, self: number, files: AccountFiles): boolean {
    const groups = linesOf(files.group);
    const accounts = linesOf(files.passwd);
    const own = new Set(
        accounts.filter(([, , uid]) => Number(uid) === self || Number(uid) === 0).map(([name]) => name)
    );
    const named = groups.filter(([, , id]) => id !== undefined && id !== '' && Number(id) === gid);
    const others = [
        ...named.flatMap(([, , , members = '']) => members.split(',').filter((name) => name !== '')),
        ...accounts
            .filter(([, , , group]) => group !== undefined && group !== '' && Number(group) === gid)
            .map(([name = '']) => name)
    ];
    return named.length > 0 && others.every((name) => own.has(name));
}

function linesOf(file: string): readonly (readonly string[])[] {
    try {
        return readFileSync(file, 'utf8')
            .split('\n')
            .map((line) => line.split(':'));
    } catch {
        return [];
    }
}
