/** What one writer knows of the panel: everything that was acknowledged to it, as it must be read back. */
import { isDeepStrictEqual } from 'node:util';

export type Fields = Readonly<Record<string, unknown>>;
export type Kind = 'hosts' | 'users' | 'tokens' | 'certificates' | 'settings';

/** By kind and name: the fields that a reading must show. */
export type World = Readonly<Record<Kind, ReadonlyMap<string, Fields>>>;

export const kinds: readonly Kind[] = ['hosts', 'users', 'tokens', 'certificates', 'settings'];

/** The field that names an object of a kind, and those that change without a write of the object itself. */
const shapes: Readonly<Record<Kind, { readonly name: string; readonly volatile: readonly string[] }>> = {
    hosts: { name: 'domain', volatile: ['state', 'stateMessage'] },
    users: { name: 'username', volatile: ['lastLoginAt'] },
    tokens: { name: 'name', volatile: ['lastUsedAt', 'token'] },
    certificates: { name: 'name', volatile: ['usedBy'] },
    settings: {
        name: 'key',
        volatile: ['default', 'source', 'type', 'unit', 'description', 'secret', 'restart']
    }
};

export const emptyWorld: World = {
    hosts: new Map(),
    users: new Map(),
    tokens: new Map(),
    certificates: new Map(),
    settings: new Map()
};

/** An object as it was answered, without what changes by itself. */
export function lasting(kind: Kind, object: Fields): Fields {
    return Object.fromEntries(
        Object.entries(object).filter(([field]) => !shapes[kind].volatile.includes(field))
    );
}

/** The name under which a world holds an object. */
export function nameOf(kind: Kind, object: Fields): string {
    return String(object[shapes[kind].name]);
}

/** The world with some objects put in or, as null, taken away. */
export function withObjects(
    world: World,
    kind: Kind,
    changes: Iterable<readonly [string, Fields | null]>
): World {
    const objects = new Map(world[kind]);
    for (const [name, object] of changes) {
        if (object === null) {
            objects.delete(name);
        } else {
            objects.set(name, object);
        }
    }
    return { ...world, [kind]: objects };
}

/** Where what is there is not what was expected; only expected fields count. */
export function differences(expected: World, actual: World): string[] {
    return kinds.flatMap((kind) => {
        const names = new Set([...expected[kind].keys(), ...actual[kind].keys()]);
        return [...names].flatMap((name) => {
            const [wanted, found] = [expected[kind].get(name), actual[kind].get(name)];
            if (wanted === undefined || found === undefined) {
                return [
                    `${kind} ${name} is ${wanted === undefined ? 'there, and nobody was told so' : 'not there'}`
                ];
            }
            return Object.entries(wanted)
                .filter(([field, value]) => !isDeepStrictEqual(found[field], value))
                .map(
                    ([field, value]) =>
                        `${kind} ${name}: ${field} is ${JSON.stringify(found[field])}, expected ${JSON.stringify(value)}`
                );
        });
    });
}
