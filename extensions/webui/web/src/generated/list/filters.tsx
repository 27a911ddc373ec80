/** The filters of a list, from the parameters of its query. They live in the address, below the id of the list: a page may have several. */
import { useSearchParams } from 'wouter-preact';

import { FilterChoice, FilterText } from '../../kit/forms/filter.tsx';
import { plain, titleOf } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';
import type { Operation, Parameter } from '../operations.ts';

const notFilters = new Set(['limit', 'cursor', 'sort']);
const most = 4;

const filtersOf = ({ query }: Operation): readonly Parameter[] =>
    query.filter(({ name }) => !notFilters.has(name)).slice(0, most);
const placeOf = ({ id }: Operation, { name }: Parameter): string => `${id}.${name}`;

/** What is chosen, by the parameter's name. */
export function useFilters(list: Operation): Readonly<Record<string, string>> {
    const [search] = useSearchParams();
    return Object.fromEntries(
        filtersOf(list)
            .map((each) => [each.name, search.get(placeOf(list, each)) ?? ''] as const)
            .filter(([, value]) => value !== '')
    );
}

/** One control for each filter that a page can show. */
export function Filters({ list }: { readonly list: Operation }) {
    const shown = filtersOf(list);
    if (shown.length === 0) {
        return <span />;
    }
    return (
        <div class="row filters" role="search" aria-label={list.title}>
            {shown.map((each) => (
                <Filter key={each.name} place={placeOf(list, each)} parameter={each} />
            ))}
        </div>
    );
}

function Filter({
    place,
    parameter: { name, schema }
}: {
    readonly place: string;
    readonly parameter: Parameter;
}) {
    const { kind, choices } = plain(schema);
    const title = name === 'q' ? t('Search') : titleOf(name, schema);
    const words: readonly (readonly [string, string])[] =
        kind === 'boolean'
            ? [
                  ['true', t('Yes')],
                  ['false', t('No')]
              ]
            : choices.map((each) => [String(each.value), t(each.title)]);
    return words.length === 0 ? (
        <FilterText name={place} title={title} />
    ) : (
        <FilterChoice
            name={place}
            title={title}
            values={words.map(([value]) => value)}
            words={Object.fromEntries(words)}
        />
    );
}
