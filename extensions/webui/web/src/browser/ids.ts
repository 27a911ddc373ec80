/** A random id. `crypto.randomUUID` is absent on plain HTTP, where the panel is first opened. */
export function randomId(): string {
    return [...crypto.getRandomValues(new Uint8Array(16))]
        .map((byte) => byte.toString(16).padStart(2, '0'))
        .join('');
}
