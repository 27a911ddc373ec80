/** The reference pages: written by hand, except the tables between marks, which are made from the code. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { definitionOf, settingKeys } from '../../../core/src/features/settings/definitions.ts';
import { variables } from '../../../core/src/platform/config.ts';
import type { OpenApiDocument } from '../../../core/src/server/http/openapi/document.ts';
import { failures } from '../../../core/src/server/http/openapi/failures.ts';
import type { Operation } from '../../../core/src/server/http/openapi/operation.ts';
import { hostFields } from './host-fields.ts';

/** One page as it should be. */
export interface Page {
    /** Absolute. */
    readonly file: string;
    readonly now: string;
    readonly fresh: string;
}

const methods = ['get', 'post', 'put', 'delete'];

/** Makes the pages with new tables. @throws Error when a page lacks its marks */
export async function referencePages(document: OpenApiDocument): Promise<Page[]> {
    return Promise.all([
        page('api.md', { errors: errorTable(), routes: routeTables(document) }),
        page('configuration.md', { variables: variableTable(), settings: settingTable() }),
        page('hosts.md', { fields: fieldTable() })
    ]);
}

async function page(name: string, sections: Readonly<Record<string, string>>): Promise<Page> {
    const file = fileURLToPath(new URL(`../../../docs/${name}`, import.meta.url));
    const now = await readFile(file, 'utf8');
    const fresh = Object.entries(sections).reduce((text, [section, content]) => {
        const place = new RegExp(`(<!-- generated: ${section} -->\n)[\\s\\S]*?(<!-- end -->)`);
        if (!place.test(text)) {
            throw new Error(`docs/${name} has no place for ${section}`);
        }
        return text.replace(
            place,
            (_all, before: string, after: string) => `${before}\n${content}\n\n${after}`
        );
    }, now);
    return { file, now, fresh };
}

function errorTable(): string {
    return table(
        ['Code', 'Reason', 'Message'],
        [...failures.values()]
            .sort((a, b) => a.code - b.code)
            .map(({ code, reason, message }) => [String(code), `\`${reason}\``, message])
    );
}

function routeTables({ paths, tags }: OpenApiDocument): string {
    const all = Object.entries(paths)
        .filter(([path]) => !/^\/api\/plugins\/[^/{]+\//.test(path))
        .flatMap(([path, item]) =>
            Object.entries(item).map(([method, operation]) => ({ path, method, operation }))
        );
    return tags
        .map(({ name }) => ({ name, own: all.filter(({ operation }) => operation.tags.includes(name)) }))
        .filter(({ own }) => own.length > 0)
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map(({ name, own }) => {
            const rows = own
                .sort((a, b) =>
                    a.path === b.path
                        ? methods.indexOf(a.method) - methods.indexOf(b.method)
                        : a.path < b.path
                          ? -1
                          : 1
                )
                .map(({ path, method, operation }) => [
                    `${method.toUpperCase()} \`${path}\``,
                    accessOf(operation),
                    `${operation.summary}${marksOf(operation)}`
                ]);
            return `### ${name}\n\n${table(['Method, path', 'Access', 'What it does'], rows)}`;
        })
        .join('\n\n');
}

function accessOf(operation: Operation): string {
    const permission = operation['x-permission'];
    const access =
        permission === undefined ? 'public' : permission === 'authenticated' ? 'any' : `\`${permission}\``;
    return `${access}${operation['x-step-up'] === true ? ', fresh' : ''}${operation['x-session-only'] === true ? ', no API token' : ''}`;
}

function marksOf(operation: Operation): string {
    const door = {
        json: '',
        http: ' (no envelope)',
        stream: ' (event stream)',
        socket: ' (WebSocket)',
        upload: ' (upload)',
        download: ' (download)'
    }[operation['x-door']];
    return `${door}${operation.deprecated === true ? ' — deprecated' : ''}`;
}

function variableTable(): string {
    return table(
        ['Variable', 'Default', 'Meaning'],
        variables.map(({ name, default: value, description }) => [
            `\`${name}\``,
            value === null ? '—' : `\`${value}\``,
            description
        ])
    );
}

function settingTable(): string {
    return table(
        ['Setting', 'Type', 'Default', 'Meaning'],
        settingKeys.map((key) => {
            const {
                type,
                default: value,
                unit,
                description,
                secret,
                restart,
                stepUp,
                environment
            } = definitionOf(key);
            const notes = [
                ...(secret ? ['sealed at rest and never read back'] : []),
                ...(stepUp ? ['a change needs a fresh session'] : []),
                ...(restart ? ['takes effect at the next start'] : []),
                ...(environment === undefined ? [] : [`\`${environment.variable}\` overrides it`])
            ];
            return [
                `\`${key}\``,
                type,
                value === null ? '—' : `\`${JSON.stringify(value)}\`${unit === null ? '' : ` ${unit}`}`,
                notes.length === 0 ? description : `${description}; ${notes.join('; ')}`
            ];
        })
    );
}

function fieldTable(): string {
    return table(
        ['Field', 'Type', 'Default', 'What it does'],
        hostFields().map(([field, ...rest]) => [`\`${field}\``, ...rest])
    );
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
    const line = (cells: readonly string[]): string =>
        `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
    return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}
