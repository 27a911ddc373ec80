/** The panel's OpenAPI document, and its references. */
import type { Schema } from './schema.ts';

/** Part of the OpenAPI 3.1 document that the pages read. */
export interface Document {
    readonly tags: readonly Tag[];
    readonly paths: Readonly<Record<string, Readonly<Record<string, RawOperation>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** A group of routes: a room of the core, or a plugin. */
export interface Tag {
    readonly name: string;
    readonly description?: string;
    readonly 'x-summary'?: string;
    readonly 'x-kind'?: string;
    readonly 'x-parent'?: string;
    readonly 'x-icon'?: string;
    readonly 'x-pages'?: readonly BroughtPage[];
    /** Addresses of the plugin's texts, by language: its English text is the key. */
    readonly 'x-locales'?: Readonly<Record<string, string>>;
    /** What the entries of its operations in the audit log name. */
    readonly 'x-resources'?: readonly string[];
}

/** A page that a plugin brings; it is shown in a frame. */
export interface BroughtPage {
    readonly id: string;
    readonly title: string;
    readonly icon?: string;
    /** The permission that it needs. */
    readonly access: string;
    readonly place: 'nav' | 'tab' | 'dashboard' | 'host';
    /** Operations of others that it may call. */
    // eslint-disable-next-line portico/glossary -- the manifest's word
    readonly uses: readonly string[];
    /** Path of its document. */
    readonly path: string;
}

/** An operation as the document has it. */
export interface RawOperation {
    readonly operationId?: string;
    readonly tags?: readonly string[];
    readonly summary?: string;
    readonly description?: string;
    readonly parameters?: readonly RawParameter[];
    readonly requestBody?: {
        readonly required?: boolean;
        readonly content: Readonly<Record<string, { readonly schema?: Schema }>>;
        readonly 'x-max-bytes'?: number;
    };
    readonly responses?: Readonly<Record<string, RawResponse>>;
    readonly 'x-permission'?: string;
    readonly 'x-audit'?: { readonly action: string; readonly resource: string };
    readonly 'x-effect'?: 'read' | 'write' | 'destructive';
    /** The route's kind. */
    readonly 'x-door'?: 'json' | 'stream' | 'socket' | 'upload' | 'download' | 'http';
    readonly 'x-ui'?: OperationUi;
}

interface RawParameter {
    readonly $ref?: string;
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema?: Schema;
}

interface RawResponse {
    readonly content?: Readonly<
        Record<string, { readonly schema?: Schema; readonly 'x-itemSchema'?: Schema }>
    >;
}

/** What a route says to the pages; the SDK's `ui` of a route. */
export interface OperationUi {
    readonly title?: string;
    readonly role?: 'list' | 'card' | 'chart' | 'log' | 'action' | 'hidden';
    readonly primary?: boolean;
    readonly confirm?: string;
    readonly label?: string;
    readonly empty?: string;
    readonly order?: number;
    readonly deadline?: Deadline;
}

/** A state that ends by itself unless a user keeps it; the SDK's `deadline` of a route. */
export interface Deadline {
    /** Field of the answer with the time, with dots between names. */
    readonly until: string;
    readonly question: string;
    /** Ids of the operations that keep the state and that end it. */
    readonly keep: string;
    readonly undo: string;
    /** Fields of their bodies, by name: the field of the answer that each takes. */
    readonly body?: Readonly<Record<string, string>>;
}

const depth = 12;

/** The schema with every reference replaced by what it leads to. */
export function resolve(document: Document, schema: Schema, level = 0): Schema {
    if (level > depth) {
        return {};
    }
    const target =
        schema.$ref === undefined
            ? schema
            : (document.components.schemas[schema.$ref.split('/').pop() ?? ''] ?? {});
    const inner = (each: Schema): Schema => resolve(document, each, level + 1);
    const merged = (target.allOf ?? [])
        .map(inner)
        .reduce<Schema>((all, each) => ({ ...each, ...all }), target);
    return {
        ...merged,
        ...(merged.properties === undefined
            ? {}
            : {
                  properties: Object.fromEntries(
                      Object.entries(merged.properties).map(([key, each]) => [key, inner(each)])
                  )
              }),
        ...(merged.items === undefined ? {} : { items: inner(merged.items) }),
        ...(typeof merged.additionalProperties === 'object'
            ? { additionalProperties: inner(merged.additionalProperties) }
            : {}),
        ...(merged.oneOf === undefined ? {} : { oneOf: merged.oneOf.map(inner) }),
        ...(merged.anyOf === undefined ? {} : { anyOf: merged.anyOf.map(inner) })
    };
}
