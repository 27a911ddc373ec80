/** The tables of the plugin reference, made from the code: the manifest's schema, the context, the hooks and the failures. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { AnySchema } from '@portico/sdk';
import { boundaryErrors } from '@portico/sdk/host';
import ts from 'typescript';

import { jsonSchemaOf } from '../../../core/src/server/http/json-schema/json-schema.ts';
import { manifestSchema } from '../../../registry/src/index.ts';
import type { ApiPage } from './api-report.ts';
import { root } from './markdown.ts';

interface Described {
    readonly type?: string;
    readonly flags?: { readonly description?: string; readonly presence?: string };
    readonly keys?: Readonly<Record<string, Described>>;
    readonly items?: readonly Described[];
    readonly allow?: readonly unknown[];
    readonly patterns?: readonly { readonly rule?: Described }[];
}

/** The files as they should be. @throws Error when the page lacks its marks */
export function pluginPages(): readonly ApiPage[] {
    const file = join(root, 'docs/plugins/reference.md');
    const sections = {
        manifest: manifestTable(),
        capabilities: capabilityTable(),
        context: memberTable('context/context.ts', 'Context'),
        handles: handleTable(),
        hooks: hookTable(),
        failures: failureTable()
    };
    const text = Object.entries(sections).reduce(
        (page, [name, content]) => {
            const place = new RegExp(`(<!-- generated: ${name} -->\n)[\\s\\S]*?(<!-- end -->)`);
            if (!place.test(page)) {
                throw new Error(`docs/plugins/reference.md has no place for ${name}`);
            }
            return page.replace(
                place,
                (_all, before: string, after: string) => `${before}\n${content}\n\n${after}`
            );
        },
        readFileSync(file, 'utf8')
    );
    return [
        { file, text },
        { file: join(root, 'sdk/manifest.schema.json'), text: schemaText() }
    ];
}

/** JSON Schema of the field `portico` in package.json. */
function schemaText(): string {
    const schema = jsonSchemaOf(manifestSchema as AnySchema, { side: 'body', defaults: true });
    return `${JSON.stringify({ $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'The field "portico" in the package.json of a Portico plugin', ...schema }, null, 2)}\n`;
}

function manifestTable(): string {
    const { keys = {} } = manifestSchema.describe() as Described;
    return table(
        ['Field', 'Value', 'Meaning'],
        Object.entries(keys).map(([name, field]) => [
            `\`${name}\`${field.flags?.presence === 'required' ? ', required' : ''}`,
            shapeOf(field),
            field.flags?.description ?? ''
        ])
    );
}

function capabilityTable(): string {
    const { keys: { capabilities } = {} } = manifestSchema.describe() as Described;
    return table(
        ['Capability', 'Value', 'Meaning'],
        Object.entries(capabilities?.keys ?? {}).map(([name, field]) => [
            `\`${name}\``,
            shapeOf(field),
            field.flags?.description ?? ''
        ])
    );
}

function shapeOf({ type, items = [], allow = [], patterns = [], keys }: Described): string {
    const words = allow.map((each) => `\`${JSON.stringify(each)}\``);
    switch (type) {
        case 'array':
            return words.length > 0
                ? words.join(', ')
                : `list of ${items.map((item) => (item.allow === undefined ? (item.keys === undefined ? 'texts' : `\`{ ${Object.keys(item.keys).join(', ')} }\``) : item.allow.map((each) => `\`${String(each)}\``).join(', '))).join(', ')}`;
        case 'object':
            return keys === undefined || Object.keys(keys).length === 0
                ? `by name${patterns.length === 0 ? '' : ': a text'}`
                : Object.keys(keys)
                      .map((key) => `\`${key}\``)
                      .join(', ');
        default:
            return words.length > 0 ? words.join(', ') : type === 'string' ? 'text' : (type ?? '');
    }
}

/** The members of an interface, each with the first sentence of its comment. */
function memberTable(file: string, name: string): string {
    return table(
        ['Member', 'What it is'],
        membersOf(file, name).map(({ label, says }) => [`\`${label}\``, says])
    );
}

