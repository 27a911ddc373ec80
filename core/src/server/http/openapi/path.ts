/** hapi's paths as OpenAPI's templates. */

/** A parameter in a path. */
export interface PathParameter {
    readonly name: string;
    /** Whether the parameter takes slashes, and may be empty. */
    readonly multi: boolean;
}

/** `/files/{path*}` → `/files/{path}`. @throws TypeError for what has no template */
export function templateOf(path: string): {
    readonly template: string;
    readonly parameters: readonly PathParameter[];
} {
    const parameters: PathParameter[] = [];
    const template = path.replace(/\{(\w+)(\?|\*\d*)?\}/g, (_all, name: string, suffix = '') => {
        if (suffix === '?' || /^\*\d/.test(suffix as string)) {
            throw new TypeError(
                `OpenAPI cannot express the parameter {${name}${suffix}}: declare a route for each form`
            );
        }
        parameters.push({ name, multi: suffix === '*' });
        return `{${name}}`;
    });
    return { template, parameters };
}

/** Where a route is served. */
export function fullPath(prefix: string, path: string): string {
    return prefix !== '' && path === '/' ? prefix : `${prefix}${path}`;
}
