/** Headers of requests that the plugin sends, whose values are sealed and never read back. */
import { joi } from '@portico/sdk';

/** The schema of a header's value in a body: a text, or `{ set: true }` for the one that is stored. */
export const headerValue = joi.alternatives(
    joi
        .string()
        .pattern(/^[\t\x20-\x7e\x80-\xff]*$/, 'value of a header')
        .max(8_192)
        .allow(''),
    joi.object({ set: joi.valid(true).required() })
);

/** Headers by name, or in a body `{ set: true }` for a value that is kept. */
type Given = Readonly<Record<string, string | { readonly set: true }>>;
type Headers = Readonly<Record<string, string>>;

/** Headers that say how the request goes over the wire. */
const ownHeaders = /^(connection|content-length|expect|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;

/**
 * Reads the headers of a body.
 *
 * @param before - those that are stored, which the body can keep
 * @param path - where they lie in the body
 */
export function readHeaders(
    given: Given,
    before: Headers,
    path: string
): { readonly headers: Headers; readonly problems: readonly { path: string; message: string }[] } {
    const headers: Record<string, string> = {};
    const problems: { path: string; message: string }[] = [];
    for (const [name, value] of Object.entries(given)) {
        const known = typeof value === 'string' ? value : before[name];
        if (known === undefined || !headerName.test(name) || ownHeaders.test(name)) {
            problems.push({
                path: `${path}.${name}`,
                message:
                    known === undefined
                        ? `There is no stored value of the header ${name}`
                        : `The header ${name} cannot be set`
            });
        } else {
            headers[name] = known;
        }
    }
    return { headers, problems };
}

/** Headers as answers show them. */
export function maskHeaders(headers: Headers): Record<string, { set: true }> {
    return Object.fromEntries(Object.keys(headers).map((name) => [name, { set: true as const }]));
}
