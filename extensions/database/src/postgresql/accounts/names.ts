/** Names in statements. */

/** A name as an identifier. */
export function quote(name: string): string {
    return `"${name.replaceAll('"', '""')}"`;
}

/** A text as a literal, in whichever way the server reads backslashes. */
export function literal(text: string): string {
    return ` E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}
