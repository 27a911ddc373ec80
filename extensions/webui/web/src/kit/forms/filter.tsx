/** Filters that live in the address, so that a filtered list can be kept and sent. */
import { useEffect, useState } from 'preact/hooks';
import { useSearchParams } from 'wouter-preact';

import { t } from '../../words/t.ts';

const pauseMs = 200;

/** Reads and sets a part of the address's query. */
export function useQueryValue(name: string): readonly [string, (value: string) => void] {
    const [search, setSearch] = useSearchParams();
    const set = (value: string): void => {
        const next = new URLSearchParams(search);
        if (value === '') {
            next.delete(name);
        } else {
            next.set(name, value);
        }
        setSearch(next, { replace: true });
    };
    return [search.get(name) ?? '', set];
}

/** A choice of one value. */
export function FilterChoice({
    name,
    title,
    values,
    words = {}
}: {
    readonly name: string;
    readonly title: string;
    readonly values: readonly string[];
    /** What values are called, where the value is no word. */
    readonly words?: Readonly<Record<string, string>>;
}) {
    const [value, set] = useQueryValue(name);
    return (
        <label class="filter">
            <span>{title}</span>
            <select value={value} onChange={(event) => set(event.currentTarget.value)}>
                <option value="">{t('all')}</option>
                {values.map((each) => (
                    <option key={each} value={each}>
                        {words[each] ?? t(each)}
                    </option>
                ))}
            </select>
        </label>
    );
}

/** A text that is searched a moment after the last letter. */
export function FilterText({ name, title }: { readonly name: string; readonly title: string }) {
    const [value, set] = useQueryValue(name);
    const [text, setText] = useState(value);
    useEffect(() => {
        const timer = setTimeout(() => text === value || set(text), pauseMs);
        return () => clearTimeout(timer);
    }, [text]);
    useEffect(() => setText(value), [value]);
    return (
        <label class="filter">
            <span>{title}</span>
            <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
    );
}