/** The members of what the context gives, each with its handle before it. */
function handleTable(): string {
    const handles = {
        api: ['catalogue.ts', 'ApiService'],
        mandates: ['mandates.ts', 'MandatesService'],
        hosts: ['hosts-service.ts', 'HostsService'],
        certificates: ['hosts-service.ts', 'CertificatesService'],
        panel: ['panel-service.ts', 'PanelService'],
        files: ['files.ts', 'Files'],
        services: ['services.ts', 'ServicesService'],
        child: ['process.ts', 'Child']
    } as const;
    return table(
        ['Member', 'What it is'],
        Object.entries(handles).flatMap(([handle, [file, name]]) =>
            membersOf(`context/${file}`, name).map(({ label, says }) => [`\`${handle}.${label}\``, says])
        )
    );
}

function hookTable(): string {
    return table(
        ['Hook', 'Kind', 'Payload', 'When'],
        membersOf('hooks.ts', 'Hooks').map(({ label, says, type }) => [
            `\`${label}\``,
            (/^\w+/.exec(type)?.[0] ?? '').toLowerCase(),
            payloadOf(type),
            says
        ])
    );
}

/** The first argument of `Notify<…>` and its like, on one line. */
function payloadOf(type: string): string {
    const source = ts.createSourceFile('hook.ts', `type Hook = ${type};`, ts.ScriptTarget.Latest, true);
    const [alias] = source.statements;
    const hook = alias !== undefined && ts.isTypeAliasDeclaration(alias) ? alias.type : undefined;
    const payload = hook !== undefined && ts.isTypeReferenceNode(hook) ? hook.typeArguments?.[0] : undefined;
    const text = (payload !== undefined && ts.isTypeLiteralNode(payload) ? payload.getText() : '')
        .replaceAll(/\/\*\*[\s\S]*?\*\//g, '')
        .replaceAll('readonly ', '')
        .replaceAll(/\s+/g, ' ');
    return text === '' ? 'nothing' : `\`${text}\``;
}

function membersOf(
    file: string,
    name: string
): readonly { readonly label: string; readonly says: string; readonly type: string }[] {
    const source = ts.createSourceFile(
        file,
        readFileSync(join(root, 'sdk/src', file), 'utf8'),
        ts.ScriptTarget.Latest,
        true
    );
    const found = source.statements.find(
        (statement) => ts.isInterfaceDeclaration(statement) && statement.name.text === name
    );
    if (found === undefined || !ts.isInterfaceDeclaration(found)) {
        throw new Error(`${file} has no interface ${name}`);
    }
    return found.members.map((member) => {
        const label = (member.name?.getText() ?? '').replaceAll("'", '');
        const notes = ts
            .getJSDocCommentsAndTags(member)
            .filter(ts.isJSDoc)
            .map((note) => ts.getTextOfJSDocComment(note.comment) ?? '');
        return {
            label,
            says: notes.join(' ').replace(/\s+/g, ' ').trim(),
            type: ts.isPropertySignature(member) ? (member.type?.getText() ?? '') : ''
        };
    });
}

function failureTable(): string {
    const source = ts.createSourceFile(
        'failures.ts',
        readFileSync(join(root, 'sdk/src/boundary/failures.ts'), 'utf8'),
        ts.ScriptTarget.Latest,
        true
    );
    const says = new Map(
        [...source.getFullText().matchAll(/\/\*\* (.*) \*\/\n\s+([A-Z_]+): \{/g)].map(
            ([, text = '', reason = '']) => [reason, text]
        )
    );
    const rows = Object.entries(boundaryErrors).map(([reason, make]) => [
        String(make().code),
        `\`${reason}\``,
        says.get(reason) ?? ''
    ]);
    const own = [
        ...readFileSync(join(root, 'sdk/src/plugin-errors.ts'), 'utf8').matchAll(
            /\/\*\* (\d{5}): (.*) \*\/\n\s+(\w+): [^]*?make\(\d+, '([A-Z_]+)'/g
        )
    ].map(([, code = '', text = '', name = '', reason = '']) => [
        code,
        `\`${reason}\`, \`errors.${name}\``,
        text
    ]);
    return table(
        ['Code', 'Reason', 'When'],
        [...own, ...rows].sort(([a = ''], [b = '']) => Number(a) - Number(b))
    );
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
    const line = (cells: readonly string[]): string =>
        `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll(/\{@link (\w+)\}/g, '`$1`')).join(' | ')} |`;
    return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}
