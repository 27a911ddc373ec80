/** The filters of a list, from the parameters of its query. */
import { plain, type Schema, titleOf } from '../schema/schema.ts';
import { t } from '../words/t.ts';
import type { Parameter } from './operations.ts';

/** What is chosen, by the parameter's name. */
export type FilterValues = Readonly<Record<string, string>>;

const notFilters = new Set(['limit', 'cursor', 'sort']);
const most = 4;

/** One control for each filter that a page can show. */
export function Filters({
    list,
    query,
    values,
    onChange
}: {
    /** Name of the list: a page may have several. */
    readonly list: string;
    readonly query: readonly Parameter[];
    readonly values: FilterValues;
    readonly onChange: (values: FilterValues) => void;
}) {
    const shown = query.filter(({ name }) => !notFilters.has(name)).slice(0, most);
    if (shown.length === 0) {
        return <span />;
    }
    return (
        <div class="row filters" role="search" aria-label={list}>
            {shown.map(({ name, schema }) => (
                <Filter
                    key={name}
                    title={name === 'q' ? t('Search') : titleOf(name, schema)}
                    schema={schema}
                    value={values[name] ?? ''}
                    onChange={(value) => {
                        const { [name]: _before, ...others } = values;
                        onChange(value === '' ? others : { ...others, [name]: value });
                    }}
                />
            ))}
        </div>
    );
}

function Filter({
    title,
    schema,
    value,
    onChange
}: {
    readonly title: string;
    readonly schema: Schema;
    readonly value: string;
    readonly onChange: (value: string) => void;
}) {
    const { kind, choices } = plain(schema);
    const options = kind === 'boolean' ? ['true', 'false'] : choices.map((each) => String(each.value));
    return (
        <label class="filter">
            <span>{title}</span>
            {options.length > 0 ? (
                <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
                    <option value="">{t('all')}</option>
                    {options.map((each) => (
                        <option key={each} value={each}>
                            {each === 'true' ? t('Yes') : each === 'false' ? t('No') : t(each)}
                        </option>
                    ))}
                </select>
            ) : (
                <input
                    type="search"
                    value={value}
                    onChange={(event) => onChange(event.currentTarget.value)}
                />
            )}
        </label>
    );
}
