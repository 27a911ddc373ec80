import { ApiFailure } from '../api/failure.ts';
import { t } from '../words/t.ts';

/** What is typed for JSON, and is none yet. It stands in the value of a form, which cannot be sent so long. */
export class RawJson {
    readonly text: string;

    constructor(text: string) {
        this.text = text;
    }
}

/** Fails when such a text stands in the value of a form. @throws ApiFailure that says it at each of these fields */
export function assertJson(value: unknown): void {
    const message = t('This is not JSON');
    const errors = pathsOf(value, []).map((path) => ({ path, message }));
    if (errors.length > 0) {
        throw new ApiFailure(400, { code: 40_000, message, data: { errors } }, null);
    }
}

/** Whether such a text stands in a value. */
export const hasRawJson = (value: unknown): boolean => pathsOf(value, []).length > 0;

function pathsOf(value: unknown, path: readonly string[]): readonly (readonly string[])[] {
    if (value instanceof RawJson) {
        return [path];
    }
    return typeof value === 'object' && value !== null
        ? Object.entries(value).flatMap(([key, each]) => pathsOf(each, [...path, key]))
        : [];
}
