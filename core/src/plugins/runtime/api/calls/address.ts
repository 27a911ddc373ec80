/** The address of a call: the path of a route with its parameters filled in, and the query. */

/** Null when a parameter is missing. */
export function addressOf(path: string, params: object, query: object): string | null {
    let complete = true;
    const filled = path.replace(/\{(\w+)(\*?)\}/g, (_all, name: string, multi: string) => {
        const value = (params as Readonly<Record<string, unknown>>)[name];
        if (
            value === undefined ||
            value === null ||
            String(value) === '' ||
            /^\.{1,2}$/.test(String(value))
        ) {
            complete &&= multi === '*' && value !== undefined;
            return '';
        }
        if (
            multi === '*' &&
            String(value)
                .split('/')
                .some((segment) => /^\.{1,2}$/.test(segment))
        ) {
            complete = false; // it would lead to another route than the one that is named
        }
        return multi === '*'
            ? String(value).split('/').map(encodeURIComponent).join('/')
            : encodeURIComponent(String(value));
    });
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
        (Array.isArray(value) ? value : [value])
            .filter((each) => each !== undefined && each !== null)
            .forEach((each) => search.append(name, String(each)));
    }
    return complete ? `${filled}${search.size === 0 ? '' : `?${search}`}` : null;
}
