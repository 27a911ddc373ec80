/** A list of objects: a card for each, with its fields. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

import { Button } from '../kit/button.tsx';
import { Text } from '../kit/display/text.tsx';
import { Icon } from '../kit/icon.tsx';
import { t } from '../words/t.ts';

type Values = Readonly<Record<string, unknown>>;

/** The cards of a list, and what adds and removes one. */
export function ItemsEntry({
    name,
    title,
    help,
    value,
    errors,
    fields,
    onChange
}: {
    readonly name: string;
    readonly title: string;
    readonly help: string;
    readonly value: unknown;
    readonly errors: Readonly<Record<string, string>>;
    /** The fields of one item. */
    readonly fields: (item: Values, index: number, onChange: (next: Values) => void) => ComponentChildren;
    readonly onChange: (value: unknown) => void;
}) {
    const id = useId();
    const items = Array.isArray(value) ? (value as readonly Values[]) : [];
    const replace = (at: number, next: readonly Values[]): void => onChange(items.toSpliced(at, 1, ...next));
    return (
        <div class="field" role="group" aria-labelledby={id}>
            <span id={id}>{title}</span>
            {help === '' ? null : (
                <small>
                    <Text text={help} />
                </small>
            )}
            <div class="items">
                {items.map((item, index) => (
                    <div key={index} class="item">
                        <div class="item-fields">{fields(item, index, (next) => replace(index, [next]))}</div>
                        <Button
                            look="quiet"
                            label={t('Remove {what} {number}', { what: title, number: index + 1 })}
                            onPress={() => replace(index, [])}
                        >
                            <Icon name="close" />
                        </Button>
                    </div>
                ))}
                <Button onPress={() => onChange([...items, {}])}>
                    <Icon name="plus" />
                    {t('Add')}
                </Button>
            </div>
            {errors[name] === undefined ? null : <em role="alert">{errors[name]}</em>}
        </div>
    );
}
