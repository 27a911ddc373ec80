/** What one writer knows of the panel: every acknowledged object, as the panel must show it. */
import { isDeepStrictEqual } from 'node:util';

export type Fields = Readonly<Record<string, unknown>>;
export type Kind = 'hosts' | 'users' | 'tokens' | 'certificates' | 'settings';

/** The fields that the panel must show of each object, by kind and name. */
export type World = Readonly<Record<Kind, ReadonlyMap<string, Fields>>>;

export const kinds: readonly Kind[] = ['hosts', 'users', 'tokens', 'certificates', 'settings'];

/** Of each kind: the field with the object's name, and the fields that change without a write of the object. */
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

/** An answered object without the fields that change by themselves. */
export function lasting(kind: Kind, object: Fields): Fields {
    return Object.fromEntries(
        Object.entries(object).filter(([field]) => !shapes[kind].volatile.includes(field))
    );
}

/** The name under which a world holds an object. */
export function nameOf(kind: Kind, object: Fields): string {
    return String(object[shapes[kind].name]);
}

/** The world with some objects added, or removed where they are null. */
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

/** Lists the differences between what is there and what was expected. Only expected fields count. */
export function differences(expected: World, actual: World): string[] {
    return kinds.flatMap((kind) => {
        const names = new Set([...expected[kind].keys(), ...actual[kind].keys()]);
        return [...names].flatMap((name) => {
            const [wanted, found] = [expected[kind].get(name), actual[kind].get(name)];
            if (wanted === undefined || found === undefined) {
                return [
                    `${kind} ${name} is ${wanted === undefined ? 'there, although no answer said so' : 'not there'}`
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
