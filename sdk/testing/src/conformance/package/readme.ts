/** Tables of a README against the code: routes, permissions, settings and capabilities, where it has such tables. */
import type { Manifest } from '@portico/core/plugin-runtime';
import type { RouteDocument } from '@portico/sdk/host';

import { errorOf, type Finding } from '../finding.ts';

interface Table {
    /** First word of its head, lower case. */
    readonly kind: string;
    readonly head: readonly string[];
    readonly rows: readonly (readonly string[])[];
}

/** What the code says. */
export interface Truth {
    readonly manifest: Manifest;
    readonly routes: readonly RouteDocument[];
    /** Names of the settings. */
    readonly settings: readonly string[];
}

/** Compares every table whose head begins with Route, Permission, Setting or Capability. */
export function checkReadme(readme: string, truth: Truth): readonly Finding[] {
    return tablesOf(readme).flatMap((table) => {
        switch (table.kind) {
            case 'route':
                return checkRoutes(table, truth);
            case 'permission':
                return compare(
                    'permission',
                    namesIn(table),
                    permissionsOf(truth),
                    'the manifest (permissions)'
                );
            case 'setting':
                return compare('setting', namesIn(table), truth.settings, 'the definition (settings)');
            case 'capability':
                return compare(
                    'capability',
                    namesIn(table),
                    Object.keys(truth.manifest.capabilities ?? {}),
                    'the manifest (capabilities)'
                );
            default:
                return [];
        }
    });
}

function checkRoutes({ head, rows }: Table, { routes, manifest }: Truth): readonly Finding[] {
    const prefix = `/api/plugins/${manifest.name}`;
    const column = head.findIndex((cell) => /^(permission|access)$/i.test(cell));
    const shown = rows.flatMap((cells) => {
        const found = /^(.*?)\s*`([^`?]*)/.exec(cells[0] ?? '');
        const [, verbs = '', path = ''] = found ?? [];
        const methods = [...verbs.matchAll(/[A-Z]{3,}|WebSocket/g)].map(([verb]) =>
            verb === 'WebSocket' ? 'GET' : verb
        );
        return methods.map((method) => ({
            key: `${method} ${path.replace(prefix, '')}`,
            access: column < 0 ? null : (cells[column] ?? '').replaceAll('`', '')
        }));
    });
    const real = new Map<string, string>(
        routes.flatMap((route) =>
            route.methods.map((method) => [`${method} ${route.path}`, accessOf(route)] as const)
        )
    );
    const wrongAccess = shown
        .filter(({ key, access }) => access !== null && real.has(key) && real.get(key) !== access)
        .map(({ key, access }) =>
            errorOf(
                'readme',
                `README.md: ${key}`,
                `It says ${access || 'nothing'}, the code asks for ${real.get(key)}`,
                'Correct the table'
            )
        );
    return [
        ...compare(
            'route',
            shown.map(({ key }) => key),
            [...real.keys()],
            'setup'
        ),
        ...wrongAccess
    ];
}

function compare(
    what: string,
    shown: readonly string[],
    real: readonly string[],
    place: string
): readonly Finding[] {
    return [
        ...real
            .filter((name) => !shown.includes(name))
            .map((name) =>
                errorOf(
                    'readme',
                    `README.md: ${name}`,
                    `The ${what} ${name} is not in the table`,
                    'Add a row that says what it is for'
                )
            ),
        ...shown
            .filter((name) => !real.includes(name))
            .map((name) =>
                errorOf(
                    'readme',
                    `README.md: ${name}`,
                    `The table has the ${what} ${name}, which is not in ${place}`,
                    'Remove the row, or correct its name'
                )
            )
    ];
}

function permissionsOf({ manifest, routes }: Truth): readonly string[] {
    const used = routes.map(accessOf).filter((access) => access !== 'public' && access !== 'authenticated');
    return [...new Set([...Object.keys(manifest.permissions ?? {}), ...used])];
}

function accessOf({ access }: RouteDocument): string {
    return typeof access === 'string' ? access : 'ticket' in access ? access.permission : 'public';
}

/** The names between the first backticks of each row. */
function namesIn({ rows }: Table): readonly string[] {
    return rows.map((cells) => /`([^`]+)`/.exec(cells[0] ?? '')?.[1] ?? cells[0] ?? '');
}

function tablesOf(readme: string): readonly Table[] {
    const lines = readme
        .replace(/^```[\s\S]*?^```$/gm, '')
        .split('\n')
        .map((line) => line.trim());
    const cells = (line: string): string[] =>
        line
            .slice(1, line.endsWith('|') ? -1 : undefined)
            .split(/(?<!\\)\|/)
            .map((cell) => cell.trim());
    return lines.flatMap((line, at) => {
        if (!line.startsWith('|') || !/^\|[-|: ]+$/.test(lines[at + 1] ?? '')) {
            return [];
        }
        const end = lines.findIndex((each, index) => index > at && !each.startsWith('|'));
        const head = cells(line);
        return [
            {
                kind: /^[a-z]+?(?=s?\b)/i.exec(head[0] ?? '')?.[0].toLowerCase() ?? '',
                head,
                rows: lines.slice(at + 2, end < 0 ? undefined : end).map(cells)
            }
        ];
    });
}
