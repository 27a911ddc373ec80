/** The filters of the list of hosts. */
import { Button } from '../../kit/button.tsx';
import { FilterChoice, FilterText, useQueryValue } from '../../kit/forms/filter.tsx';
import { t } from '../../words/t.ts';

/** Shows the filters of the list of hosts; the address keeps them. */
export function HostFilters() {
    const [tag, setTag] = useQueryValue('tag');
    return (
        <div class="row filters" role="search">
            <FilterText name="q" title={t('Search')} />
            <FilterChoice name="type" title={t('Type')} values={['proxy', 'redirect', 'static', 'php']} />
            <FilterChoice
                name="state"
                title={t('State')}
                values={['applied', 'pending', 'error', 'disabled']}
            />
            {tag === '' ? null : (
                <Button look="quiet" onPress={() => setTag('')}>
                    {t('Tag {tag}: show all', { tag })}
                </Button>
            )}
        </div>
    );
}
