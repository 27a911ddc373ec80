/** Files, folders and links as the API answers them. */
import { type FileEntry, type Files, joi, type Value } from '@portico/sdk';

import { nameOf } from '../roots/path.ts';
import type { Accounts } from './attributes/accounts.ts';
import { filesystem } from './filesystem.ts';

/** The schema of an entry. */
export const entrySchema = joi.object({
    name: joi
        .string()
        .allow('')
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    path: joi.string().allow('').required().label('Path').description('Below the root'),
    type: joi
        .valid('file', 'folder', 'link', 'other')
        .required()
        .label('Type')
        .meta({ ui: { column: 2 } }),
    size: joi
        .number()
        .integer()
        .required()
        .label('Size')
        .unit('byte')
        .meta({ ui: { column: 3 } }),
    mode: joi
        .number()
        .integer()
        .required()
        .label('Permissions')
        .description('Permission bits')
        .meta({ ui: { column: 6 } }),
    owner: joi
        .string()
        .required()
        .label('Owner')
        .meta({ ui: { column: 5 } })
        .description('Name of the account; its number where it has none'),
    group: joi.string().required().label('Group'),
    modifiedAt: joi
        .string()
        .isoDate()
        .required()
        .label('Changed')
        .meta({ ui: { column: 4 } }),
    version: joi
        .string()
        .required()
        .label('Version')
        .description('Changes whenever the entry does; what If-Match takes')
        .meta({ ui: { column: false } })
});
/** An entry as the API answers it. */
export type EntryView = Value<typeof entrySchema>;

/** Makes answers for entries, with the names of their owners. */
export class Entries {
    readonly #accounts: Accounts;

    constructor(accounts: Accounts) {
        this.#accounts = accounts;
    }

    /** The answer for the entry at a path. @throws NOT_FOUND 40400 */
    async one(files: Files, path: string): Promise<EntryView> {
        return this.of(await filesystem(() => files.stat(path)), path);
    }

    /** The answer for one entry. */
    async of(entry: FileEntry, path: string): Promise<EntryView> {
        const [view] = await this.all([{ entry, path }]);
        return view as EntryView;
    }

    /** The answers for many entries; asks for all names at once. */
    async all(rows: readonly { readonly entry: FileEntry; readonly path: string }[]): Promise<EntryView[]> {
        const owners = await this.#accounts.names(
            'passwd',
            rows.map(({ entry }) => entry.uid)
        );
        const groups = await this.#accounts.names(
            'group',
            rows.map(({ entry }) => entry.gid)
        );
        return rows.map(({ entry, path }) => ({
            name: nameOf(path),
            path,
            type: entry.type,
            size: entry.size,
            mode: entry.mode & 0o7777,
            owner: owners.get(entry.uid) ?? String(entry.uid),
            group: groups.get(entry.gid) ?? String(entry.gid),
            modifiedAt: entry.modifiedAt.toISOString(),
            version: entry.version
        }));
    }
}
