/** Turns foreign compose files into documents of apps: paths of their machines become volumes, and what cannot be is named. */
import { isMap, isScalar, parseDocument, stringify, visit } from 'yaml';

import { isTree, readTree, type Tree } from '../../catalogue/yaml.ts';
import { fail } from '../../errors.ts';

/** Reads YAML that is a mapping. @throws IMPORT_UNSUPPORTED 42256 */
export function readYaml(text: string, name: string): Tree {
    const read = readTree(text);
    if ('fault' in read) {
        throw fail.IMPORT_UNSUPPORTED({ why: `${name}: ${read.fault}`, keys: [name] });
    }
    return read.tree;
}

/** Reads JSON that is a mapping. @throws IMPORT_UNSUPPORTED 42256 */
export function readJson(text: string, name: string): Tree {
    try {
        const data: unknown = JSON.parse(text);
        if (isTree(data)) {
            return data;
        }
    } catch {
        // Said below.
    }
    throw fail.IMPORT_UNSUPPORTED({ why: `${name} is no JSON object`, keys: [name] });
}

/** A text of a tree; empty where there is none. */
export const textAt = (tree: Tree, key: string): string => {
    const value = tree[key];
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
};

/** Turns sources of mounts into named volumes, and keeps what cannot be turned. */
export class Volumes {
    readonly #prefixes: readonly RegExp[];
    readonly #names = new Map<string, string>();
    readonly #taken = new Set<string>();
    readonly unsupported: string[] = [];

    /** @param prefixes - how paths in the app's own folder begin on the foreign machine */
    constructor(prefixes: readonly RegExp[]) {
        this.#prefixes = prefixes;
    }

    /** A mount as compose writes it in short, with a volume in place of a path. */
    mount(source: string, rest: string): string {
        return `${this.nameOf(source)}:${rest}`;
    }

    /** The volume of a path; the source itself where it is a volume's name already. */
    nameOf(source: string): string {
        const prefix = this.#prefixes.find((each) => each.test(source));
        if (prefix === undefined) {
            if (!/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(source)) {
                this.unsupported.push(`volumes: ${source}`);
            } else {
                this.#taken.add(source);
            }
            return source;
        }
        const path = source.replace(prefix, '').replace(/^\/+|\/+$/g, '');
        const known = this.#names.get(path);
        if (known !== undefined) {
            return known;
        }
        const plain =
            path
                .toLowerCase()
                .replace(/[^a-z0-9]+/g, '-')
                .replace(/^-|-$/g, '') || 'data';
        let name = plain;
        for (let count = 2; this.#taken.has(name); count += 1) {
            name = `${plain}-${count}`;
        }
        this.#taken.add(name);
        this.#names.set(path, name);
        return name;
    }

    /** What the compose file declares. */
    declared(): Tree {
        return Object.fromEntries([...this.#taken].map((name) => [name, {}]));
    }
}

/** Replaces variables in every scalar of a tree; keys stay. */
export function replaceVariables(tree: Tree, replacements: Readonly<Record<string, string>>): Tree {
    const document = parseDocument(stringify(tree));
    visit(document, {
        Scalar(key, node) {
            if (key !== 'key' && isScalar(node) && typeof node.value === 'string') {
                node.value = node.value.replace(
                    /\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?::?-[^}]*)?\}|([A-Za-z_][A-Za-z0-9_]*))/g,
                    (whole, braced: string | undefined, plain: string | undefined) => {
                        const name = braced ?? plain ?? '';
                        return Object.hasOwn(replacements, name) ? (replacements[name] ?? '') : whole;
                    }
                );
            }
        }
    });
    return isMap(document.contents) ? (document.toJS() as Tree) : tree;
}

/** Writes a compose file. */
export const writeCompose = (tree: Tree): string =>
    stringify(tree, { aliasDuplicateObjects: false, lineWidth: 0 });

/** An id out of any name. */
export const idOf = (name: string): string =>
    name
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .replace(/^-+|-+$/g, '')
        .slice(0, 63);
