/** Every permission, and which of the fixed roles have it. Those of the core are listed here; those of a plugin come with its manifest. */

/** The roles that cannot be changed. */
export const fixedRoles = ['viewer', 'operator', 'admin'] as const;
/** The name of a role that cannot be changed. */
export type FixedRole = (typeof fixedRoles)[number];

/** A permission as it is declared. */
export interface Permission {
    /** `<area>:<verb>`. */
    readonly name: string;
    /** What it allows, in words for an admin. */
    readonly title: string;
    /** The fixed roles that have it; `admin` always does. */
    readonly roles: readonly FixedRole[];
    /** What it allows can give away the panel or the machine: a tool gets it only when an admin names its routes one by one. */
    readonly dangerous?: boolean;
}

/** A permission with the plugin that declared it; null for the core's own. */
export interface KnownPermission extends Permission {
    readonly plugin: string | null;
}

const everyRole: readonly FixedRole[] = ['viewer', 'operator', 'admin'];
const operators: readonly FixedRole[] = ['operator', 'admin'];
const admins: readonly FixedRole[] = ['admin'];

/** The permissions of the core. A viewer reads, except what can hold a secret; an operator does the daily work; only an admin has the rest. */
export const corePermissions: readonly Permission[] = [
    { name: 'hosts:read', title: 'See hosts', roles: everyRole },
    { name: 'hosts:write', title: 'Create, change and remove hosts', roles: operators },
    {
        name: 'hosts:unsafe',
        title: 'Set what lets a host reach the services of the machine itself',
        roles: admins,
        dangerous: true
    },
    { name: 'certificates:read', title: 'See certificates', roles: everyRole },
    { name: 'certificates:write', title: 'Add, renew and remove certificates', roles: operators },
    { name: 'certificates:secrets', title: 'Download the private keys of certificates', roles: admins },
    { name: 'dns:read', title: 'See DNS providers', roles: everyRole },
    { name: 'dns:write', title: 'Add, change and remove DNS providers', roles: admins },
    { name: 'users:read', title: 'See users and roles', roles: everyRole },
    {
        name: 'users:write',
        title: 'Create, change and remove users and roles',
        roles: admins,
        dangerous: true
    },
    { name: 'audit:read', title: 'Read the audit log', roles: everyRole },
    { name: 'settings:read', title: 'See settings', roles: everyRole },
    { name: 'settings:write', title: 'Change settings', roles: admins, dangerous: true },
    { name: 'engine:read', title: 'See the state of the proxy engine', roles: everyRole },
    {
        name: 'engine:control',
        title: 'Start, stop and reload the proxy engine, and restore revisions',
        roles: operators
    },
    { name: 'engine:logs', title: 'Read the log of the proxy engine', roles: operators },
    { name: 'engine:secrets', title: 'See the configuration of the proxy engine unmasked', roles: admins },
    { name: 'export:run', title: 'Export the panel', roles: admins },
    { name: 'import:run', title: 'Import into the panel', roles: admins, dangerous: true },
    { name: 'plugins:read', title: 'See plugins', roles: everyRole },
    { name: 'plugins:manage', title: 'Install, configure and remove plugins', roles: admins, dangerous: true }
];

const form = /^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$/;

/** All permissions that exist now. */
export class Permissions {
    readonly #known = new Map<string, KnownPermission>(
        corePermissions.map((permission) => [permission.name, { ...permission, plugin: null }])
    );
    readonly #listeners: (() => void)[] = [];
    readonly #cached = new Map<FixedRole, readonly string[]>();

    /** All permissions, sorted by name. */
    all(): readonly KnownPermission[] {
        return [...this.#known.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    }

    /** Whether a permission is marked as dangerous. */
    isDangerous(name: string): boolean {
        return this.#known.get(name)?.dangerous === true;
    }

    /** The sorted names of the permissions of a fixed role; the admin has all. */
    of(role: FixedRole): readonly string[] {
        let names = this.#cached.get(role);
        if (names === undefined) {
            names = Object.freeze(
                this.all()
                    .filter((permission) => role === 'admin' || permission.roles.includes(role))
                    .map(({ name }) => name)
            );
            this.#cached.set(role, names);
        }
        return names;
    }

    /**
     * Adds the permissions of a plugin, in place of those that it added before. Returns how to remove them.
     *
     * @throws TypeError for a malformed name, or a name that the core or another plugin has
     */
    register(plugin: string, permissions: readonly Permission[]): () => void {
        for (const { name } of permissions) {
            const other = this.#known.get(name);
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
        this.#drop(plugin);
        permissions.forEach((permission) => this.#known.set(permission.name, { ...permission, plugin }));
        this.#changed();
        return () => {
            this.#drop(plugin);
            this.#changed();
        };
    }

    /** Calls back after every change. */
    onChange(listener: () => void): void {
        this.#listeners.push(listener);
    }

    #drop(plugin: string): void {
        for (const permission of [...this.#known.values()]) {
            if (permission.plugin === plugin) {
                this.#known.delete(permission.name);
            }
        }
    }

    #changed(): void {
        this.#cached.clear();
        this.#listeners.forEach((listener) => listener());
    }
}
