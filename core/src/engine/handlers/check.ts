/**
 * Holds handlers in the engine's own language against lists of what is allowed, by the spelling that the engine reads. They stand in front of
 * visitors: what a handler lets a request choose, every visitor chooses. Pure.
 */
import { unsupportedPlaceholders, type UnsupportedText } from '../render/placeholder.ts';
import type { Site } from '../site.ts';
import { canonicalKey, isCanonical } from './canonical.ts';
import { isTargetKey, targetFault } from './targets.ts';

/** What one kind of author may write. */
export interface HandlerRules {
    /** Modules of `http.handlers`. */
    readonly handlers: ReadonlySet<string>;
    /** Modules of `http.matchers`. */
    readonly matchers: ReadonlySet<string>;
    /** Names under which no value may stand, in canonical spelling. */
    readonly refusedKeys: ReadonlySet<string>;
    /** Whether a key names a file of the machine that the engine would read or write. */
    readonly files: 'absolute' | 'none';
    /** Whether the author may lead the engine to a host; null when each may be reached. */
    readonly mayReach: ((host: string) => boolean) | null;
}

/** Takes a fault. `path` is that of the value inside of what was checked. */
export type AddFault = (path: string, message: string) => unknown;

/** Modules that read no file, open no listener and run no program. `rate_limit` and those after it are well-known modules of others. */
const harmlessHandlers = [
    'authentication',
    'copy_response',
    'copy_response_headers',
    'encode',
    'error',
    'headers',
    'intercept',
    'log_append',
    'map',
    'request_body',
    'reverse_proxy',
    'rewrite',
    'static_response',
    'subroute',
    'tracing',
    'vars',
    'rate_limit',
    'waf',
    'crowdsec',
    'appsec'
];
/** `vars_regexp` is missing on purpose: some versions expand placeholders in it a second time, in text of the visitor. */
const harmlessMatchers = [
    'client_ip',
    'expression',
    'header',
    'header_regexp',
    'host',
    'method',
    'not',
    'path',
    'path_regexp',
    'protocol',
    'query',
    'remote_ip',
    'tls',
    'vars'
];
const transports = new Set(['fastcgi', 'http']);
const sources = new Set(['a', 'multi', 'srv']);
/** The keys of these objects are names that the author chooses, such as those of headers. */
const namesBelow = new Set([
    'add',
    'env',
    'header',
    'header_regexp',
    'headers',
    'query',
    'rate_limits',
    'replace',
    'set',
    'vars'
]);
/** Variables that other handlers of the engine read: the root of files, and the file system that it lies in. */
const engineVariables = new Set(['fs', 'root']);
const deepest = 32;

/** Rules for the `advanced` of a host. */
export const hostRules: HandlerRules = {
    handlers: new Set([...harmlessHandlers, 'file_server', 'metrics', 'push']),
    matchers: new Set([...harmlessMatchers, 'file']),
    refusedKeys: new Set(['fs', 'file_system', 'template_file', '__proto__', 'constructor', 'prototype']),
    files: 'absolute',
    mayReach: null
};

/** Rules for the fragments of a plugin. @param mayReach - what the plugin's grants cover */
export const pluginRules = (mayReach: (host: string) => boolean): HandlerRules => ({
    handlers: new Set(harmlessHandlers),
    matchers: new Set(harmlessMatchers),
    refusedKeys: new Set([
        ...hostRules.refusedKeys,
        // Under these names the engine would listen, write, or read files elsewhere.
        'admin',
        'listen',
        'listener',
        'listeners',
        'listener_wrappers',
        'storage',
        'storage_raw',
        'logging',
        'logs',
        'writer',
        'output',
        'persist',
        'root',
        'load_files',
        'load_folders',
        'load_pem',
        'load_storage'
    ]),
    files: 'none',
    mayReach
});

/** Fields of a site whose text the engine would not serve as typed, and what its `advanced` may not have. */
export function refusedTexts(site: Site): readonly UnsupportedText[] {
    const faults = [...unsupportedPlaceholders(site)];
    checkHandlers(site.advanced, 'advanced', hostRules, (path, message) => faults.push({ path, message }));
    return faults;
}

/** Where the walk is. */
interface Place {
    readonly depth: number;
    /** The keys of this object are free: see {@link namesBelow}. */
    readonly hasNames: boolean;
    /** The values say where the engine connects to. */
    readonly isTarget: boolean;
    /** The object, or each object of the list, is a set of matchers. */
    readonly isMatcher: boolean;
}

const start: Place = { depth: 0, hasNames: false, isTarget: false, isMatcher: false };

