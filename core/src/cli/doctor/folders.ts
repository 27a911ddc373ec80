/** Checks of the engine's folders outside of data folders, which exist where panels run as root. */
import {
    listOutsideFolders,
    type OutsideFolder,
    outsideRoots,
    removeGoneFolders
} from '../../engine/files/outside-folders.ts';
import { type Check, ok, warn } from './check.ts';

const roots = [outsideRoots.persistent, outsideRoots.runtime];
/** The most folders that a check names. */
const mostNamed = 20;

/** Says which folder belongs to which data folder. Only root can read them; for any other user there is nothing to say. */
export function checkFolders(): Check[] {
    const folders = process.geteuid?.() === 0 ? listOutsideFolders(roots) : [];
    if (folders.length === 0) {
        return [];
    }
    const evidence = [
        ...folders.slice(0, mostNamed).map(describe),
        ...(folders.length > mostNamed ? [`and ${folders.length - mostNamed} more`] : [])
    ].join('; ');
    return [
        folders.some(({ state }) => state === 'gone')
            ? warn(
                  'engine-folders',
                  evidence,
                  'Remove those whose data folder is gone: portico doctor --clean'
              )
            : ok('engine-folders', evidence)
    ];
}

/** Removes those whose data folder is gone. @returns their paths */
export function removeFolders(): readonly string[] {
    return process.geteuid?.() === 0 ? removeGoneFolders(roots) : [];
}

function describe({ path, dataDir, state }: OutsideFolder): string {
    return dataDir === null
        ? `${path} has no note of its data folder: it gets one when its panel starts`
        : `${path} belongs to ${dataDir}${state === 'gone' ? ', which does not exist' : ''}`;
}
