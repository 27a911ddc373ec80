/** Parameters that routes share, and pages of lists. */
import { errors, joi, type PageQuery, pages, type Reply, reply } from '@portico/sdk';

import { isReservedLabel } from '../spec/spec.ts';

/** Path parameters of a container. */
export const containerParams = joi.object({
    id: joi
        .string()
        .max(128)
        .required()
        .label('Container')
        .description('Its id, or its name')
        .meta({ ui: { ref: 'container.containers' } })
});
/** Path parameters of a stack. */
export const stackParams = joi.object({
    name: joi
        .string()
        .max(128)
        .required()
        .label('Stack')
        .meta({ ui: { ref: 'container.stacks' } })
});
/** Path parameters of an image. */
export const imageParams = joi.object({
    id: joi
        .string()
        .max(300)
        .pattern(/^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_.:/@-]*$/, 'an id or a name')
        .required()
        .meta({ anyText: true })
        .label('Image')
        .meta({ ui: { ref: 'container.images' } })
});
/** Path parameters of a volume. */
export const volumeParams = joi.object({
    name: joi
        .string()
        .max(255)
        .required()
        .label('Volume')
        .meta({ ui: { ref: 'container.volumes' } })
});

/** A name for a container. */
export const containerName = joi
    .string()
    .pattern(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$/, 'letters, digits, _ . and -')
    .label('Name');
/** A name for a network or a volume. */
export const resourceName = joi
    .string()
    .pattern(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$/, 'letters, digits, _ . and -')
    .required()
    .label('Name');
/** Labels by name, as a field of a body. */
export const labelMap = joi.record(joi.string().allow('').max(10_000));

/** Labels of something new. */
export const labels = labelMap
    .default({})
    .label('Labels')
    .meta({ ui: { advanced: true } });

/** @throws VALIDATION_FAILED 40001 for a label that says what belongs to which stack */
export function checkLabels(given: Readonly<Record<string, string>>): void {
    const reserved = Object.keys(given).find(isReservedLabel);
    if (reserved !== undefined) {
        throw errors.invalid([
            { path: `labels.${reserved}`, message: 'This label is set by the panel alone' }
        ]);
    }
}

/** Query parameters of a list. */
export const paging = {
    q: joi.string().max(200).label('Search').description('Part of a name'),
    ...pages.query()
};

/** One page of a whole list: the rows whose key has `q` in it, sorted by their keys. */
export function pageOf<T>(
    all: readonly T[],
    { q, ...query }: PageQuery & { readonly q?: string | undefined },
    keyOf: (row: T) => string
): Reply<T[]> {
    const wanted = q?.toLowerCase();
    const matching =
        wanted === undefined ? all : all.filter((row) => keyOf(row).toLowerCase().includes(wanted));
    const { rows, page } = pages.sorted(matching, query, keyOf);
    return reply.list([...rows], page);
}
