/** Makes files and folders with exactly the mode that was asked for. The panel's umask would take bits away from it. */
import { constants, type PathLike } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY } = constants;

/** Opens a file. When it makes the file, and only then, the file gets the mode. @param flags - as of open(2) */
export async function openFile(path: PathLike, flags: number, mode: number): Promise<FileHandle> {
    if ((flags & O_CREAT) === 0) {
        return open(path, flags);
    }
    // The file can come and go between the two attempts, so they are repeated.
    for (;;) {
        const made = await open(path, flags | O_EXCL, mode & 0o700).catch(
            unless((flags & O_EXCL) === 0 ? 'EEXIST' : null)
        );
        if (made !== null) {
            await setMode(made, mode);
            return made;
        }
        const found = await open(path, flags & ~O_CREAT).catch(unless('ENOENT'));
        if (found !== null) {
            return found;
        }
    }
}

/** Makes a folder. @throws the error of mkdir(2), for example EEXIST */
export async function makeFolder(path: PathLike, mode: number): Promise<void> {
    await mkdir(path, { mode: mode & 0o700 });
    const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    await setMode(handle, mode);
    await handle.close();
}

async function setMode(handle: FileHandle, mode: number): Promise<void> {
    try {
        await handle.chmod(mode & 0o7777);
    } catch (error) {
        await handle.close();
        throw error;
    }
}

function unless(code: string | null): (error: unknown) => null {
    return (error) => {
        if (code !== null && (error as NodeJS.ErrnoException).code === code) {
            return null;
        }
        throw error;
    };
}
