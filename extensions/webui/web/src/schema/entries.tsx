/** The control of one value, by the kind of its schema. Objects are made of fields, see fields.tsx. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { useListPath } from '../api/document.ts';
import { useRead } from '../api/queries.ts';
import { CodeBox, isCode } from '../kit/forms/code.tsx';
import { t } from '../words/t.ts';
import { RawJson } from './raw-json.ts';
import { type Plain, plain, type Schema } from './schema.ts';
import { Times } from './times.tsx';

/** What every control gets. */
export interface EntryProps {
    readonly name: string;
    readonly title: string;
    readonly schema: Schema;
    readonly shape: Plain;
    readonly value: unknown;
    /** The values of all fields beside this one. */
    readonly among: Readonly<Record<string, unknown>>;
    readonly isRequired: boolean;
    readonly errors: Readonly<Record<string, string>>;
    readonly id: string;
    readonly describedBy: string;
    readonly onChange: (value: unknown) => void;
}

/** Shows the control that suits the schema of one field. */
export function Entry(props: EntryProps): JSX.Element {
    const { kind, schema } = props.shape;
    if (schema['x-ui']?.widget === 'cron') {
        return (
            <>
                <TextEntry {...props} />
                <Times {...props} />
            </>
        );
    }
    switch (kind) {
        case 'boolean':
            return <BooleanEntry {...props} />;
        case 'choice':
            return <ChoiceEntry {...props} />;
        case 'lines':
            return isCode(schema.contentMediaType) ? <CodeEntry {...props} /> : <LinesEntry {...props} />;
        case 'texts':
            return <TextsEntry {...props} />;
        case 'map':
            return <MapEntry {...props} />;
        case 'json':
            return <JsonEntry {...props} />;
        default:
            return schema['x-ui']?.ref === undefined ? (
                <TextEntry {...props} />
            ) : (
                <ReferenceEntry {...props} />
            );
    }
}

/** Names of files, hosts and accounts stay as they are typed, also on a phone. */
const verbatim = { autocapitalize: 'none', spellcheck: false } as const;
const asWritten: Readonly<Record<string, object>> = {
    path: verbatim,
    account: verbatim,
    host: { ...verbatim, inputMode: 'url' }
};

function TextEntry({ id, describedBy, shape, value, isRequired, onChange, errors, name }: EntryProps) {
    const { schema, kind } = shape;
    const isSecret = kind === 'secret';
    const isKept = isSecret && (value as { set?: unknown } | null)?.set === true;
    const isNumber = kind === 'number';
    const { widget = '' } = schema['x-ui'] ?? {};
    return (
        <input
            id={id}
            {...asWritten[widget]}
            type={isSecret ? 'password' : isNumber ? 'number' : 'text'}
            autocomplete={isSecret ? 'new-password' : 'off'}
            aria-describedby={describedBy}
            aria-invalid={errors[name] !== undefined}
            required={isRequired}
            placeholder={isKept ? t('is set; leave it empty to keep it') : placeholderOf(schema)}
            value={isKept || value === null || value === undefined ? '' : String(value)}
            {...(isNumber
                ? { min: schema.minimum, max: schema.maximum, step: schema.type === 'integer' ? 1 : 'any' }
                : {})}
            onInput={({ currentTarget: { value: text } }) =>
                onChange(text === '' ? undefined : isNumber ? Number(text) : text)
            }
        />
    );
}

function BooleanEntry({ id, describedBy, shape, value, onChange }: EntryProps) {
    return (
        <input
            id={id}
            type="checkbox"
            aria-describedby={describedBy}
            checked={(value ?? shape.schema.default) === true}
            onChange={(event) => onChange(event.currentTarget.checked)}
        />
    );
}

function ChoiceEntry({ id, describedBy, shape, value, isRequired, onChange, errors, name }: EntryProps) {
    const present = value ?? shape.schema.default;
    return (
        <select
            id={id}
            aria-describedby={describedBy}
            aria-invalid={errors[name] !== undefined}
            value={present === undefined ? '' : String(present)}
            onChange={({ currentTarget: { value: text } }) =>
                onChange(shape.choices.find((each) => String(each.value) === text)?.value)
            }
        >
            {isRequired && present !== undefined ? null : <option value="">{t('not set')}</option>}
            {shape.choices.map((each) => (
                <option key={String(each.value)} value={String(each.value)}>
                    {t(each.title)}
                </option>
            ))}
        </select>
    );
}

/** The id of an item of another list. Where that list cannot be read, the id itself is entered. */
function ReferenceEntry(props: EntryProps) {
    const { path, isPending } = useListPath(props.shape.schema['x-ui']?.ref);
    const { data, error } = useRead<readonly Record<string, unknown>[]>(path);
    if (isPending || (path !== null && data === undefined && error === null)) {
        return (
            <select id={props.id} aria-describedby={props.describedBy} aria-busy="true" disabled>
                <option>{t('Loading …')}</option>
            </select>
        );
    }
    if (data === undefined || error !== null) {
        return <TextEntry {...props} />;
    }
    const { id, describedBy, value, onChange, shape, errors, name } = props;
    const isNumber = shape.kind === 'number';
    return (
        <select
            id={id}
            aria-describedby={describedBy}
            aria-invalid={errors[name] !== undefined}
            value={value === null || value === undefined ? '' : String(value)}
            onChange={({ currentTarget: { value: text } }) =>
                onChange(text === '' ? undefined : isNumber ? Number(text) : text)
            }
        >
            <option value="">{t('not set')}</option>
            {data.map((row) => (
                <option key={keyOf(row)} value={keyOf(row)}>
                    {titleOf(row)}
                </option>
            ))}
        </select>
    );
}

