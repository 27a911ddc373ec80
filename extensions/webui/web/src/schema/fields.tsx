/** The fields of an object: each with its label, help and error, in groups, the advanced ones folded. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

import { Text } from '../kit/display/text.tsx';
import { t } from '../words/t.ts';
import { Entry as Control } from './entries.tsx';
import { ItemsEntry } from './items.tsx';
import { isWritable, plain, type Schema, titleOf } from './schema.ts';

type Values = Readonly<Record<string, unknown>>;
type Entry = readonly [string, Schema];

/** In a form with more properties than this, compound ones are folded away unless the schema says otherwise. */
const longForm = 10;
const compound: ReadonlySet<string> = new Set(['object', 'list', 'map', 'json']);

interface FieldProps {
    readonly name: string;
    readonly title: string;
    readonly schema: Schema;
    readonly value: unknown;
    /** The values of all fields beside this one. */
    readonly among: Values;
    readonly isRequired: boolean;
    readonly errors: Readonly<Record<string, string>>;
    readonly onChange: (value: unknown) => void;
}

/** The fields of an object. */
export function Properties({
    schema,
    value,
    errors,
    onChange
}: {
    readonly schema: Schema;
    readonly value: Values;
    readonly errors: Readonly<Record<string, string>>;
    readonly onChange: (value: Record<string, unknown>) => void;
}) {
    const all = Object.entries(schema.properties ?? {}).filter(([, each]) => isWritable(each));
    const isRequired = (key: string): boolean => schema.required?.includes(key) === true;
    const field = ([key, each]: Entry) => (
        <Field
            key={key}
            name={key}
            title={titleOf(key, each)}
            schema={each}
            value={value[key]}
            among={value}
            isRequired={isRequired(key)}
            errors={errors}
            onChange={(next) => onChange({ ...value, [key]: next })}
        />
    );
    const isLong = all.length > longForm;
    const isFolded = ([key, each]: Entry): boolean =>
        each['x-ui']?.advanced ?? (isLong && !isRequired(key) && compound.has(plain(each).kind));
    const advanced = all.filter(isFolded);
    const shown = all.filter((entry) => !advanced.includes(entry));
    const first = shown.toSorted(([left], [right]) => Number(isRequired(right)) - Number(isRequired(left)));
    return (
        <>
            {grouped(first, field)}
            {advanced.length === 0 ? null : (
                <details open={advanced.some(([key]) => hasError(errors, key))}>
                    <summary>{t('Advanced')}</summary>
                    {grouped(advanced, field)}
                </details>
            )}
        </>
    );
}

function Field(props: FieldProps) {
    const { name, title, schema, isRequired, errors } = props;
    const shape = plain(schema);
    const id = useId();
    const error = errors[name];
    const help = [shape.schema.description, unitOf(shape.schema)].filter(Boolean).join(' · ');
    if (shape.kind === 'object') {
        return (
            <fieldset>
                <legend>{title}</legend>
                {help === '' ? null : (
                    <small>
                        <Text text={help} />
                    </small>
                )}
                <ObjectEntry {...props} schema={shape.schema} />
            </fieldset>
        );
    }
    if (shape.kind === 'list') {
        return (
            <ItemsEntry
                {...props}
                help={help}
                fields={(item, index, onChange) => (
                    <Properties
                        schema={shape.schema.items ?? {}}
                        value={item}
                        errors={errorsBelow(errors, `${name}.${index}`)}
                        onChange={onChange}
                    />
                )}
            />
        );
    }
    const entry = <Control {...props} shape={shape} id={id} describedBy={`${id}-help ${id}-error`} />;
    return (
        <div class={`field ${shape.kind === 'boolean' ? 'inline' : ''}`}>
            <label for={id}>
                {title}
                {isRequired ? null : <span class="dim"> {t('optional')}</span>}
            </label>
            {entry}
            {help === '' ? null : (
                <small id={`${id}-help`}>
                    <Text text={help} />
                </small>
            )}
            {error === undefined ? null : (
                <em id={`${id}-error`} role="alert">
                    {error}
                </em>
            )}
        </div>
    );
}

function ObjectEntry({ name, schema, value, onChange, errors }: FieldProps) {
    const present = (value ?? {}) as Record<string, unknown>;
    return (
        <Properties
            schema={schema}
            value={present}
            errors={errorsBelow(errors, name)}
            onChange={(next) =>
                onChange(Object.values(next).every((each) => each === undefined) ? undefined : next)
            }
        />
    );
}

/** The errors of what lies below a field, by their path from there. */
export function errorsBelow(
    errors: Readonly<Record<string, string>>,
    name: string
): Readonly<Record<string, string>> {
    return Object.fromEntries(
        Object.entries(errors)
            .filter(([path]) => path.startsWith(`${name}.`))
            .map(([path, text]) => [path.slice(name.length + 1), text])
    );
}

function grouped(entries: readonly Entry[], field: (entry: Entry) => ComponentChildren): ComponentChildren {
    const groups = Map.groupBy(entries, ([, each]) => each['x-ui']?.group ?? '');
    return [...groups].map(([group, members]) =>
        group === '' ? (
            members.map(field)
        ) : (
            <fieldset key={group}>
                <legend>{group}</legend>
                {members.map(field)}
            </fieldset>
        )
    );
}

const hasError = (errors: Readonly<Record<string, string>>, key: string): boolean =>
    Object.keys(errors).some((path) => path === key || path.startsWith(`${key}.`));

/** Units that are counted; others, such as percent, have one form. */
const counted = new Set(['byte', 'millisecond', 'second', 'minute', 'hour', 'day', 'token']);

function unitOf({ 'x-unit': unit }: Schema): string | undefined {
    return unit === undefined
        ? undefined
        : t('in {unit}', { unit: t(counted.has(unit) ? `${unit}s` : unit) });
}
