/** The envelope of a document: what it is known by, which versions are read, and what is refused whole. */
import { joi, type Value } from '@portico/sdk';

import { fail, invalid } from '../../../platform/errors.ts';
import { faultsOf } from '../../../platform/validation.ts';
import { sealedShape } from './vault.ts';

/** The field `format` of every document. */
export const format = 'portico-export';
/** The version of the format in which this panel writes documents. */
export const formatVersion = 1;

const shape = joi.object({
    format: joi.string().valid(format).required(),
    formatVersion: joi.number().valid(formatVersion).required(),
    createdAt: joi.string().isoDate().required(),
    generator: joi.string().max(100).description('What wrote it, with its version'),
    sections: joi.record(joi.any()).required(),
    notes: joi.array().items(joi.string().max(2_000)).max(1_000).description('What is not in it, and why'),
    secrets: sealedShape
});
/** An export document whose form was checked. */
export type ExportDocument = Value<typeof shape>;

/** Brings a document of one version to the next. */
export type Migration = (document: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>;

/** By the version that they begin with. What is sealed is bound to the text around it: a version that seals is opened before it is brought on. */
const migrations: ReadonlyMap<number, Migration> = new Map();

/**
 * Reads the envelope. Each section is read by the feature that it belongs to.
 * @throws BAD_REQUEST for what is no document of ours or of a version that is not known; VALIDATION_FAILED for a damaged one
 */
export function readDocument(
    value: Readonly<Record<string, unknown>>,
    known: ReadonlySet<string>,
    table: ReadonlyMap<number, Migration> = migrations
): ExportDocument {
    const { format: found, formatVersion: version } = value;
    if (found !== format) {
        throw fail.BAD_REQUEST(
            { format: typeof found === 'string' ? found.slice(0, 64) : null },
            { message: `The document is none of Portico: its format is not "${format}"` }
        );
    }
    if (
        !Number.isSafeInteger(version) ||
        (version as number) < 0 ||
        ((version as number) !== formatVersion && !table.has(version as number))
    ) {
        const newer = typeof version === 'number' && version > formatVersion;
        throw fail.BAD_REQUEST(
            {
                formatVersion: typeof version === 'number' ? version : null,
                readable: [...table.keys(), formatVersion]
            },
            {
                message: newer
                    ? `The document has the format version ${version}, and this version of Portico reads up to ${formatVersion}: upgrade first`
                    : "The document's format version is not known"
            }
        );
    }
    let document = value;
    for (let at = version as number; at !== formatVersion; at += 1) {
        document = table.get(at)?.(document) ?? document;
    }
    const wrong = faultsOf(shape, document, 'document');
    if (wrong.length > 0) {
        throw invalid(...wrong);
    }
    const unknown = Object.keys((document as ExportDocument).sections).filter((name) => !known.has(name));
    if (unknown.length > 0) {
        throw invalid(
            ...unknown.map((name) => ({
                path: `document.sections.${name}`,
                message: `There is no section ${name}`
            }))
        );
    }
    return document as ExportDocument;
}
