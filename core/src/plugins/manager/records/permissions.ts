/** The permissions that a plugin's manifest declares. */
import type { PluginPackage } from '@portico/registry';

/** A permission as the role catalogue takes it. */
export interface DeclaredPermission {
    readonly name: string;
    readonly title: string;
    readonly roles: readonly ('viewer' | 'operator' | 'admin')[];
    readonly dangerous?: boolean;
}

/** All fixed roles get `read`; other permissions belong to admins, and to the roles that the manifest names. */
export function permissionsOf({ manifest, title }: PluginPackage): readonly DeclaredPermission[] {
    const { read, ...others } = {
        read: `See what ${title} has`,
        write: `Change what ${title} has`,
        ...manifest.permissions
    };
    const declared = { read: { title: String(read), roles: ['viewer', 'operator'] as const }, ...others };
    return Object.entries(declared).map(([verb, said]) => ({
        name: `${manifest.name}:${verb}`,
        ...(typeof said === 'string'
            ? { title: said, roles: ['admin'] }
            : {
                  title: said.title,
                  roles: [...said.roles, 'admin'],
                  ...('dangerous' in said && said.dangerous === true ? { dangerous: true } : {})
              })
    }));
}
