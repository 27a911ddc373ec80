/** What a body of an export must be beyond its shape. */
import { errors, joi } from '@portico/sdk';

import { readHeaders } from '../headers.ts';
import { parseSeriesName } from '../sampling/metrics.ts';
import { type NewExport, newExport } from './schema.ts';

/** The fields of an export, with the values of its headers. */
export interface ExportFields {
    readonly type: NewExport['type'];
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly metrics: readonly string[];
    readonly intervalSeconds: number;
    readonly labels: Readonly<Record<string, string>>;
    readonly enabled: boolean;
}

/** The names that Prometheus allows; those with two underscores in front are its own. */
const labelName = /^(?!__)[A-Za-z_][A-Za-z0-9_]{0,99}$/;

/** The fields of a body. @param before - those of the stored export @throws VALIDATION_FAILED 40001 */
export function fieldsOf(input: NewExport, before: ExportFields | null): ExportFields {
    const { type, url, metrics, intervalSeconds, labels, enabled } = input;
    const { headers, problems } = readHeaders(input.headers, before?.headers ?? {}, 'headers');
    const parsed = URL.parse(url);
    const all = [
        ...problems,
        ...(parsed === null || parsed.hostname === ''
            ? [{ path: 'url', message: 'url must be an address with http:// or https://' }]
            : parsed.username !== '' || parsed.password !== ''
              ? [
                    {
                        path: 'url',
                        message: 'url must not hold a name or a password: use headers, which are sealed'
                    }
                ]
              : []),
        ...metrics.flatMap((name, index) =>
            parseSeriesName(name) === null
                ? [
                      {
                          path: `metrics.${index}`,
                          message: `${name} is not one that GET metrics/catalogue lists`
                      }
                  ]
                : []
        ),
        ...Object.keys(labels).flatMap((name) =>
            labelName.test(name) ? [] : [{ path: `labels.${name}`, message: `${name} cannot be a label` }]
        )
    ];
    if (all.length > 0) {
        throw errors.invalid(all);
    }
    return { type, url, headers, metrics, intervalSeconds, labels, enabled };
}

/** Reads the exports of an export of the panel, which another version may have written. @throws TypeError when they are none */
export function exportedExports(data: unknown): readonly NewExport[] {
    const { exports } = (data ?? {}) as { readonly exports?: unknown };
    const { error, value } = joi.array().items(newExport).required().validate(exports);
    if (error !== undefined) {
        throw new TypeError(`The exported exports cannot be read: ${error.message}`);
    }
    return value as readonly NewExport[];
}