/** Finds what an author may not write in handlers, or in another part of the engine's configuration. */
export function checkHandlers(
    value: unknown,
    path: string,
    rules: HandlerRules,
    add: AddFault,
    place: Place = start
): void {
    if (place.depth > deepest) {
        add(path, `lies deeper than ${deepest} levels`);
        return;
    }
    if (Array.isArray(value)) {
        const each = { ...place, depth: place.depth + 1 };
        value.forEach((inner: unknown, at) => checkHandlers(inner, `${path}.${at}`, rules, add, each));
        return;
    }
    if (typeof value !== 'object' || value === null) {
        checkValue(value, path, rules, add, place);
        return;
    }
    const isVars = !place.isMatcher && (value as { handler?: unknown }).handler === 'vars';
    for (const [key, inner] of Object.entries(value)) {
        checkKey(key, inner, { at: `${path}.${key}`, isVars, place, rules, add });
        checkHandlers(inner, `${path}.${key}`, rules, add, {
            depth: place.depth + 1,
            hasNames: !place.hasNames && namesBelow.has(canonicalKey(key)),
            isTarget: place.isTarget || isTargetKey(canonicalKey(key)),
            isMatcher: !place.hasNames && (key === 'match' || key === 'not') && Array.isArray(inner)
        });
    }
    requireRoot(value as Readonly<Record<string, unknown>>, path, place, add);
}

interface KeyCheck {
    readonly at: string;
    readonly isVars: boolean;
    readonly place: Place;
    readonly rules: HandlerRules;
    readonly add: AddFault;
}

function checkKey(key: string, value: unknown, { at, isVars, place, rules, add }: KeyCheck): void {
    const name = canonicalKey(key);
    if (place.hasNames) {
        return;
    }
    if (isVars && name !== 'handler') {
        if (key.includes('{') || (engineVariables.has(name) && name !== key) || value === null) {
            add(at, 'must be the plain name of a variable, and not be null');
        }
    } else if (!isCanonical(key) || value === null) {
        add(at, 'must be spelled in lower case, and not be null');
    }
    if (rules.refusedKeys.has(name)) {
        add(at, 'may not be set here');
    }
    if (place.isMatcher && !rules.matchers.has(key)) {
        add(at, `may not be ${key}: it is not among the matchers that are allowed here`);
    }
    const modules =
        name === 'handler'
            ? rules.handlers
            : name === 'protocol' && !place.isMatcher
              ? transports
              : name === 'source' && place.isTarget
                ? sources
                : null;
    if (modules !== null && !(typeof value === 'string' && modules.has(value))) {
        add(at, `may not be ${String(value)}: it is not among the modules that are allowed here`);
    }
}

function checkValue(value: unknown, path: string, rules: HandlerRules, add: AddFault, place: Place): void {
    if (typeof value !== 'string') {
        return;
    }
    const name = canonicalKey(nameOf(path));
    if (place.isTarget) {
        const fault = targetFault(name, value, rules.mayReach);
        if (fault !== null) {
            add(path, fault);
        }
    }
    if (isFileKey(name) && !place.hasNames) {
        if (rules.files === 'none') {
            add(path, 'may not lead to a file');
        } else if (!value.startsWith('/') || value.includes('{')) {
            add(path, 'must be an absolute path without placeholders');
        }
    }
    // An expression may call each matcher by its name; a comment may stand before the bracket.
    if (/\b(?:file|vars_regexp)(?:\s|\/\/[^\n]*\n)*\(/i.test(value) && isExpression(path)) {
        add(path, 'may not call file or vars_regexp');
    }
}

/** The last key of a path that is no index of a list. */
function nameOf(path: string): string {
    return path.replace(/(?:\.\d+)+$/, '').replace(/^.*\./, '');
}

function isExpression(path: string): boolean {
    return /\.expression(?:\.expr)?$/i.test(path);
}

/** `try_files` are paths below a root. */
function isFileKey(name: string): boolean {
    return /(?:^|_)(?:file|files|filename|folder|folders)$/.test(name) && name !== 'try_files';
}

/** Files without a root would be those of the folder that the engine runs in, or of a variable that the request set. */
function requireRoot(
    value: Readonly<Record<string, unknown>>,
    path: string,
    { isMatcher }: Place,
    add: AddFault
): void {
    const file = isMatcher ? value['file'] : value;
    if (
        (isMatcher ? file !== undefined : value['handler'] === 'file_server') &&
        typeof (file as { root?: unknown } | null)?.root !== 'string'
    ) {
        add(
            isMatcher ? `${path}.file.root` : `${path}.root`,
            'is required: without it the files of the folder that the engine runs in would be served'
        );
    }
}
