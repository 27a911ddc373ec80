/** Go's JSON decoder (package encoding/json) ignores the case of keys, and takes ſ for s and the Kelvin sign for k. */

/** A key as the engine reads it. Rules for keys ask for this spelling: a rule for `dial` also means `DIAL`. */
export function canonicalKey(key: string): string {
    return key.toUpperCase().toLowerCase();
}

/** Whether a key has the spelling in which the engine writes its own keys. */
export function isCanonical(key: string): boolean {
    return /^[a-z][a-z0-9_]*$/.test(key);
}
