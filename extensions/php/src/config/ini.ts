/** How values are written in PHP's INI language. Source: Zend/zend_ini_scanner.l and zend_ini_parser.y of PHP. */

/**
 * A text as one value. Between single quotes every character stands for itself; single quotes are written between double quotes, and the
 * parts are joined.
 *
 * @throws RangeError for a zero byte, which no value may hold
 */
export function quoted(text: string): string {
    if (text.includes('\0')) {
        throw new RangeError('A value of a configuration holds no zero byte');
    }
    const parts = text.split(/('+)/).filter((part) => part !== '');
    return parts.length === 0
        ? "''"
        : parts.map((part) => (part.startsWith("'") ? `"${part}"` : `'${part}'`)).join('');
}

/** Lines `name = value` of an INI file; the values are written as they are. */
export function lines(values: Readonly<Record<string, string | number | undefined>>): string {
    return Object.entries(values)
        .flatMap(([name, value]) => (value === undefined ? [] : [`${name} = ${value}\n`]))
        .join('');
}
