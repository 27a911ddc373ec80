/** Which plugin a request is about, by its address. */
const pluginPrefix = '/api/plugins/';
/** Below a plugin's prefix, but the core's: it answers also when the plugin does not run. */
const ofCore = /^\/logs(?:\?|$)/;
const description = '/api/openapi.json?';

/** The plugin below whose prefix a path lies. */
export function pluginOf(url: string): string | null {
    if (!url.startsWith(pluginPrefix)) {
        return null;
    }
    const end = url.indexOf('/', pluginPrefix.length);
    const isOwn = end > 0 && end + 1 < url.length && !ofCore.test(url.slice(end));
    return isOwn ? url.slice(pluginPrefix.length, end) : null;
}

/** The plugin, or the group of the core, whose operations are asked for; null for every other address. */
export function describedPlugin(url: string): string | null {
    return url.startsWith(description) ? new URLSearchParams(url.slice(description.length)).get('tag') : null;
}
