/** Which route a path reaches: literal segments before parameters, parameters before the rest of a path. */
import type { RouteDocument } from '../boundary/protocol.ts';

export interface Match {
    readonly route: RouteDocument;
    readonly params: Readonly<Record<string, string>>;
}

interface Compiled {
    readonly route: RouteDocument;
    readonly pattern: RegExp;
    readonly names: readonly string[];
    /** Compared segment by segment: the lower one is the closer match. */
    readonly rank: string;
}

/** Finds routes by method and path, as hapi does. */
export function createMatcher(
    routes: readonly RouteDocument[]
): (method: string, path: string) => Match | null {
    const compiled = routes.map(compile).sort((a, b) => (a.rank < b.rank ? -1 : 1));
    return (method, path) => {
        for (const { route, pattern, names } of compiled) {
            const found = takes(route, method) ? pattern.exec(path) : null;
            if (found !== null) {
                const values = names
                    .map((name, index) => [name, found[index + 1]] as const)
                    .filter(
                        (entry): entry is readonly [string, string] =>
                            entry[1] !== undefined && entry[1] !== ''
                    );
                return {
                    route,
                    params: Object.fromEntries(
                        values.map(([name, value]) => [name, decodeURIComponent(value)])
                    )
                };
            }
        }
        return null;
    };
}

/** HEAD is answered by what answers GET. */
function takes({ kind, methods }: RouteDocument, method: string): boolean {
    return methods.includes(method) || (method === 'HEAD' && kind !== 'http' && methods.includes('GET'));
}

function compile(route: RouteDocument): Compiled {
    const names: string[] = [];
    let rank = '';
    const segments = route.path
        .split('/')
        .slice(1)
        .map((segment) => {
            const whole = /^\{(\w+)(\?|\*\d*)?\}$/.exec(segment);
            if (whole === null) {
                rank += /\{/.test(segment) ? '1' : '0';
                return `/${segment.replace(/\{(\w+)\}|[.*+?^${}()|[\]\\]/g, (part, name: string | undefined) => (name === undefined ? `\\${part}` : (names.push(name), '([^/]+)')))}`;
            }
            const [, name = '', mark = ''] = whole;
            names.push(name);
            rank += mark.startsWith('*') ? '4' : mark === '?' ? '3' : '2';
            return mark.startsWith('*') ? '(?:/(.*))?' : mark === '?' ? '(?:/([^/]*))?' : '/([^/]+)';
        });
    return { route, pattern: new RegExp(`^${segments.join('')}$`), names, rank };
}
