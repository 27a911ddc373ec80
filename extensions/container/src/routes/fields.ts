/** Parameters that routes share, and pages of lists. */
import { joi, type PageQuery, pages, type Reply, reply } from '@portico/sdk';

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
/** A name for a container. */
export const containerName = joi
    .string()
    .pattern(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$/, 'letters, digits, _ . and -')
    .label('Name');
/** Labels by name. */
export const labelMap = joi.record(joi.string().allow('').max(10_000));

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
