/** A finished tree gets its name: as a whole where nothing is, or one top entry after the other into a folder that is there. */
import { errors, type Files } from '@portico/sdk';

import { failures, filesystem, isMissing } from '../errors.ts';
import { giveFolder, type Owner } from '../files/owner.ts';
import { join } from '../roots/path.ts';

/** @throws CONFLICT 40900, and then nothing was moved */
export async function placeTree(files: Files, staging: string, to: string, owner: Owner): Promise<void> {
    const there = await typeAt(files, to);
    if (there === null) {
        await filesystem(async () => {
            await giveFolder(files, staging, owner);
            await files.chmod(staging, 0o750);
            await files.move(staging, to);
        });
        return;
    }
    if (there !== 'folder') {
        throw failures.WRONG_TYPE({ path: to, type: there, wanted: 'folder' });
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
