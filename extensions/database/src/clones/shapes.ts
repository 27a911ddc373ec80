/** What a column can hold, by the name that the server gives its type. */
import type { KindName } from '../kinds/kind.ts';
import type { Shape } from './masking.ts';

const bits: Readonly<Record<string, number>> = {
    tinyint: 8,
    smallint: 16,
    mediumint: 24,
    int: 32,
    integer: 32,
    bigint: 64
};
/** Bytes of the texts of MySQL; a character has at most 4. */
const texts: Readonly<Record<string, number | null>> = {
    tinytext: 63,
    text: 16_383,
    mediumtext: null,
    longtext: null
};

/** The shape of a column of this type. */
export function shapeOf(kind: KindName, type: string): Shape {
    const [, word = '', length] =
        /^([a-z ]+?)\s*(?:\((\d+)\).*)?(?: unsigned.*| zerofill.*)?$/i.exec(type) ?? [];
    const name = word.toLowerCase();
    const width = bits[name];
    if (width !== undefined) {
        return { family: 'integer', bits: width, unsigned: / unsigned| zerofill/i.test(type) };
    }
    if (name === 'uuid') {
        return { family: 'uuid' };
    }
    if (['char', 'varchar', 'character', 'character varying', 'citext', 'bpchar'].includes(name)) {
        return { family: 'text', limit: length === undefined ? null : Number(length) };
    }
    if (name in texts) {
        return { family: 'text', limit: kind === 'mysql' ? (texts[name] ?? null) : null };
    }
    return { family: 'other' };
}

/** What both columns can hold: columns that refer to each other get the same values. Null: they have nothing in common. */
export function commonShape(one: Shape, other: Shape): Shape | null {
    if (one.family === 'text' && other.family === 'text') {
        const limit = Math.min(one.limit ?? Infinity, other.limit ?? Infinity);
        return { family: 'text', limit: limit === Infinity ? null : limit };
    }
    if (one.family === 'integer' && other.family === 'integer') {
        const narrow = one.bits < other.bits ? one : other;
        return one.unsigned === other.unsigned ? narrow : null;
    }
    return one.family === other.family ? one : null;
}
