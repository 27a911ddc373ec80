/** The index of a signed catalogue. */
import { joi, type Value } from '@portico/sdk';

import { fail } from '../errors.ts';
import { architectures, firstFault, id, relativePath, sha256, texts, version } from './fields.ts';

/** Most bytes of an index. */
export const mostIndexBytes = 16 * 1_048_576;
/** Most apps of an index. */
export const mostApps = 5_000;

/** A project template: what `deploy` is told to make. */
export const templateSchema = joi.object({
    id: id.required(),
    title: texts(200).required(),
    description: texts(5_000).default({}),
    project: joi.typed<Readonly<Record<string, unknown>>>(joi.object({}).unknown().max(50).required())
});

const indexSchema = joi.object({
    format: joi.valid('portico-apps').required(),
    formatVersion: joi.valid(1).required(),
    name: joi.string().max(200).required(),
    sequence: joi.number().integer().min(0).required(),
    expiresAt: joi.string().isoDate().required(),
    nextKey: joi.string().max(200),
    categories: joi
        .array()
        .items(joi.object({ id: id.required(), title: texts(200).required() }))
        .max(200)
        .default([]),
    apps: joi
        .array()
        .items(
            joi.object({
                id: id.required(),
                version: version.required(),
                title: texts(200).required(),
                tagline: texts(500).required(),
                categories: joi.array().items(id).max(20).default([]),
                architectures: architectures.default([]),
                path: relativePath.required(),
                sha256: sha256.required(),
                icon: joi.object({ path: relativePath.required(), sha256: sha256.required() })
            })
        )
        .max(mostApps)
        .required(),
    templates: joi.array().items(templateSchema).max(500).default([])
});

/** An index of a catalogue whose form was checked. */
export type CatalogueIndex = Value<typeof indexSchema>;
/** One app of an index. */
export type IndexApp = CatalogueIndex['apps'][number];
/** A template of an index. */
export type Template = CatalogueIndex['templates'][number];

/** Reads an index whose signature was verified. @throws INDEX_INVALID 42250 with the first fault */
export function readIndex(text: string): CatalogueIndex {
    let data: unknown;
    try {
        data = JSON.parse(text);
    } catch {
        throw fail.INDEX_INVALID({ why: 'it is no JSON' });
    }
    const { error, value } = indexSchema.required().validate(data, { stripUnknown: { objects: true } });
    if (error !== undefined) {
        throw fail.INDEX_INVALID({ why: firstFault(error) });
    }
    const index = value as CatalogueIndex;
    const seen = new Set<string>();
    for (const { id: app } of index.apps) {
        if (seen.has(app)) {
            throw fail.INDEX_INVALID({ why: `the app ${app} stands there twice` });
        }
        seen.add(app);
    }
    return index;
}
