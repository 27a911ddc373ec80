/** The form of a host: sections by type, checked by the panel while typing. */
import { useMemo, useRef, useState } from 'preact/hooks';

import { useDocument } from '../../../api/document.ts';
import { ApiFailure } from '../../../api/failure.ts';
import { Button } from '../../../kit/button.tsx';
import { useSubmit } from '../../../kit/forms/once.ts';
import { Waiting } from '../../../kit/page.tsx';
import { changed, filled, initialValue } from '../../../schema/changes.ts';
import { isEmpty } from '../../../schema/differences.ts';
import { resolve } from '../../../schema/document.ts';
import { Properties } from '../../../schema/fields.tsx';
import { assertJson, hasRawJson } from '../../../schema/raw-json.ts';
import type { Schema } from '../../../schema/schema.ts';
import { t } from '../../../words/t.ts';
import { fieldsOf, type HostType, hostTypes, pick, type Section, sectionsOf, withWords } from './schema.ts';
import { useValidation, type Verdict } from './use-validation.ts';

type Values = Readonly<Record<string, unknown>>;
type Errors = Readonly<Record<string, string>>;

/** What the form sends: the whole of a new host, or what differs. */
export type SendHost = (body: Values) => Promise<void>;

/** The form. @param host - null for a new one */
export function HostForm({ host, onSend }: { readonly host: Values | null; readonly onSend: SendHost }) {
    const { data, error } = useDocument('hosts');
    const body = data?.paths['/api/hosts']?.['post']?.requestBody?.content['application/json']?.schema;
    const schema = useMemo(
        () => (data === undefined || body === undefined ? null : resolve(data, body)),
        [data, body]
    );
    return schema === null ? (
        <Waiting error={error} />
    ) : (
        <Fields schema={schema} host={host} onSend={onSend} />
    );
}

