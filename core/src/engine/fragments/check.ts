/** Checks what plugins may put into the engine's configuration. */
import { errors } from '@portico/sdk';

import type { PluginFragments } from '../site.ts';

const mostBytes = 256 * 1024;
const deepest = 32;
const mostHandlers = 20;
/** The engine's own, and what runs programs or opens listeners of its own. */
const ownApps = new Set([
    'http',
    'tls',
    'pki',
    'events',
    'layer4',
    'exec',
    'supervisor',
    'caddy',
    'admin',
    'logging',
    'storage'
]);
/** They read files, run programs, or show the engine's inside. */
const refusedHandlers = new Set([
    'exec',
    'templates',
    'file_server',
    'acme_server',
    'metrics',
    'push',
    'webdav',
    'map_file',
    'fs'
]);
/** Under these names the engine would listen, write, or read files elsewhere. */
const refusedKeys = new Set([
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
    'file_system',
    'load_files',
    'load_folders',
    'load_pem',
    'load_storage',
    '__proto__',
    'constructor',
    'prototype'
]);
/** Under these names the engine is told where to connect to. With a placeholder there, each visitor could choose it: the admin socket too. */
const targetKeys = new Set([
    'dial',
    'upstreams',
    'dynamic_upstreams',
    'lookup_srv',
    'network_proxy',
    'forward_proxy_url',
    'resolver',
    'resolvers',
    'addresses'
]);
/** Placeholders of the request itself. All others may be a secret of the machine. */
const harmless =
    /^\{(?:http\.request\.[^{}]+|http\.error\.[^{}]+|http\.vars\.client_ip|http\.shutting_down|client_ip|time\.[a-z_.]+)\}$/;

/** Holds what a plugin gave against what a fragment may be. @throws VALIDATION_FAILED 40001 with every fault */
export function readFragments(given: readonly unknown[], places: readonly string[] = []): PluginFragments {
    const faults: { path: string; message: string }[] = [];
    const add = (path: string, message: string): void =>
        void faults.push({ path, message: `${path} ${message}` });
    const text = plainText(given);
    if (text === null || text.length > mostBytes) {
        throw errors.invalid([
            { path: '', message: `The fragments of a plugin are JSON of at most ${mostBytes} bytes` }
        ]);
    }
    const handlers: Readonly<Record<string, unknown>>[] = [];
    const apps: Record<string, unknown> = {};
    for (const [at, fragment] of (JSON.parse(text) as readonly unknown[]).entries()) {
        const one = (fragment ?? {}) as {
            readonly slot?: unknown;
            readonly handlers?: unknown;
            readonly name?: unknown;
            readonly config?: unknown;
        };
        if (one.slot === 'handlers' && Array.isArray(one.handlers)) {
            handlers.push(...(one.handlers as Readonly<Record<string, unknown>>[]));
            one.handlers.forEach((handler: unknown, index) => {
                if (typeof (handler as { handler?: unknown } | null)?.handler !== 'string') {
                    add(`${at}.handlers.${index}`, 'must be an object that names its handler');
                }
            });
            walk(one.handlers, `${at}.handlers`, places, add);
        } else if (
            one.slot === 'apps' &&
            typeof one.name === 'string' &&
            typeof one.config === 'object' &&
            one.config !== null &&
            !Array.isArray(one.config)
        ) {
            if (
                !/^[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*$/.test(one.name) ||
                ownApps.has(one.name) ||
                Object.hasOwn(apps, one.name)
            ) {
                add(`${at}.name`, "must be an app that is neither the engine's own nor given twice");
            }
            apps[one.name] = one.config;
            walk(one.config, `${at}.config`, places, add);
        } else {
            add(String(at), 'must be { slot: "handlers", handlers } or { slot: "apps", name, config }');
        }
    }
    if (handlers.length > mostHandlers) {
        add('handlers', `may be ${mostHandlers} at most`);
    }
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
    return { handlers, apps };
}

type Add = (path: string, message: string) => void;

/** A key as the engine reads it: Go's JSON decoder ignores case, and takes ſ for s and the Kelvin sign for k (package encoding/json). */
function canonicalKey(key: string): string {
    return key.toUpperCase().toLowerCase();
}

function walk(
    value: unknown,
    path: string,
    places: readonly string[],
    add: Add,
    { depth, isTarget } = { depth: 0, isTarget: false }
): void {
    if (depth > deepest) {
        add(path, `lies deeper than ${deepest} levels`);
        return;
    }
    if (typeof value === 'string') {
        checkText(value, path, places, add);
        if (isTarget && value.includes('{')) {
            add(path, 'may not have a placeholder: it says where the engine connects to');
        }
        return;
    }
    if (typeof value !== 'object' || value === null) {
        return;
    }
    for (const [key, inner] of Object.entries(value)) {
        const at = `${path}.${key}`;
        const name = Array.isArray(value) ? '' : canonicalKey(key);
        if (!Array.isArray(value)) {
            checkText(key, at, places, add);
            checkKey(name, key, inner, (message) => add(at, message));
        }
        walk(inner, at, places, add, { depth: depth + 1, isTarget: isTarget || targetKeys.has(name) });
    }
}

/** @param name - the key as the engine reads it */
function checkKey(name: string, key: string, value: unknown, add: (message: string) => void): void {
    if (refusedKeys.has(name)) {
        add("is not a fragment's to set");
    }
    if (name === 'handler' && typeof value === 'string' && refusedHandlers.has(canonicalKey(value))) {
        add(`may not be ${value}`);
    }
    if ((name === 'handler' || targetKeys.has(name)) && (key !== name || value === null)) {
        add('must be spelled in lower case, and not be null');
    }
    if (name === 'match' && (JSON.stringify(value) ?? '').toLowerCase().includes('"file":')) {
        add('may not look for files');
    }
}

function checkText(text: string, path: string, places: readonly string[], add: Add): void {
    if (/(?:^|[^a-z])unix[+\w]*\//i.test(text) || /\bfd(?:gram)?\//i.test(text)) {
        add(path, 'may not lead to a socket');
    }
    if (places.some((place) => text.includes(place))) {
        add(path, 'may not lead to the folders of the panel or its engine');
    }
    if (/portico_/i.test(text)) {
        add(path, 'may not name what the panel itself puts in place');
    }
    if (
        text.includes('{') &&
        (/\{\$/.test(text) ||
            (text.match(/\{[^{}]*\}?/g) ?? []).some(
                (placeholder) => looksLikePlaceholder(placeholder) && !harmless.test(placeholder)
            ))
    ) {
        add(path, 'may only have placeholders of the request');
    }
}

/** Braces of a pattern or of JSON are none. */
function looksLikePlaceholder(text: string): boolean {
    return /^\{[a-z_$][\w.$:/-]*\}?$/i.test(text);
}

function plainText(value: unknown): string | null {
    try {
        const text = JSON.stringify(value);
        return Array.isArray(value) && text !== undefined ? text : null;
    } catch {
        return null;
    }
}
