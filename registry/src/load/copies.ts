/** Finds copies of what the panel supplies. A second SDK or MikroORM in one process has brands, metadata and connections of its own. */
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';

const supplied = ['@portico/sdk', '@mikro-orm/core', '@mikro-orm/sqlite'];
/** Texts in their code that outlive a bundler. */
const marks: readonly (readonly [string, string])[] = [
    ['~portico', '@portico/sdk'],
    ['@mikro-orm/core/EntitySchema.REGISTRY', 'MikroORM'],
    ['@mikro-orm/core/RawQueryFragment', 'MikroORM']
];
const code = new Set(['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts']);
/** Files larger than this are searched to here. */
const searched = 16 * 1024 * 1024;
const mostFiles = 5000;

/**
 * Says which copy lies in a package, in one sentence; null when none does.
 *
 * @param hostSdk - real path of the SDK that the panel runs with
 * @param options - `deep` also looks into the dependencies of dependencies
 */
export async function bundledCopy(
    folder: string,
    hostSdk: string,
    { deep = false }: { readonly deep?: boolean } = {}
): Promise<string | null> {
    const packageJson = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Readonly<
        Record<string, unknown>
    >;
    const label = String(packageJson['name']);
    const wanted = supplied.find(
        (name) =>
            [packageJson['dependencies'], packageJson['optionalDependencies']].some((list) =>
                Object.hasOwn((list ?? {}) as object, name)
            ) ||
            [packageJson['bundleDependencies'], packageJson['bundledDependencies']].some(
                (list) => Array.isArray(list) && list.includes(name)
            )
    );
    if (wanted !== undefined) {
        return `${label} has ${wanted} among its dependencies; the panel supplies it: make it a peer dependency`;
    }
    // What an author has installed for the types is never loaded: the panel's own is supplied in its place. The SDK brings MikroORM along.
    const named = supplied.filter((name) =>
        [packageJson['devDependencies'], packageJson['peerDependencies']].some((list) =>
            Object.hasOwn((list ?? {}) as object, name)
        )
    );
    const working = named.includes('@portico/sdk') ? supplied : named;
    const installed = await copyIn(join(folder, 'node_modules'), hostSdk, deep ? [] : working, deep);
    if (installed !== null) {
        return `${label} brings a copy of ${installed} in its node_modules; the panel supplies it`;
    }
    const marked = await markedFile(folder);
    return marked === null
        ? null
        : `${label} has a copy of ${marked.of} within ${marked.path}; leave it out of the bundle (external), the panel supplies it`;
}

/** Name of a supplied package that lies in a folder of packages and is not the panel's own. */
async function copyIn(
    modules: string,
    hostSdk: string,
    allowed: readonly string[],
    deep: boolean
): Promise<string | null> {
    for (const name of supplied) {
        const real = await realpath(join(modules, name)).catch(() => null);
        if (
            real !== null &&
            real !== hostSdk &&
            !allowed.includes(name) &&
            (name === '@portico/sdk' || (await isFolder(join(modules, name))))
        ) {
            return name;
        }
    }
    if (deep) {
        for (const name of await packagesOf(modules)) {
            const copy = await copyIn(join(modules, name, 'node_modules'), hostSdk, allowed, deep);
            if (copy !== null) {
                return copy;
            }
        }
    }
    return null;
}

async function packagesOf(modules: string): Promise<readonly string[]> {
    const names = await readdir(modules).catch(() => []);
    const nested = await Promise.all(
        names.map(async (name) =>
            name.startsWith('@')
                ? (await readdir(join(modules, name)).catch(() => [])).map((inner) => `${name}/${inner}`)
                : [name]
        )
    );
    return nested.flat();
}

async function isFolder(path: string): Promise<boolean> {
    return (await stat(path).catch(() => null))?.isDirectory() === true;
}

async function markedFile(folder: string): Promise<{ readonly path: string; readonly of: string } | null> {
    const queue = [''];
    let files = 0;
    for (let path = queue.shift(); path !== undefined && files < mostFiles; path = queue.shift()) {
        for (const entry of await readdir(join(folder, path), { withFileTypes: true })) {
            const child = path === '' ? entry.name : `${path}/${entry.name}`;
            if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.')) {
                queue.push(child);
            } else if (entry.isFile() && code.has(extname(entry.name))) {
                files += 1;
                const text = (await readFile(join(folder, child))).subarray(0, searched);
                const mark = marks.find(([value]) => text.includes(value));
                if (mark !== undefined) {
                    return { path: child, of: mark[1] };
                }
            }
        }
    }
    return null;
}
