/**
 * Masks hashes, header values, keys, EAB and `advanced` in engine configurations and rows. A text is shown only under a key that is known
 * to be harmless, so keys of a newer engine or a foreign configuration are masked too.
 */
import { canonicalize } from '@portico/sdk';

import type { HostRow } from '../change.ts';
import type { EngineConfig } from '../port.ts';
import type { EngineSettings, Site } from '../site.ts';

/** Replaces a masked text. */
export const maskText = '[masked]';

/** Keys whose texts say how requests are routed and never hold a secret. */
const shown = new Set([
    '@id',
    'id',
    'internal',
    'onDemand',
    'endpoint',
    'algorithms',
    'args',
    'ask',
    'auto_https',
    'ca',
    'certificate',
    'challenges',
    'curves',
    'dial',
    'email',
    'encoder',
    'encodings',
    'exclude',
    'fail_duration',
    'group',
    'handler',
    'handler_chain',
    'hide',
    'host',
    'include',
    'index_names',
    'interval',
    'key_type',
    'lb_policy',
    'level',
    'listen',
    'logger_names',
    'max_size',
    'method',
    'module',
    'name',
    'names',
    'origins',
    'output',
    'path',
    'pattern',
    'policy',
    'prefer',
    'protocol',
    'protocol_min',
    'protocols',
    'ranges',
    'root',
    'sni',
    'split_path',
    'status_code',
    'strip_path_prefix',
    'subjects',
    'timeout',
    'try_duration',
    'try_files',
    'try_interval',
    'try_policy',
    'username',
    'versions',
    'writer'
]);

/** Below these keys every text is shown: they hold site names and table entries. */
const plain = new Set(['table']);

/** Below these keys every text is masked: its own key is a header name, or the text is a secret or a path of the engine's own files. */
const secretBelow = new Set([
    'storage',
    'load_files',
    'headers',
    'header',
    'request',
    'response',
    'external_account',
    'load_pem',
    'environment',
    'env',
    'cookie',
    'query'
]);

/** The engine-native handlers of these sites as canonical JSON. They are masked whole wherever they occur. */
export const advancedOf = (sites: Iterable<Site>): ReadonlySet<string> => {
    const found = new Set<string>();
    for (const site of sites) {
        for (const handler of site.advanced) {
            found.add(canonicalize(handler));
        }
    }

    return found;
};

/**
 * A copy of a configuration for callers with `engine:read`.
 * @param advanced - from `advancedOf`
 */
export const maskConfig = (config: EngineConfig, advanced: ReadonlySet<string>): EngineConfig =>
    masked(config, '', false, advanced) as EngineConfig;

/** A copy of a row for callers with `engine:read`. */
export const maskRow = (row: HostRow): HostRow => {
    const { site } = row;
    const values = (operations: Site['headers']['request']): Site['headers']['request'] =>
        operations.map((operation) => ({ ...operation, value: operation.value === '' ? '' : maskText }));
    return {
        ...row,
        site: {
            ...site,
            headers: { request: values(site.headers.request), response: values(site.headers.response) },
            access: {
                ...site.access,
                basicAuth: site.access.basicAuth.map((entry) => ({ ...entry, hash: maskText }))
            },
            advanced: site.advanced.map(() => ({ handler: maskText }))
        }
    };
};

/** A copy of the settings without the EAB and the texts of plugins. */
export const maskSettings = ({ fragments, ...settings }: EngineSettings): EngineSettings => ({
    ...settings,
    ...(settings.acmeEab === null ? {} : { acmeEab: { keyId: maskText, macKey: maskText } }),
    ...(fragments === undefined
        ? {}
        : {
              fragments: Object.fromEntries(
                  Object.entries(fragments).map(([plugin, { handlers, apps }]) => [
                      plugin,
                      {
                          handlers: handlers.map(() => ({ handler: maskText })),
                          apps: Object.fromEntries(Object.keys(apps).map((name) => [name, maskText]))
                      }
                  ])
              )
          })
});

const masked = (value: unknown, key: string, secret: boolean, advanced: ReadonlySet<string>): unknown => {
    if (typeof value === 'string') {
        return value === '' || (!secret && shown.has(key)) ? value : maskText;
    }

    if (Array.isArray(value)) {
        return value.map((item) => masked(item, key, secret, advanced));
    }

    if (typeof value !== 'object' || value === null) {
        return value;
    }

    if (advanced.size > 0 && 'handler' in value && advanced.has(canonicalize(value))) {
        return { handler: maskText };
    }

    return Object.fromEntries(
        Object.entries(value).map(([name, item]) => [
            name,
            plain.has(name) && !secret && isFlat(item)
                ? item
                : masked(item, name, secret || secretBelow.has(name), advanced)
        ])
    );
};

const isFlat = (value: unknown): boolean =>
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((item) => typeof item === 'string');
