/** A user in an export: the public fields, and the secrets that lie in the sealed box. */
import { joi, type Value } from '@portico/sdk';

import type { Reading } from '../../../engine/section.ts';
import { faultsOf } from '../../../platform/validation.ts';
import { usernameKey } from '../accounts/accounts.ts';
import { usernamePattern } from '../schema.ts';

const shape = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required(),
    username: joi.string().pattern(usernamePattern, 'user name').required(),
    role: joi.string().max(64).required(),
    disabled: joi.boolean().required(),
    mustChangePassword: joi.boolean().required(),
    totpEnabled: joi.boolean().required(),
    createdAt: joi.string().isoDate().required(),
    updatedAt: joi.string().isoDate().required(),
    lastLoginAt: joi.string().isoDate().allow(null).required()
});
/** The public fields of a user. */
export type Written = Value<typeof shape>;

const secretShape = joi.object({
    // A bound on the cost: every login computes this hash.
    passwordHash: joi
        .string()
        .pattern(/^\$argon2id\$v=19\$m=\d{4,6},t=\d{1,2},p=\d\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{22,86}$/)
        .max(256)
        .required(),
    secondFactor: joi
        .object({
            secret: joi
                .string()
                .pattern(/^[A-Z2-7]+=*$/)
                .min(16)
                .max(128)
                .required(),
            lastStep: joi.number().integer().min(0).required(),
            salt: joi
                .string()
                .pattern(/^[A-Za-z0-9_-]{43}$/)
                .allow(null)
                .required(),
            recoveryCodes: joi
                .array()
                .items(joi.string().pattern(/^[A-Za-z0-9_-]{43}$/))
                .max(10)
                .required()
        })
        .allow(null)
        .required()
});
/** The secrets of a user. */
export type Secret = Value<typeof secretShape>;

/** KiB that a hash may use. */
const mostMemory = 262_144;

/** A user of a document. */
export interface ReadUser {
    /** Its index in the document. */
    readonly at: number;
    /** Its {@link usernameKey}. */
    readonly key: string;
    readonly written: Written;
    /** Null when the document has no secrets of the user. */
    readonly secret: Secret | null;
}

/** Reads one user. Adds every fault, and returns null when the public fields have one. */
export function readUser(value: unknown, at: number, { path, faults, secrets }: Reading): ReadUser | null {
    const own = `${path}.${at}`;
    const written = checked<Written>(shape, value, own, faults);
    if (written === null) {
        return null;
    }
    const sealed = secrets?.json(written.username);
    const secret =
        sealed === undefined ? null : checked<Secret>(secretShape, sealed, `${own}.secret`, faults);
    const [, memory = '0', passes = '0', lanes = '0'] =
        /m=(\d+),t=(\d+),p=(\d+)/.exec(secret?.passwordHash ?? '') ?? [];
    if (Number(memory) > mostMemory || Number(passes) > 16 || Number(lanes) > 4) {
        faults.add(own, `the password hash of ${written.username} costs more than a login may`);
    }
    return { at, key: usernameKey(written.username), written, secret };
}

function checked<T>(
    schema: Parameters<typeof faultsOf>[0],
    value: unknown,
    path: string,
    faults: Reading['faults']
): T | null {
    const found = faultsOf(schema, value, path);
    found.forEach((fault) => faults.add(fault.path, fault.message));
    return found.length === 0 ? (value as T) : null;
}
