/** Cells and columns of results as JSON. Every value comes as the text that the server writes. */
import pg, { type FieldDef } from 'pg';

import type { Cell, Column } from '../../kinds/kind.ts';

type Parser = (text: string) => Cell;

const typeNames = new Map<number, string>(
    Object.entries(pg.types.builtins).map(([name, oid]) => [Number(oid), name.toLowerCase()])
);
const { BOOL, BYTEA, FLOAT4, FLOAT8, INT2, INT4, INT8, OID } = pg.types.builtins;

/** A number where JSON can hold it exactly, else its text. */
const wholeNumber: Parser = (text) => (Number.isSafeInteger(Number(text)) ? Number(text) : text);
const fraction: Parser = (text) => (Number.isFinite(Number(text)) ? Number(text) : text);
const parsers = new Map<number, Parser>([
    [BOOL, (text) => text === 't'],
    [BYTEA, (text) => ({ base64: bytesOf(text).toString('base64') })],
    [FLOAT4, fraction],
    [FLOAT8, fraction],
    [INT2, wholeNumber],
    [INT4, wholeNumber],
    [INT8, wholeNumber],
    [OID, wholeNumber]
]);
const plain: Parser = (text) => text;

/** The types as the driver takes them. */
export const cellTypes = { getTypeParser: (oid: number) => parsers.get(oid) ?? plain };

/** The column that a field describes. */
export function columnOf({ name, dataTypeID }: FieldDef): Column {
    return { name, type: typeNames.get(dataTypeID) ?? `oid ${dataTypeID}` };
}

/** A parameter as the driver takes it. */
export function parameterOf(value: unknown): string | number | boolean | Buffer | null {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
        const { base64 } = value as { base64?: unknown };
        return typeof base64 === 'string' ? Buffer.from(base64, 'base64') : JSON.stringify(value);
    }
    // The driver makes an array of the server from one of JavaScript.
    return (value ?? null) as string | number | boolean | null;
}

function bytesOf(text: string): Buffer {
    if (text.startsWith('\\x')) {
        return Buffer.from(text.slice(2), 'hex');
    }
    // The format `escape`, which a server may be set to.
    const bytes = text.replace(/\\(\\|[0-7]{3})/g, (_, code: string) =>
        code === '\\' ? '\\' : String.fromCharCode(Number.parseInt(code, 8))
    );
    return Buffer.from(bytes, 'latin1');
}