function Fields({
    schema: raw,
    host,
    onSend
}: {
    readonly schema: Schema;
    readonly host: Values | null;
    readonly onSend: SendHost;
}) {
    const [value, setValue] = useState<Values>(() =>
        host === null ? { upstreams: [{}] } : initialValue(raw, host)
    );
    const [failure, setFailure] = useState<ApiFailure | null>(null);
    const form = useRef<HTMLFormElement>(null);
    const type = (value['type'] ?? 'proxy') as HostType;
    const schema = useMemo(() => withWords(raw, value), [raw, value]);
    const toSend = bodyOf(schema, host, value, type);
    const isUntouched = host === null ? isEmpty(value['domain']) : Object.keys(toSend).length === 0;
    const verdict = useValidation(validatorOf(host), isUntouched || hasRawJson(value) ? null : toSend);
    const errors = failure === null ? whileTyping(verdict, value) : fieldsOfFailure(failure);
    const send = async (): Promise<void> => {
        try {
            assertJson(value);
            await onSend(toSend);
        } catch (refusal) {
            if (!(refusal instanceof ApiFailure)) {
                throw refusal;
            }
            setFailure(refusal);
            setTimeout(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
        }
    };
    const { isBusy, onSubmit } = useSubmit(send);
    const change = (next: Values): void => {
        setFailure(null);
        setValue((before) => ({ ...before, ...next }));
    };
    return (
        <form ref={form} class="host-form" noValidate onSubmit={onSubmit}>
            <div class="card">
                <TypeChoice chosen={type} onChange={(next) => change({ type: next })} />
                <Properties
                    schema={pick(schema, ['domain', 'aliases'])}
                    value={value}
                    errors={errors}
                    onChange={change}
                />
            </div>
            {sectionsOf(type).map((section) => (
                <Part
                    key={section.id}
                    section={section}
                    schema={shownIn(pick(schema, section.fields), value)}
                    value={value}
                    errors={errors}
                    onChange={change}
                />
            ))}
            <footer class="save-bar">
                <Says
                    verdict={failure === null ? verdict : { state: 'bad', failure }}
                    isNew={host === null}
                    isPartial={failure === null && isIncomplete(verdict, errors)}
                />
                <Button look="primary" type="submit" isDisabled={isUntouched} isSending={isBusy}>
                    {host === null ? t('Create the host') : t('Review and save')}
                </Button>
            </footer>
        </form>
    );
}

function TypeChoice({
    chosen,
    onChange
}: {
    readonly chosen: string;
    readonly onChange: (type: HostType) => void;
}) {
    return (
        <fieldset class="tiles">
            <legend class="offscreen">{t('Type')}</legend>
            {hostTypes().map(({ type, title, text }) => (
                <label key={type} class="tile">
                    <input
                        type="radio"
                        name="type"
                        checked={chosen === type}
                        onChange={() => onChange(type)}
                    />
                    <strong>{title}</strong>
                    <small>{text}</small>
                </label>
            ))}
        </fieldset>
    );
}

/** A section. One that holds an error, or has values, says so while it is folded. */
function Part({
    section: { title, fields, isOpen },
    schema,
    value,
    errors,
    onChange
}: {
    readonly section: Section;
    readonly schema: Schema;
    readonly value: Values;
    readonly errors: Errors;
    readonly onChange: (value: Values) => void;
}) {
    const faults = Object.keys(errors).filter((path) => fields.includes(path.split('.')[0] ?? '')).length;
    const set = fields.filter((name) => !isEmpty(withoutEmpty(value[name])) && value[name] !== false).length;
    return (
        <details class="card part" open={isOpen || faults > 0}>
            <summary>
                <h2>{title}</h2>
                {faults > 0 ? (
                    <span class="badge bad">{t('to mend')}</span>
                ) : set > 0 && !isOpen ? (
                    <span class="badge neutral">{t('set')}</span>
                ) : null}
            </summary>
            <div class="stack">
                <Properties schema={schema} value={value} errors={errors} onChange={onChange} />
            </div>
        </details>
    );
}

/** What the panel says of the form. @param isPartial - nothing is wrong with what is there, but something is still missing */
function Says({
    verdict,
    isNew,
    isPartial
}: {
    readonly verdict: Verdict;
    readonly isNew: boolean;
    readonly isPartial: boolean;
}) {
    if (verdict.state === 'bad') {
        const { failure } = verdict;
        const engine = failure.data['engine'];
        const messages = Object.values(failure.fields);
        return (
            <p class={isPartial ? 'dim' : 'failure'} role="status">
                {messages.length === 0 ? failure.message : messages.slice(0, 2).join('; ')}
                {typeof engine === 'string' ? <code>{engine}</code> : null}
            </p>
        );
    }
    const texts = {
        none: isNew ? t('The panel checks what you write as you write it.') : t('Nothing is changed yet'),
        asking: t('Checking …'),
        good: t('The engine takes it.')
    };
    return (
        <p class="dim" role="status">
            {texts[verdict.state]}{' '}
            {verdict.state === 'good'
                ? verdict.reloads
                    ? t('It reloads; connections stay.')
                    : t('It does not need to reload.')
                : ''}
        </p>
    );
}

const validatorOf = (host: Values | null): string =>
    host === null ? '/api/hosts/validate' : `/api/hosts/${String(host['id'])}/validate`;

/** The body of the write: only fields of the type. */
function bodyOf(schema: Schema, host: Values | null, value: Values, type: HostType): Values {
    const fields = fieldsOf(type);
    const own = Object.fromEntries(Object.entries(value).filter(([name]) => fields.has(name)));
    const body = host === null ? filled(own) : changed(schema, host, own);
    return Object.fromEntries(
        Object.entries(body).map(([name, each]) => [
            name,
            Array.isArray(each) ? each.filter((item) => !isEmpty(item)) : each
        ])
    );
}

/** Nothing that is there is wrong, but something is still missing. */
const isIncomplete = (verdict: Verdict, errors: Errors): boolean =>
    verdict.state === 'bad' &&
    verdict.failure.reason === 'VALIDATION_FAILED' &&
    Object.keys(errors).length === 0;

/** Messages by field. The form has a list where the panel speaks of its first entry. */
function fieldsOfFailure({ fields }: ApiFailure): Errors {
    const { upstream, ...others } = fields;
    return upstream === undefined ? fields : { ...others, upstreams: upstream };
}

/** While the user types, a field that is still empty is no error yet. */
function whileTyping(verdict: Verdict, value: Values): Errors {
    if (verdict.state !== 'bad') {
        return {};
    }
    return Object.fromEntries(
        Object.entries(fieldsOfFailure(verdict.failure)).filter(([path]) =>
            // A list has an error of its own, the form of an item not.
            path.split('.').length > 1
                ? !isEmpty(withoutEmpty(value[path.split('.')[0] ?? '']))
                : !isEmpty(value[path])
        )
    );
}

/** Hides what only counts together with another field. */
function shownIn(schema: Schema, value: Values): Schema {
    const hidden = [
        ...(value['ssl'] === true ? [] : ['sslMode', 'certificateId', 'forceHttps', 'hsts']),
        ...(value['sslMode'] === 'certificate' ? [] : ['certificateId'])
    ];
    return pick(
        schema,
        Object.keys(schema.properties ?? {}).filter((name) => !hidden.includes(name))
    );
}

/** A value without parts that say nothing. */
function withoutEmpty(value: unknown): unknown {
    if (Array.isArray(value)) {
        return value.filter((each) => !isEmpty(withoutEmpty(each)));
    }
    return typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).filter(([, each]) => !isEmpty(withoutEmpty(each))))
        : value;
}
