/** Moves an unpacked tree to its target: as a whole where nothing exists, or its top entries one by one into an existing folder. */
import { errors, type Files } from '@portico/sdk';

import { fail } from '../errors.ts';
import { changeFolderOwner, type Owner } from '../files/attributes/owner.ts';
import { filesystem, isMissing } from '../files/filesystem.ts';
import { join } from '../roots/path.ts';

/** Moves everything or nothing. @throws CONFLICT 40900 when a name is taken */
export async function placeTree(files: Files, staging: string, to: string, owner: Owner): Promise<void> {
    const existing = await typeAt(files, to);
    if (existing === null) {
        await filesystem(async () => {
            await changeFolderOwner(files, staging, owner);
            await files.chmod(staging, 0o750);
            await files.move(staging, to);
        });
        return;
    }
    if (existing !== 'folder') {
        throw fail.WRONG_TYPE({ path: to, type: existing, wanted: 'folder' });
    }
    const names = (await filesystem(() => files.list(staging))).map(({ name }) => name);
    const taken = new Set((await filesystem(() => files.list(to))).map(({ name }) => name));
    if (names.some((name) => taken.has(name))) {
        throw errors.conflict('to');
    }
    const moved: string[] = [];
    try {
        for (const name of names) {
            await filesystem(() => files.move(join(staging, name), join(to, name)));
            moved.push(name);
        }
    } catch (error) {
        for (const name of moved.reverse()) {
            await files.move(join(to, name), join(staging, name));
        }
        throw error;
    }
}

async function typeAt(files: Files, path: string): Promise<string | null> {
    try {
        return (await files.stat(path)).type;
    } catch (error) {
        if (isMissing(error)) {
            return null;
        }
        throw error;
    }
}
