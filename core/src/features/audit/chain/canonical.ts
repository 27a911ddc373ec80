/** JSON as RFC 8785 writes it: one text for one value, so that a hash over it means the value. */

/**
 * The canonical text of plain data: keys in the order of their UTF-16 code units, numbers and strings as ECMAScript writes them.
 * Keys without a value are left out, as JSON leaves them out. The value must be well-formed plain data; `plainChanges` makes it so.
 */
export function canonicalJson(value: unknown): string {
    if (typeof value !== 'object' || value === null) {
        return JSON.stringify(value) ?? 'null';
    }
    if (Array.isArray(value)) {
        return `[${value.map(canonicalJson).join(',')}]`;
    }
    const object = value as Readonly<Record<string, unknown>>;
    const parts: string[] = [];
    for (const key of Object.keys(object).sort()) {
        if (object[key] !== undefined) {
            parts.push(`${JSON.stringify(key)}:${canonicalJson(object[key])}`);
        }
    }
    return `{${parts.join(',')}}`;
}
