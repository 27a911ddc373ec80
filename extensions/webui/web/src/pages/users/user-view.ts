/** A user as `GET /api/users` shows it. */
export interface UserView {
    readonly id: number;
    readonly username: string;
    readonly role: string;
    readonly disabled: boolean;
    readonly totpEnabled: boolean;
    readonly mustChangePassword: boolean;
    readonly lastLoginAt: string | null;
    readonly version: number;
}

/** A role as `GET /api/users/roles` shows it. */
export interface RoleView {
    readonly name: string;
    readonly description: string;
    /** It is one of the panel's own and cannot be changed. */
    readonly fixed: boolean;
    readonly permissions: readonly string[];
    readonly version: number;
}

/** A permission as `GET /api/users/permissions` shows it. */
export interface PermissionView {
    readonly name: string;
    readonly title: string;
    readonly plugin: string | null;
    readonly dangerous: boolean;
}
