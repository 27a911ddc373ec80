/** Checks that a document is OpenAPI 3.1: its structure by the rules below, and each schema by the meta-schema of the dialect. */
import { Ajv2020 } from 'ajv/dist/2020.js';

import type { OpenApiDocument } from '../../../core/src/server/http/openapi/document.ts';
import { at } from './contract.ts';

type Json = Readonly<Record<string, unknown>>;

const methods = new Set(['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']);
const places = new Set(['path', 'query', 'header', 'cookie']);

/** Lists everything that is wrong with a document. */
export function validateDocument(given: OpenApiDocument): string[] {
    const document = JSON.parse(JSON.stringify(given)) as OpenApiDocument & Json;
    const wrong: string[] = [];
    const say = (when: boolean, what: string): void => void (when && wrong.push(what));
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const schema = (value: unknown, where: string): void =>
        say(
            ajv.validateSchema(value as Json) !== true,
            `${where} is no schema: ${ajv.errorsText(ajv.errors)}`
        );
    const resolve = (value: Json): Json =>
        typeof value['$ref'] === 'string' ? at(document, value['$ref']) : value;
    say(!/^3\.1\.\d+$/.test(document.openapi), 'openapi is not 3.1');
    say(
        typeof document.info['title'] !== 'string' || typeof document.info['version'] !== 'string',
        'info lacks title or version'
    );
    references(document, (reference) => {
        try {
            at(document, reference);
        } catch {
            wrong.push(`${reference} points nowhere`);
        }
    });
    const ids = new Set<string>();
    const shapes = new Map<string, string>();
    const tags = new Set(document.tags.map((tag) => tag.name));
    for (const [path, item] of Object.entries(document.paths)) {
        say(!path.startsWith('/'), `${path} does not start with a slash`);
        const shape = path.replace(/\{\w+\}/g, '{}');
        say(shapes.has(shape), `${path} and ${shapes.get(shape)} are one path`);
        shapes.set(shape, path);
        for (const [method, operation] of Object.entries(item)) {
            const where = `${method} ${path}`;
            say(!methods.has(method), `${where}: no such method`);
            say(ids.has(operation.operationId), `${where}: ${operation.operationId} is there twice`);
            ids.add(operation.operationId);
            operation.tags.forEach((tag) => say(!tags.has(tag), `${where}: the tag ${tag} is not declared`));
            const parameters = operation.parameters.map(resolve);
            const names = parameters.map(
                (parameter) => `${String(parameter['in'])} ${String(parameter['name'])}`
            );
            say(new Set(names).size !== names.length, `${where}: a parameter is there twice`);
            for (const parameter of parameters) {
                say(
                    !places.has(parameter['in'] as string) || typeof parameter['schema'] !== 'object',
                    `${where}: ${String(parameter['name'])} is no parameter`
                );
                say(
                    parameter['in'] === 'path' && parameter['required'] !== true,
                    `${where}: ${String(parameter['name'])} must be required`
                );
                schema(parameter['schema'], `${where} ${String(parameter['name'])}`);
            }
            const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((found) => found[1]).sort();
            const declared = parameters
                .filter((parameter) => parameter['in'] === 'path')
                .map((parameter) => parameter['name'])
                .sort();
            say(
                JSON.stringify(inPath) !== JSON.stringify(declared),
                `${where}: the path has ${inPath.join()}, declared are ${declared.join()}`
            );
            say(Object.keys(operation.responses).length === 0, `${where}: no responses`);
            for (const [status, response] of Object.entries(operation.responses)) {
                say(!/^(?:[1-5]\d\d|default)$/.test(status), `${where}: ${status} is no status`);
                const { description, content } = resolve(response);
                say(
                    typeof description !== 'string' || description === '',
                    `${where} ${status}: no description`
                );
                contents(content as Json | undefined).forEach((value) => schema(value, `${where} ${status}`));
            }
            contents(operation.requestBody?.['content'] as Json | undefined).forEach((value) =>
                schema(value, `${where} body`)
            );
            operation.security
                .flatMap((each) => Object.keys(each))
                .forEach((name) =>
                    say(
                        !(name in (document.components['securitySchemes'] ?? {})),
                        `${where}: no scheme ${name}`
                    )
                );
        }
    }
    for (const [kind, components] of Object.entries(document.components)) {
        for (const [name, component] of Object.entries(components)) {
            say(!/^[a-zA-Z0-9._-]+$/.test(name), `${kind} ${name}: no name for a component`);
            if (kind === 'schemas') {
                schema(component, name);
            }
        }
    }
    return wrong;
}

function contents(content: Json | undefined): unknown[] {
    return Object.values(content ?? {})
        .map((media) => (media as Json)['schema'])
        .filter((each) => each !== undefined);
}

function references(value: unknown, found: (reference: string) => void): void {
    if (typeof value !== 'object' || value === null) {
        return;
    }
    for (const [key, child] of Object.entries(value)) {
        if (key === '$ref' && typeof child === 'string') {
            found(child);
        } else {
            references(child, found);
        }
    }
}
