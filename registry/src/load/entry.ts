/** Which file of a package is imported, by the rules that Node has for `exports` and `main`. */
import { realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';

/** @param conditions - beside `node`, `import` and `default`. Answers a real path inside the folder; null when there is none. */
export async function entryOf(
    folder: string,
    packageJson: unknown,
    conditions: readonly string[]
): Promise<string | null> {
    const { exports, main } = (packageJson ?? {}) as { exports?: unknown; main?: unknown };
    const known = new Set([...conditions, 'node', 'node-addons', 'import', 'module-sync', 'default']);
    const target =
        exports === undefined || exports === null ? mainOf(main) : targetOf(rootOf(exports), known);
    if (target === null || !target.startsWith('./')) {
        return null;
    }
    const real = await realpath(join(folder, target)).catch(() => null);
    return real !== null && real.startsWith(folder + sep) && (await stat(real)).isFile() ? real : null;
}

function mainOf(main: unknown): string {
    const path = typeof main === 'string' && main !== '' ? main : 'index.js';
    return path.startsWith('./') ? path : `./${path}`;
}

/** What `exports` says of the package itself. */
function rootOf(exports: unknown): unknown {
    return typeof exports === 'object' && exports !== null && Object.hasOwn(exports, '.')
        ? (exports as Readonly<Record<string, unknown>>)['.']
        : exports;
}

function targetOf(value: unknown, known: ReadonlySet<string>): string | null {
    if (typeof value === 'string') {
        return value;
    }
    if (Array.isArray(value)) {
        return value.map((each) => targetOf(each, known)).find((each) => each !== null) ?? null;
    }
    if (typeof value === 'object' && value !== null) {
        return (
            Object.entries(value)
                .filter(([condition]) => known.has(condition))
                .map(([, inner]) => targetOf(inner, known))
                .find((each) => each !== null) ?? null
        );
    }
    return null;
}
