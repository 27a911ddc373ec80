/** The cursors of lists that are sorted by id. */
import { invalid } from './errors.ts';

/** The cursor of the page behind a row. Opaque to clients. @param list - which list it belongs to */
export function writeCursor(list: string, id: number): string {
    return Buffer.from(`${list} ${id}`).toString('base64url');
}

/** The id in a cursor of this list; null without a cursor. @throws VALIDATION_FAILED 40001 when the list did not give this cursor */
export function readCursor(list: string, cursor: string | undefined): number | null {
    if (cursor === undefined) {
        return null;
    }
    const [name, id = '', ...more] = Buffer.from(cursor, 'base64url').toString('latin1').split(' ');
    if (name !== list || more.length > 0 || !/^[1-9]\d{0,14}$/.test(id)) {
        throw invalid({ path: 'cursor', message: 'cursor must come from a Link header' });
    }
    return Number(id);
}
