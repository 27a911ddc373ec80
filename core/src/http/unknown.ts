/** What a path that nobody serves answers. A plugin's path that no plugin serves says so in the plugin's name. */
import { fail } from '../errors.ts';

export function unknownPath(path: string): Error {
    const plugin = /^\/api\/plugins\/([^/]{1,64})\/./.exec(path)?.[1];
    return plugin === undefined ? fail.NOT_FOUND() : fail.PLUGIN_NOT_FOUND({ plugin });
}
