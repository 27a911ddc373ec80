/** Runs one action of a group through the running panel. */
import { readFileSync } from 'node:fs';

import type { Input } from '../command/command.ts';
import { CommandError, usageError } from '../command/command-error.ts';
import { toPlainText } from '../command/output.ts';
import type { Client } from '../panel/client.ts';
import { withRunningPanel } from '../panel/with-panel.ts';
import { alignColumns } from '../plugin/admin/describe.ts';
import { type ApiDocument, argumentsOf, operationsOf, requestOf } from './operations.ts';

/** The most columns of a list that fit on a screen. */
const mostColumns = 6;
const longestCell = 40;

/** @returns the exit code */
export function runAction(prefix: string, group: string, input: Input): Promise<number> {
    const [action, ...typed] = input.positionals;
    const given = readFields(input.text('input'));
    return withRunningPanel(input.config, async (client) => {
        const document = await client.document<ApiDocument>('/api/openapi.json');
        const operations = operationsOf(document, prefix);
        if (action === undefined) {
            const rows = operations.map((each) => [each.action, argumentsOf(each), each.summary]);
            input.output.result(
                operations.map((each) => ({ action: each.action, summary: each.summary })),
                rows
                    .flatMap(([name, takes, summary]) => [`${name} ${takes}`.trimEnd(), `    ${summary}`])
                    .join('\n')
            );
            return 0;
        }
        const operation = operations.find((each) => each.action === action);
        if (operation === undefined) {
            throw usageError(
                `there is no action ${JSON.stringify(action)}: ${operations.map((each) => each.action).join(', ')}`
            );
        }
        try {
            const { path, body } = requestOf(operation, typed, given);
            return await send(client, operation.method, path, body, input);
        } catch (error) {
            throw error instanceof CommandError && error.exitCode === 2
                ? usageError(`${error.message}. It is: portico ${group} ${action} ${argumentsOf(operation)}`)
                : error;
        }
    });
}

async function send(
    client: Client,
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body: object | undefined,
    { output }: Input
): Promise<number> {
    const { data, message, next } = await client.call<unknown>(method, path, body);
    output.result(data, toPlainText(textOf(data)));
    if (message !== 'ok') {
        output.say(message);
    }
    if (next !== null) {
        output.say(`There are more: add cursor=${next}`);
    }
    return 0;
}

function readFields(file: string | undefined): Readonly<Record<string, unknown>> {
    if (file === undefined) {
        return {};
    }
    let fields: unknown;
    try {
        fields = JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'));
    } catch (error) {
        throw new CommandError(`--input cannot be read: ${(error as Error).message}`, 2, { cause: error });
    }
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
        throw usageError('--input must have a JSON object in it');
    }
    return fields as Readonly<Record<string, unknown>>;
}

/** A list as a table of what is short in each row, an object as lines. */
function textOf(data: unknown): string {
    if (Array.isArray(data)) {
        return tableOf(data);
    }
    return typeof data === 'object' && data !== null
        ? alignColumns(Object.entries(data).map(([name, value]) => [name, cellOf(value)])).join('\n')
        : '';
}

function tableOf(rows: readonly unknown[]): string {
    const objects = rows.filter(
        (row): row is Record<string, unknown> => typeof row === 'object' && row !== null
    );
    const [first] = objects;
    if (first === undefined) {
        return rows.map(cellOf).join('\n');
    }
    const columns = Object.keys(first)
        .filter((name) => objects.every((row) => typeof row[name] !== 'object' || row[name] === null))
        .slice(0, mostColumns);
    return alignColumns([
        columns.map((name) => name.toUpperCase()),
        ...objects.map((row) => columns.map((name) => cut(cellOf(row[name]))))
    ]).join('\n');
}

function cellOf(value: unknown): string {
    return value === null || value === undefined
        ? '-'
        : typeof value === 'string'
          ? value.replaceAll(/\s+/g, ' ')
          : JSON.stringify(value);
}

function cut(text: string): string {
    return text.length > longestCell ? `${text.slice(0, longestCell - 1)}…` : text;
}
