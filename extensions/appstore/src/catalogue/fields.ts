/** Shapes that the documents of a catalogue share. */
import { joi } from '@portico/sdk';

import type { Texts } from './texts.ts';

/** Ids of apps, categories and templates. */
export const idPattern = /^[a-z0-9][a-z0-9-]{0,62}$/;
/** A SHA-256, as the index writes it. */
export const sha256 = joi.string().pattern(/^[0-9a-f]{64}$/, 'a SHA-256 in small hex digits');
/** A digest of an image. */
export const digest = joi.string().pattern(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 small hex digits');
/** Architectures, as container images call them. */
export const architectures = joi
    .array()
    .items(joi.string().pattern(/^[a-z0-9]{2,20}$/, 'an architecture such as amd64'))
    .max(20);
/** The id of an app, source or category: small letters, digits and `-`. */
export const id = joi.string().pattern(idPattern, 'small letters, digits and -');
/** A version: of semver, or any short word. */
export const version = joi.string().pattern(/^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$/, 'a version such as 1.4.2');
/** Texts by language, each of at most so many characters. */
export const texts = (most: number) =>
    joi.typed<Texts>(
        joi
            .object({})
            .pattern(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, joi.string().allow('').max(most))
            .max(100)
    );
/** A path below the index: no parent, no root, no scheme, nothing that is decoded later. */
export const relativePath = joi
    .string()
    .max(500)
    .pattern(
        /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))[A-Za-z0-9._~+@-]+(?:\/[A-Za-z0-9._~+@-]+)*$/,
        'a path below the index'
    );

/** The first fault of a document, with its place. */
export const firstFault = ({ details }: ValidationError): string =>
    details.map(({ path, message }) => `${path.join('.')}: ${message}`)[0] ?? 'it has another form';

interface ValidationError {
    readonly details: readonly { readonly path: readonly (string | number)[]; readonly message: string }[];
}
