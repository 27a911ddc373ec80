/** The schemas of users and roles. */
import { joi } from '@portico/sdk';

/** The form of a user name. ASCII only, so that two names that look the same are the same. */
export const usernamePattern = /^[A-Za-z0-9][A-Za-z0-9._@-]{2,63}$/;
/** The form of the name of a role. */
export const roleNamePattern = /^[a-z][a-z0-9-]{1,31}$/;
/** The form of the name of a permission. */
export const permissionPattern = /^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$/;

const username = joi
    .string()
    .pattern(
        usernamePattern,
        'user name: 3 to 64 ASCII letters, digits and . _ @ -, the first a letter or digit'
    );
const password = joi.secret().max(1024, 'utf8');
const role = joi.string().max(32);
const time = joi.string().isoDate();
const ignored = joi.any().description('Read only; ignored in a write');
const readOnly = {
    id: ignored,
    totpEnabled: ignored,
    lastLoginAt: ignored,
    createdAt: ignored,
    updatedAt: ignored
};
const version = joi.number().integer().min(0).description('Acts as If-Match');

/** The path of a user. */
export const userId = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required()
});

/** The query of the list of users. */
export const userQuery = joi.object({
    q: joi.string().max(64).description('Part of the user name'),
    role,
    disabled: joi.boolean(),
    limit: joi.number().integer().min(1).max(500).default(100),
    cursor: joi.string().max(64)
});

/** The body of `POST /api/users`. */
export const newUser = joi.object({
    username: username.required(),
    password: password.required(),
    role: role.required(),
    disabled: joi.boolean(),
    mustChangePassword: joi.boolean(),
    version,
    ...readOnly
});

/** A change of a user. */
export const changedUser = joi.object({
    username,
    password,
    role,
    disabled: joi.boolean(),
    mustChangePassword: joi.boolean(),
    version,
    ...readOnly
});

/** A user as the API shows it, without password and second factor. */
export const user = joi.object({
    id: joi.number().integer().required(),
    username: joi.string().required(),
    role: joi.string().required(),
    disabled: joi.boolean().required(),
    totpEnabled: joi.boolean().required(),
    mustChangePassword: joi.boolean().required(),
    lastLoginAt: time.allow(null).required(),
    createdAt: time.required(),
    updatedAt: time.required(),
    version: joi.number().integer().required()
});

/** The path of a role. */
export const roleName = joi.object({
    name: joi
        .string()
        .pattern(/^[a-z][a-z0-9-]{0,31}$/)
        .required()
});

const description = joi.string().max(500).allow('');
const permissions = joi
    .array()
    .items(joi.string().pattern(permissionPattern, 'permission, as hosts:read'))
    .max(1000);
const readOnlyOfRole = { fixed: ignored, createdAt: ignored, updatedAt: ignored };

/** The body of `POST /api/roles`: a role beside the fixed ones. */
export const newRole = joi.object({
    name: joi
        .string()
        .pattern(roleNamePattern, 'role name: 2 to 32 of a-z, 0-9 and -, the first a letter')
        .required(),
    description,
    permissions,
    version,
    ...readOnlyOfRole
});

/** A change of a role. */
export const changedRole = joi.object({
    name: ignored,
    description,
    permissions,
    version,
    ...readOnlyOfRole
});

/** A role as the API shows it; `createdAt` is null for the fixed ones. */
export const roleView = joi.object({
    name: joi.string().required(),
    description: joi.string().allow('').required(),
    fixed: joi.boolean().required(),
    permissions: joi.array().items(joi.string()).required(),
    version: joi.number().integer().required(),
    createdAt: time.allow(null).required(),
    updatedAt: time.allow(null).required()
});

/** A permission as the API shows it; `plugin` is null for those of the core. */
export const permissionView = joi.object({
    name: joi.string().required(),
    title: joi.string().required(),
    roles: joi.array().items(joi.string()).required(),
    plugin: joi.string().allow(null).required(),
    dangerous: joi
        .boolean()
        .required()
        .description('Can give away the panel or the machine: no assistant gets it by a pattern')
});
