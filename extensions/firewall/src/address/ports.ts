/** Ports and ranges of ports. */

/** Ports from `from` to `to`, both included. */
export interface PortRange {
    readonly from: number;
    readonly to: number;
}

/** Reads `22` or `8000-8100`; null for anything else, port 0 and a reversed range. */
export function readPorts(text: string): PortRange | null {
    const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
    const [from, to] = [Number(first), Number(last)];
    return first !== '' && from >= 1 && from <= to && to <= 65_535 ? { from, to } : null;
}

/** Writes a range as {@link readPorts} reads it. */
export function formatPorts({ from, to }: PortRange): string {
    return from === to ? String(from) : `${from}-${to}`;
}

/** Joins ranges that overlap or touch; the result ascends. */
export function mergePorts(ranges: readonly PortRange[]): PortRange[] {
    const merged: PortRange[] = [];
    for (const each of [...ranges].sort((one, other) => one.from - other.from)) {
        const last = merged.at(-1);
        if (last === undefined || each.from > last.to + 1) {
            merged.push(each);
        } else if (each.to > last.to) {
            merged[merged.length - 1] = { from: last.from, to: each.to };
        }
    }
    return merged;
}
