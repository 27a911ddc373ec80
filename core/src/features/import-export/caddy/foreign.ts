/** Turns a Caddyfile, or Caddy's JSON configuration, into an export document with hosts. */
import { isFailure } from '@portico/sdk';

import { fail, invalid } from '../../../platform/errors.ts';
import { type ExportDocument, format, formatVersion } from '../document/document.ts';
import type { SecretMap } from '../document/vault.ts';
import { hostsOfCaddy } from './caddy.ts';

/** The port to the engine's adapter, which turns a Caddyfile into JSON. */
export interface Foreign {
    /** @throws ENGINE_REJECTED with the adapter's own message; ENGINE_UNAVAILABLE, TOOL_MISSING */
    adapt(caddyfile: string, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>>;
}

/** A document that was made from a foreign configuration. */
export interface ForeignDocument {
    readonly document: ExportDocument;
    readonly secrets: SecretMap;
    /** Parts that are left out. */
    readonly notes: readonly string[];
    /** For each host, what it will serve differently. */
    readonly hostNotes: readonly { readonly name: string; readonly message: string }[];
}

/** Reads a foreign document; null for one that says that it is an export of Portico. @throws VALIDATION_FAILED */
export async function foreignSource(
    document: Readonly<Record<string, unknown>>,
    { adapt }: Foreign,
    signal: AbortSignal
): Promise<ForeignDocument | null> {
    if (document['format'] === 'caddyfile') {
        const text = only(document, 'text');
        if (typeof text !== 'string') {
            throw invalid({
                path: 'document.text',
                message: 'document.text must be the text of a Caddyfile'
            });
        }
        return translated(
            await adapt(text, signal).catch((error: unknown) => {
                throw isFailure(error) && error.reason === 'ENGINE_REJECTED'
                    ? invalid({
                          path: 'document.text',
                          message: `The Caddyfile cannot be read: ${String(error.data?.['engine'])}`
                      })
                    : error;
            })
        );
    }
    if (document['format'] === 'caddy-json') {
        const config = only(document, 'config');
        if (typeof config !== 'object' || config === null || Array.isArray(config)) {
            throw invalid({
                path: 'document.config',
                message: 'document.config must be the configuration of a Caddy, as it answers it at /config/'
            });
        }
        return translated(config as Readonly<Record<string, unknown>>);
    }
    return null;
}

function only(document: Readonly<Record<string, unknown>>, key: string): unknown {
    const strange = Object.keys(document).filter((each) => each !== 'format' && each !== key);
    if (strange.length > 0) {
        throw fail.VALIDATION_FAILED({
            errors: strange.map((each) => ({
                path: `document.${each}`,
                message: `document.${each} is not allowed`
            }))
        });
    }
    return document[key];
}

function translated(config: Readonly<Record<string, unknown>>): ForeignDocument {
    const { hosts, hashes, notes, hostNotes } = hostsOfCaddy(config);
    return {
        document: { format, formatVersion, createdAt: new Date(0).toISOString(), sections: { hosts } },
        secrets: new Map([['hosts', hashes]]),
        notes,
        hostNotes
    };
}
