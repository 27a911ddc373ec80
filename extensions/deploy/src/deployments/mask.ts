/** Keeps secrets out of logs. */

/** A shorter text is found in too many places that have nothing to do with it. */
const shortest = 4;
const mask = '********';

/** Replaces every secret in a line, also its base64 and its form in an address. */
export class Mask {
    readonly #pattern: RegExp | null;

    constructor(secrets: readonly string[]) {
        const forms = secrets
            .flatMap((secret) => [
                ...secret.split(/\r?\n/),
                encodeURIComponent(secret),
                Buffer.from(secret).toString('base64')
            ])
            .filter((form) => form.length >= shortest)
            .sort((one, other) => other.length - one.length);
        this.#pattern =
            forms.length === 0
                ? null
                : new RegExp([...new Set(forms)].map((form) => escape(form)).join('|'), 'g');
    }

    /** The line without secrets. */
    clean(line: string): string {
        return this.#pattern === null ? line : line.replace(this.#pattern, mask);
    }
}

/** The text as a pattern that matches only itself. */
function escape(text: string): string {
    return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
