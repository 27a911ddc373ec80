/** Rows as text, and text as rows: CSV (RFC 4180, null is an unquoted empty field) and JSON lines. */
import { errors } from '@portico/sdk';
import { parse } from 'csv-parse';

import { through } from '../dumps/streams.ts';
import type { Cell } from '../kinds/kind.ts';

const mostLineBytes = 64 * 1024 * 1024;

/** One line of CSV, with its end. */
export function csvLine(cells: readonly Cell[]): string {
    return `${cells.map(csvField).join(',')}\r\n`;
}

function csvField(value: Cell): string {
    if (value === null) {
        return '';
    }
    const text = textOf(value);
    return text === '' || /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

function textOf(value: Exclude<Cell, null>): string {
    return typeof value === 'object' ? ('base64' in value ? String(value.base64) : JSON.stringify(value)) : String(value);
}

/** Rows of a CSV file by the names of its first line. @throws VALIDATION_FAILED 40001 */
export async function* readCsv(source: AsyncIterable<Uint8Array>): AsyncGenerator<Readonly<Record<string, Cell>>> {
    const parser = parse({
        bom: true,
        max_record_size: mostLineBytes,
        cast: (value, { quoting }) => (value === '' && !quoting ? null : value)
    });
    let names: readonly (string | null)[] | null = null;
    try {
        for await (const record of through(source, parser) as AsyncIterable<unknown>) {
            const fields = record as (string | null)[];
            if (names === null) {
                names = fields;
            } else {
                yield Object.fromEntries(names.map((name, index) => [name ?? '', fields[index] ?? null]));
            }
        }
    } catch (error) {
        throw unreadable(error);
    }
}

/** Objects of a file with one JSON object a line. @throws VALIDATION_FAILED 40001 */
export async function* readJsonLines(
    source: AsyncIterable<Uint8Array>
): AsyncGenerator<Readonly<Record<string, Cell>>> {
    const decoder = new TextDecoder();
    let text = '';
    let number = 0;
    const parsed = (line: string): Readonly<Record<string, Cell>>[] => {
        number += 1;
        if (line.trim() === '') {
            return [];
        }
        try {
            return [JSON.parse(line) as Readonly<Record<string, Cell>>];
        } catch (error) {
            throw unreadable(new Error(`line ${number}: ${(error as Error).message}`));
        }
    };
    for await (const chunk of source) {
        text += decoder.decode(chunk, { stream: true });
        const lines = text.split('\n');
        text = lines.pop() ?? '';
        if (text.length > mostLineBytes) {
            throw unreadable(new Error(`line ${number + 1} is too long`));
        }
        yield* lines.flatMap(parsed);
    }
    yield* parsed(text);
}

function unreadable(error: unknown): Error {
    return (error as { code?: unknown }).code === 40001
        ? (error as Error)
        : errors.invalid([{ path: 'file', message: `The file cannot be read: ${(error as Error).message}` }]);
}
