import { Value } from '../../kit/display/value.tsx';
import { isEmpty } from '../../schema/differences.ts';
import { type Schema, titleOf } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

type Row = Readonly<Record<string, unknown>>;

/** The properties of an object, the compound ones last; those without a value are only named. */
export function Facts({ row, schema }: { readonly row: Row; readonly schema: Schema }) {
    const schemaOf = (key: string): Schema => schema.properties?.[key] ?? {};
    const entries = Object.entries(row).filter(([key]) => schemaOf(key)['x-ui']?.widget !== 'hidden');
    const filled = entries.filter(([, value]) => !isEmpty(value));
    const namesOf = (some: readonly (readonly [string, unknown])[]): string =>
        some.map(([key]) => titleOf(key, schemaOf(key))).join(', ');
    const none = entries.filter(([, value]) => Array.isArray(value) && isEmpty(value));
    const unset = entries.filter(([, value]) => !Array.isArray(value) && isEmpty(value));
    const ordered = filled.toSorted(
        ([, left], [, right]) => Number(isCompound(left)) - Number(isCompound(right))
    );
    return (
        <>
            <dl class="facts">
                {ordered.map(([key, value]) => (
                    <div key={key} class={isCompound(value) ? 'long' : ''}>
                        <dt title={schemaOf(key).description}>{titleOf(key, schemaOf(key))}</dt>
                        <dd>
                            <Value name={key} value={value} schema={schemaOf(key)} />
                        </dd>
                    </div>
                ))}
            </dl>
            {none.length === 0 ? null : <small>{t('None: {names}', { names: namesOf(none) })}</small>}
            {unset.length === 0 ? null : <small>{t('Not set: {names}', { names: namesOf(unset) })}</small>}
        </>
    );
}

const isCompound = (value: unknown): boolean => typeof value === 'object' && value !== null;
