/** The answer to a path without a route. Below a plugin's prefix, it names the plugin and says why it does not serve. */
import { fail } from '../../../platform/errors.ts';

/** @param refusal - why a plugin's path is not served */
export function unknownPath(refusal: (plugin: string) => Error): (path: string) => Error {
    return (path) => {
        const plugin = /^\/api\/plugins\/([^/]{1,64})\/./.exec(path)?.[1];
        return plugin === undefined ? fail.NOT_FOUND() : refusal(plugin);
    };
}
