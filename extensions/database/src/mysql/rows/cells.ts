/** Cells and columns of results as JSON. */
import mysql, { type FieldPacket } from 'mysql2';

import type { Cell, Column } from '../../kinds/kind.ts';

/** The driver has each type by its name and by its number. */
const typeNames = new Map(
    Object.entries(mysql.Types).map(([number, name]) => [Number(number), String(name)])
);
const longestBits = 6;
const binaryCharset = 63;
const texts = new Set(['BLOB', 'TINY_BLOB', 'MEDIUM_BLOB', 'LONG_BLOB']);

/** The column that a packet describes. */
export function columnOf(field: FieldPacket): Column {
    const { name } = field;
    const type = typeNames.get(field.columnType ?? field.type ?? -1) ?? 'UNKNOWN';
    const isText = texts.has(type) && field.characterSet !== binaryCharset;
    return {
        name,
        type: (isText ? type.replace('BLOB', 'TEXT') : type).replace('VAR_STRING', 'VARCHAR').toLowerCase()
    };
}

/** A value of the driver as JSON. */
export function cellOf(value: unknown, type: string): Cell {
    if (value instanceof Uint8Array) {
        return type === 'bit' && value.length <= longestBits
            ? value.reduce((sum, byte) => sum * 256 + byte, 0)
            : { base64: Buffer.from(value).toString('base64') };
    }
    return typeof value === 'bigint' ? String(value) : (value as Cell);
}

/** A parameter as the driver takes it. */
export function parameterOf(value: unknown): string | number | boolean | Buffer | null {
    if (typeof value === 'object' && value !== null) {
        const { base64 } = value as { base64?: unknown };
        return typeof base64 === 'string' ? Buffer.from(base64, 'base64') : JSON.stringify(value);
    }
    return (value ?? null) as string | number | boolean | null;
}
