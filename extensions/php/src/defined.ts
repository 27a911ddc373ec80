/** Objects without the keys whose values are undefined. */

/** A copy without these keys: what a request left out stays out of what is merged. */
export function definedOf<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
    const entries = Object.entries(values).filter(([, value]) => value !== undefined);
    return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
