/** Every permission that there is, and which of the fixed roles have it. The core's own stand here; a plugin's come with its manifest. */

/** The roles that nobody can change. */
export const fixedRoles = ['viewer', 'operator', 'admin'] as const;
export type FixedRole = (typeof fixedRoles)[number];

export interface Permission {
    /** `<area>:<verb>`. */
    readonly name: string;
    /** What it lets one do, as an admin reads it. */
    readonly title: string;
    /** The fixed roles that have it; `admin` always does. */
    readonly roles: readonly FixedRole[];
}

/** A permission with the plugin that declared it; null for the core's own. */
export interface KnownPermission extends Permission {
    readonly plugin: string | null;
}

export interface Permissions {
    /** All, by name. */
    all(): readonly KnownPermission[];
    /** The names that a fixed role has, in order; the admin's are all there are. */
    of(role: FixedRole): readonly string[];
    /**
     * Adds a plugin's permissions, and replaces those that it added before. Returns how to take them away.
     * @throws TypeError for a malformed name, or one that somebody else has declared
     */
    register(plugin: string, permissions: readonly Permission[]): () => void;
    /** Calls back after every change of the catalogue. */
    onChange(listener: () => void): void;
}

const everybody: readonly FixedRole[] = ['viewer', 'operator', 'admin'];
const operators: readonly FixedRole[] = ['operator', 'admin'];
const admins: readonly FixedRole[] = ['admin'];

/** A viewer reads, but nothing that can hold a secret; an operator does the day's work; the rest is an admin's. */
export const corePermissions: readonly Permission[] = [
    { name: 'hosts:read', title: 'See hosts', roles: everybody },
    { name: 'hosts:write', title: 'Create, change and remove hosts', roles: operators },
    {
        name: 'hosts:unsafe',
        title: 'Set what lets a host reach the services of the machine itself',
        roles: admins
    },
    { name: 'certificates:read', title: 'See certificates', roles: everybody },
    { name: 'certificates:write', title: 'Add, renew and remove certificates', roles: operators },
    { name: 'certificates:secrets', title: 'Download the private keys of certificates', roles: admins },
    { name: 'dns:read', title: 'See DNS providers', roles: everybody },
    { name: 'dns:write', title: 'Add, change and remove DNS providers', roles: admins },
    { name: 'users:read', title: 'See users and roles', roles: everybody },
    { name: 'users:write', title: 'Create, change and remove users and roles', roles: admins },
    { name: 'audit:read', title: 'Read the audit log', roles: everybody },
    { name: 'settings:read', title: 'See settings', roles: everybody },
    { name: 'settings:write', title: 'Change settings', roles: admins },
    { name: 'engine:read', title: 'See the state of the proxy engine', roles: everybody },
    {
        name: 'engine:control',
        title: 'Start, stop and reload the proxy engine, and restore revisions',
        roles: operators
    },
    { name: 'engine:logs', title: 'Read the log of the proxy engine', roles: operators },
    { name: 'engine:secrets', title: 'See the configuration of the proxy engine unmasked', roles: admins },
    { name: 'export:run', title: 'Export the panel', roles: admins },
    { name: 'import:run', title: 'Import into the panel', roles: admins },
    { name: 'plugins:read', title: 'See plugins', roles: everybody },
    { name: 'plugins:manage', title: 'Install, configure and remove plugins', roles: admins }
];

const form = /^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$/;

/** A catalogue with the core's own permissions in it. */
export function createPermissions(): Permissions {
    const known = new Map<string, KnownPermission>(
        corePermissions.map((permission) => [permission.name, { ...permission, plugin: null }])
    );
    const listeners: (() => void)[] = [];
    const cached = new Map<FixedRole, readonly string[]>();
    const changed = (): void => {
        cached.clear();
        listeners.forEach((listener) => listener());
    };
    const drop = (plugin: string): void => {
        for (const permission of [...known.values()]) {
            if (permission.plugin === plugin) {
                known.delete(permission.name);
            }
        }
    };
    return {
        all: () => [...known.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
        of(role) {
            let names = cached.get(role);
            if (names === undefined) {
                names = Object.freeze(
                    [...known.values()]
                        .filter((permission) => role === 'admin' || permission.roles.includes(role))
                        .map(({ name }) => name)
                        .sort()
                );
                cached.set(role, names);
            }
            return names;
        },
        register(plugin, permissions) {
            for (const { name } of permissions) {
                const other = known.get(name);
                if (!form.test(name)) {
                    throw new TypeError(
                        `${plugin} declares the permission ${JSON.stringify(name)}, which is not of the form area:verb`
                    );
                }
                if (other !== undefined && other.plugin !== plugin) {
                    throw new TypeError(
                        `${plugin} declares the permission ${name}, which ${other.plugin ?? 'the core'} has already`
                    );
                }
            }
            drop(plugin);
            permissions.forEach((permission) => known.set(permission.name, { ...permission, plugin }));
            changed();
            return () => {
                drop(plugin);
                changed();
            };
        },
        onChange: (listener) => void listeners.push(listener)
    };
}
