import { isEmpty } from '../../schema/differences.ts';
import { plain, type Schema, titleOf, type Tone } from '../../schema/schema.ts';
import { fullTime, quantity, relativeTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';

const usual: Readonly<Record<string, Tone>> = {
    ...words('good', 'ok running applied healthy enabled succeeded success valid active done issued up'),
    ...words('busy', 'starting pending queued updating running-task issuing waiting loading upgrading'),
    ...words('warning', 'degraded warning stale partial expiring'),
    ...words('bad', 'failed error unhealthy down expired crashed refused quarantined bad failure denied'),
    ...words('neutral', 'disabled stopped cancelled unknown off none')
};

/** A state with its colour; the word itself is always there. */
export function Badge({ text, tone }: { readonly text: string; readonly tone?: Tone | undefined }) {
    return <span class={`badge ${tone ?? usual[text.toLowerCase()] ?? 'neutral'}`}>{t(text)}</span>;
}

/** Rows of a table beyond these are counted only; an object that is larger is shown as JSON. */
const mostRows = 50;
const mostColumns = 8;
const mostFields = 16;
const mostDepth = 3;
/** A number with this bound, or with such a name, is a port, which is no amount: it is written without separators. */
const highestPort = 65_535;
const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const stateNames = /(state|status|health|outcome|result)$/i;

/** A value as its schema says to show it. @param name - of its property: only a state has the usual colours */
export function Value({
    value,
    schema,
    name = ''
}: {
    readonly value: unknown;
    readonly schema: Schema;
    readonly name?: string;
}) {
    if (value === null || value === undefined || value === '') {
        return <span class="dim">–</span>;
    }
    const { schema: inner, choices } = plain(schema);
    if (typeof value === 'boolean') {
        return <span class={value ? '' : 'dim'}>{value ? t('Yes') : t('No')}</span>;
    }
    if (typeof value === 'string' && (inner.format === 'date-time' || timestamp.test(value))) {
        return (
            <time dateTime={value} title={fullTime(value)}>
                {relativeTime(value)}
            </time>
        );
    }
    if (choices.length > 1 && typeof value !== 'object') {
        const title = choices.find((each) => each.value === value)?.title ?? String(value);
        const usualTone = stateNames.test(name) ? usual[String(value)] : undefined;
        return <Badge text={title} tone={inner['x-ui']?.tones?.[String(value)] ?? usualTone ?? 'neutral'} />;
    }
    if (typeof value === 'number') {
        const isPort = inner.maximum === highestPort || /port$/i.test(name);
        return <span class="number">{isPort ? value : quantity(value, inner['x-unit'])}</span>;
    }
    return typeof value === 'object' ? (
        <Compound value={value} schema={inner} />
    ) : (
        <span class={String(value).includes('\n') ? 'written' : ''}>{String(value)}</span>
    );
}

function Compound({ value, schema }: { readonly value: object; readonly schema: Schema }) {
    if (Array.isArray(value)) {
        return value.every((each) => typeof each !== 'object' || each === null) ? (
            <Texts values={value} schema={schema} />
        ) : value.every(isRecord) ? (
            <Rows rows={value} schema={plain(schema.items ?? {}).schema} />
        ) : (
            <Json value={value} />
        );
    }
    if ((value as { set?: unknown }).set === true) {
        return <span class="dim">{t('is set')}</span>;
    }
    const entries = Object.entries(value);
    if (entries.length > mostFields || depthOf(value) > mostDepth) {
        return <Json value={value} />;
    }
    const unset = entries.filter(([, each]) => isEmpty(each));
    return (
        <>
            <dl class="facts small">
                {entries
                    .filter(([, each]) => !isEmpty(each))
                    .map(([key, each]) => (
                        <div key={key} class={typeof each === 'object' && each !== null ? 'long' : ''}>
                            <dt>{titleOf(key, schema.properties?.[key] ?? {})}</dt>
                            <dd>
                                <Value name={key} value={each} schema={schema.properties?.[key] ?? {}} />
                            </dd>
                        </div>
                    ))}
            </dl>
            {unset.length === 0 ? null : (
                <small>
                    {t('Not set: {names}', {
                        names: unset.map(([key]) => titleOf(key, schema.properties?.[key] ?? {})).join(', ')
                    })}
                </small>
            )}
        </>
    );
}

type Row = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Row =>
    typeof value === 'object' && value !== null && !Array.isArray(value) && depthOf(value) === 1;

/** How many objects lie in each other. */
function depthOf(value: unknown): number {
    return typeof value === 'object' && value !== null
        ? 1 + Math.max(0, ...Object.values(value).map(depthOf))
        : 0;
}

/** Objects of plain values as a table: what each of them has is a column. */
function Rows({ rows, schema }: { readonly rows: readonly Row[]; readonly schema: Schema }) {
    const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))]
        .filter((key) => rows.some((row) => row[key] !== null && row[key] !== ''))
        .slice(0, mostColumns);
    const schemaOf = (key: string): Schema => schema.properties?.[key] ?? {};
    return (
        <div class="rows" tabIndex={0}>
            <table>
                <thead>
                    <tr>
                        {keys.map((key) => (
                            <th key={key} scope="col">
                                {titleOf(key, schemaOf(key))}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {rows.slice(0, mostRows).map((row, index) => (
                        <tr key={index}>
                            {keys.map((key) => (
                                <td key={key} data-title={titleOf(key, schemaOf(key))}>
                                    <Value name={key} value={row[key]} schema={schemaOf(key)} />
                                </td>
                            ))}
                        </tr>
                    ))}
                </tbody>
            </table>
            {rows.length <= mostRows ? null : (
                <small>{t('and {count} more', { count: rows.length - mostRows })}</small>
            )}
        </div>
    );
}

function Texts({ values, schema }: { readonly values: readonly unknown[]; readonly schema: Schema }) {
    const isTime = plain(schema.items ?? {}).schema.format === 'date-time';
    return (
        <span>
            {values.length === 0
                ? '–'
                : values.map((each) => (isTime ? fullTime(String(each)) : String(each))).join(', ')}
        </span>
    );
}

/** A value as JSON, for what has no other form. */
export function Json({ value }: { readonly value: unknown }) {
    return (
        <pre class="json" tabIndex={0}>
            {JSON.stringify(value, null, 2)}
        </pre>
    );
}

function words(tone: Tone, text: string): Record<string, Tone> {
    return Object.fromEntries(text.split(' ').map((word) => [word, tone]));
}
