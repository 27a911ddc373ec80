/** Which folders a site may serve, and which it may open beside its own. */
import { errors } from '@portico/sdk';

import type { Ctx } from '../../settings.ts';
import type { Site } from '../site.ts';

/** Folders that belong to the system, with all that is below them. */
const systemFolders = [
    '/bin',
    '/boot',
    '/dev',
    '/etc',
    '/lib',
    '/lib32',
    '/lib64',
    '/proc',
    '/root',
    '/run',
    '/sbin',
    '/sys',
    '/usr',
    '/var/backups',
    '/var/cache',
    '/var/lib',
    '/var/log',
    '/var/mail',
    '/var/run',
    '/var/spool'
];
/** Folders that hold those of many. */
const sharedFolders = [
    '/',
    '/home',
    '/media',
    '/mnt',
    '/opt',
    '/srv',
    '/tmp',
    '/var',
    '/var/tmp',
    '/var/www'
];
/** Folders of a site that are never served. */
const closedFolders = ['private', 'logs'];

/** What a path below a site's folder looks like. */
export const innerPath = /^(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)*$/;

/** What a path of `extraPaths` looks like: no sign in it has a meaning in a configuration, or parts a list. */
export const outerPath = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._@+-]+)+$/;

/** Checks the words of `root`. @throws VALIDATION_FAILED 40001 */
export function checkRoot(root: string): void {
    const [first = ''] = root.split('/');
    if (closedFolders.includes(first)) {
        throw errors.invalid([{ path: 'root', message: `${first} is never served` }]);
    }
}

/** Checks that `root` is a folder below that of the site, and that no link leads there. @throws VALIDATION_FAILED 40001 */
export async function checkRootFolder(
    ctx: Ctx,
    { folder }: Pick<Site, 'folder'>,
    root: string
): Promise<void> {
    checkRoot(root);
    const found = await ctx
        .files(folder)
        .stat(root)
        .catch(() => null);
    if (found?.type !== 'folder') {
        throw errors.invalid([
            { path: 'root', message: `${root} is no folder of the site, or a link leads there` }
        ]);
    }
}

/** Checks the folders that a site may open beside its own. @throws VALIDATION_FAILED 40001 */
export async function checkExtraPaths(
    ctx: Ctx,
    paths: readonly string[],
    sites: readonly Pick<Site, 'folder' | 'runFolder'>[]
): Promise<void> {
    const { sitesFolder, runFolder } = ctx.settings;
    const closed = [...systemFolders, runFolder, ...sites.flatMap((site) => [site.folder, site.runFolder])];
    const holders = [...sharedFolders, sitesFolder];
    const faults: { path: string; message: string }[] = [];
    for (const [index, path] of paths.entries()) {
        const isClosed =
            holders.includes(path) ||
            closed.some((each) => isWithin(path, each)) ||
            [...closed, ctx.dataDir].some((each) => isWithin(each, path));
        // Opened step by step without following links; what belongs to the panel or its engine is not there.
        const isFolder =
            !isClosed &&
            (await ctx
                .files('/')
                .stat(path.slice(1))
                .then(
                    ({ type }) => type === 'folder',
                    () => false
                ));
        const canList =
            isFolder &&
            (await ctx
                .files(path)
                .list('')
                .then(
                    () => true,
                    () => false
                ));
        if (!canList) {
            faults.push({
                path: `extraPaths.${index}`,
                message: `${path} belongs to the system, the panel or another site, is no folder, or a link leads there`
            });
        }
    }
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
}

function isWithin(path: string, folder: string): boolean {
    return path === folder || path.startsWith(`${folder}/`);
}
