/** Checks what plugins may put into the engine's configuration. */
import { errors } from '@portico/sdk';

import { type AddFault, checkHandlers, pluginRules } from '../handlers/check.ts';
import { targetFault } from '../handlers/targets.ts';
import type { PluginFragments } from '../site.ts';

const mostBytes = 256 * 1024;
const mostHandlers = 20;
/** Apps of others that open no listener, run no program and read no file. */
const allowedApps = new Set(['crowdsec', 'cache']);
/** Placeholders of the request itself. All others may be a secret of the machine. */
const harmless =
    /^\{(?:http\.request\.[^{}]+|http\.error\.[^{}]+|http\.vars\.client_ip|http\.shutting_down|client_ip|time\.[a-z_.]+)\}$/;

/** What the fragments of one plugin are held against. */
export interface FragmentLimits {
    /** Absolute paths that no fragment may name. */
    readonly places: readonly string[];
    /** Whether the plugin's grants cover a host that a fragment leads the engine to. */
    readonly mayReach: (host: string) => boolean;
}

/** Holds what a plugin gave against what a fragment may be. @throws VALIDATION_FAILED 40001 with every fault */
export function readFragments(
    given: readonly unknown[],
    { places, mayReach }: FragmentLimits
): PluginFragments {
    const rules = pluginRules(mayReach);
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
            checkHandlers(one.handlers, `${at}.handlers`, rules, add);
            checkTexts(one.handlers, `${at}.handlers`, places, add);
        } else if (
            one.slot === 'apps' &&
            typeof one.name === 'string' &&
            typeof one.config === 'object' &&
            one.config !== null &&
            !Array.isArray(one.config)
        ) {
            if (!allowedApps.has(one.name) || Object.hasOwn(apps, one.name)) {
                add(`${at}.name`, `must be one of ${[...allowedApps].join(', ')}, and not given twice`);
            }
            apps[one.name] = one.config;
            checkHandlers(one.config, `${at}.config`, rules, add);
            checkTexts(one.config, `${at}.config`, places, add);
            checkAddresses(one.config, `${at}.config`, mayReach, add);
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

/** Holds each text, names included, against the places and secrets of the machine. The depth was checked before. */
function checkTexts(value: unknown, path: string, places: readonly string[], add: AddFault): void {
    if (typeof value === 'string') {
        checkText(value, path, places, add);
    } else if (typeof value === 'object' && value !== null) {
        for (const [key, inner] of Object.entries(value)) {
            const at = `${path}.${key}`;
            if (!Array.isArray(value)) {
                checkText(key, at, places, add);
            }
            checkTexts(inner, at, places, add);
        }
    }
}

/** Apps connect to the addresses in their settings, under names of their own. */
function checkAddresses(
    value: unknown,
    path: string,
    mayReach: (host: string) => boolean,
    add: AddFault
): void {
    if (typeof value === 'string' && value.includes('://')) {
        const fault = targetFault('url', value, mayReach);
        if (fault !== null) {
            add(path, fault);
        }
    } else if (typeof value === 'object' && value !== null) {
        for (const [key, inner] of Object.entries(value)) {
            checkAddresses(inner, `${path}.${key}`, mayReach, add);
        }
    }
}

function checkText(text: string, path: string, places: readonly string[], add: AddFault): void {
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