function CodeEntry({ id, title, describedBy, value, onChange, shape, errors, name }: EntryProps) {
    return (
        <CodeBox
            id={id}
            label={title}
            media={shape.schema.contentMediaType ?? ''}
            describedBy={describedBy}
            isInvalid={errors[name] !== undefined}
            initial={value === null || value === undefined ? '' : String(value)}
            onChange={(text) => onChange(text === '' ? undefined : text)}
        />
    );
}

function LinesEntry({ id, describedBy, value, onChange, shape, errors, name }: EntryProps) {
    return (
        <textarea
            id={id}
            aria-describedby={describedBy}
            aria-invalid={errors[name] !== undefined}
            rows={6}
            spellcheck={false}
            placeholder={placeholderOf(shape.schema)}
            value={value === null || value === undefined ? '' : String(value)}
            onInput={(event) => onChange(event.currentTarget.value)}
        />
    );
}

/** A list of texts or numbers: one a line. */
function TextsEntry({ id, describedBy, value, onChange, shape, errors, name }: EntryProps) {
    const isNumber = plain(shape.schema.items ?? {}).kind === 'number';
    const [text, setText] = useState(Array.isArray(value) ? value.join('\n') : '');
    const take = (next: string): void => {
        setText(next);
        const lines = next.split('\n').filter((line) => line.trim() !== '');
        onChange(isNumber ? lines.map(Number) : lines);
    };
    return (
        <>
            <textarea
                id={id}
                aria-describedby={describedBy}
                aria-invalid={errors[name] !== undefined}
                rows={Math.min(Math.max(text.split('\n').length, 2), 8)}
                spellcheck={false}
                value={text}
                onInput={(event) => take(event.currentTarget.value)}
            />
            <small>{t('One on each line')}</small>
            <Suggestions
                of={shape.schema['x-ui']?.ref}
                onChoose={(each) => take(text === '' ? each : `${text.trimEnd()}\n${each}`)}
            />
        </>
    );
}

/** Adds an item of another list; nothing where there is no list that can be read. */
function Suggestions({
    of,
    onChoose
}: {
    readonly of: string | undefined;
    readonly onChoose: (value: string) => void;
}) {
    const { data } = useRead<readonly Record<string, unknown>[]>(useListPath(of).path);
    return data === undefined || data.length === 0 ? null : (
        <select
            aria-label={t('Add')}
            value=""
            onChange={({ currentTarget }) => {
                onChoose(currentTarget.value);
                currentTarget.value = '';
            }}
        >
            <option value="">{t('Add')}…</option>
            {data.map((row) => (
                <option key={keyOf(row)} value={keyOf(row)}>
                    {String(row['title'] ?? titleOf(row))}
                </option>
            ))}
        </select>
    );
}

function keyOf(row: Readonly<Record<string, unknown>>): string {
    return String(row['id'] ?? row['name']);
}

function titleOf(row: Readonly<Record<string, unknown>>): string {
    return String(row['name'] ?? row['domain'] ?? row['username'] ?? row['id']);
}

/** Names with values: `NAME=value` on each line; a value that is not shown is `NAME=***`. */
function MapEntry({ id, describedBy, value, onChange, errors, name }: EntryProps) {
    const kept = '***';
    const [text, setText] = useState(
        Object.entries((value ?? {}) as Record<string, unknown>)
            .map(([key, each]) => `${key}=${typeof each === 'string' ? each : kept}`)
            .join('\n')
    );
    const take = (next: string): void => {
        setText(next);
        const pairs = next
            .split('\n')
            .filter((line) => line.trim() !== '')
            .map((line) => [line.split('=', 1)[0]?.trim() ?? '', line.slice(line.indexOf('=') + 1)] as const);
        onChange(Object.fromEntries(pairs.map(([key, each]) => [key, each === kept ? { set: true } : each])));
    };
    return (
        <>
            <textarea
                id={id}
                aria-describedby={describedBy}
                aria-invalid={errors[name] !== undefined}
                rows={3}
                spellcheck={false}
                value={text}
                onInput={(event) => take(event.currentTarget.value)}
            />
            <small>{t('NAME=value on each line')}</small>
        </>
    );
}

/** What no other kind can hold, as JSON in the editor. */
function JsonEntry({ id, title, describedBy, value, onChange, errors, name }: EntryProps) {
    const isWrong = value instanceof RawJson;
    return (
        <>
            <CodeBox
                id={id}
                label={title}
                media="application/json"
                describedBy={describedBy}
                isInvalid={isWrong || errors[name] !== undefined}
                initial={isWrong ? value.text : value === undefined ? '' : JSON.stringify(value, null, 2)}
                onChange={(text) => onChange(parsed(text))}
            />
            <small role="status">{isWrong ? t('This is not JSON') : t('As JSON')}</small>
        </>
    );
}

function parsed(text: string): unknown {
    try {
        return text.trim() === '' ? undefined : JSON.parse(text);
    } catch {
        return new RawJson(text);
    }
}

function placeholderOf({ default: preset, examples }: Schema): string {
    if (preset !== undefined && preset !== null && typeof preset !== 'object') {
        return String(preset);
    }
    return examples?.[0] === undefined ? '' : String(examples[0]);
}
