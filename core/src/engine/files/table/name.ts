/** Names of sites and of the table's folders for them. */

const plain = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/;

/** `+` is in no name that passes the engine's own check, so no request can ask for a wildcard's folder by its name. */
const wildcardPrefix = '+.';

/** A lower-case DNS name, or `*.` before one; at most 253 characters. */
export const isSiteName = (name: string): boolean => {
    const rest = name.startsWith('*.') ? name.slice(2) : name;
    return name.length <= 253 && plain.test(rest);
};

/** @throws Error when it is no name: nothing else ever becomes a path */
export const folderOf = (name: string): string => {
    if (!isSiteName(name)) {
        throw new Error(`not a name of a site: ${JSON.stringify(name)}`);
    }

    return name.startsWith('*.') ? wildcardPrefix + name.slice(2) : name;
};

/** The name whose folder this is; null when it is none. */
export const nameOfFolder = (folder: string): string | null => {
    const name = folder.startsWith(wildcardPrefix) ? `*.${folder.slice(wildcardPrefix.length)}` : folder;
    return !folder.startsWith('*') && isSiteName(name) ? name : null;
};
