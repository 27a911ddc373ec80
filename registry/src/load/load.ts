/** Imports one package that was found and resolved, within a time limit, and checks what it exports. No code of a plugin runs before this. */
import { readFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

import { isDefinition, type PluginDefinition } from '@portico/sdk';

import type { LoadCode, StageFailure } from '../failure.ts';
import type { Found } from '../ports.ts';
import { bundledCopy } from './copies.ts';
import { entryOf } from './entry.ts';
import { freshUrl, supplySdk } from './host-sdk.ts';
import { LeakDetector } from './leak-detector.ts';

/** The condition under which the workspaces of this repository run unbuilt. */
const sourceCondition = 'portico-source';
/** How many of the things that an import started are named. */
const mostStarted = 10;
let marks = 0;

interface Module {
    readonly default?: unknown;
}

/** How a package is imported. */
export interface LoadOptions {
    /** Time limit of the import, milliseconds. */
    readonly importMs: number;
    /** Real path of the SDK that the panel runs with. */
    readonly hostSdk: string;
    /** Import a new copy even if this process has imported the package before: after a failure, or after its files changed. */
    readonly fresh?: boolean;
}

/** A package that was imported. */
export interface Loaded {
    readonly definition: PluginDefinition;
    readonly importMs: number;
}

/** A package that was not. `cause` is what its code threw. */
export interface FailedLoad {
    readonly failure: StageFailure;
    readonly cause?: unknown;
}

/** Imports a package. Never rejects: every fault of the package is an answer. */
export async function load(found: Found, options: LoadOptions): Promise<Loaded | FailedLoad> {
    try {
        return await importPackage(found, options);
    } catch (error) {
        return failed('IMPORT_FAILED', says(error), error);
    }
}

async function importPackage(
    { folder, origin, lock }: Found,
    { importMs, hostSdk, fresh = false }: LoadOptions
): Promise<Loaded | FailedLoad> {
    const packageJson: unknown = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    const label = String((packageJson as { name?: unknown }).name);
    const entry = await entryOf(folder, packageJson, conditions(folder, origin));
    if (entry === null) {
        return failed(
            'ENTRY_MISSING',
            `${label} has no file to import: "exports" in its package.json must name one that is there`
        );
    }
    // The install looked for copies in an installed version, and its files are the same since.
    const copy = lock === null ? await bundledCopy(folder, hostSdk) : null;
    if (copy !== null) {
        return failed('SDK_BUNDLED', copy);
    }
    supplySdk(folder);
    const url = pathToFileURL(entry).href;
    const began = performance.now();
    const patience = new AbortController();
    const leaks = new LeakDetector(true);
    const outcome = await Promise.race([
        leaks
            .enter(() => import(fresh ? freshUrl(url, String((marks += 1))) : url) as Promise<Module>)
            .then(
                (value) => ({ value }),
                (error: unknown) => ({ error })
            ),
        wait(importMs, null, { signal: patience.signal }).catch(() => null)
    ]);
    patience.abort();
    const started = (await leaks.end()).map(({ kind, name }) => `a ${kind} at ${name}`);
    if (started.length > 0 && outcome !== null && 'value' in outcome) {
        return failed(
            'SIDE_EFFECT',
            `Importing ${label} started ${started.sort().slice(0, mostStarted).join(', ')}; work begins in onStart`
        );
    }
    if (outcome === null) {
        return failed('IMPORT_TIMEOUT', `Importing ${label} has not ended after ${importMs} ms`);
    }
    if ('error' in outcome) {
        return failed('IMPORT_FAILED', `Importing ${label} failed: ${says(outcome.error)}`, outcome.error);
    }
    const definition = outcome.value.default;
    return isDefinition(definition) && typeof definition.setup === 'function'
        ? { definition, importMs: performance.now() - began }
        : failed('DEFINITION_MISSING', `The default export of ${label} was not made by definePlugin`);
}

function failed(code: LoadCode, message: string, cause?: unknown): FailedLoad {
    return { failure: { stage: 'loaded', code, message }, cause };
}

/** Sources run only in workspaces: Node does not strip types within node_modules. */
function conditions(folder: string, origin: Found['origin']): readonly string[] {
    const isSource =
        origin === 'folder' &&
        !folder.includes(`${sep}node_modules${sep}`) &&
        process.execArgv.some(
            (each, index, all) =>
                each === `--conditions=${sourceCondition}` ||
                (/^(-C|--conditions)$/.test(each) && all[index + 1] === sourceCondition)
        );
    return isSource ? [sourceCondition] : [];
}

/** What was thrown, as one line. Code can throw any value, also one that cannot be shown. */
function says(error: unknown): string {
    try {
        return (
            (error instanceof Error
                ? error.message
                : typeof error === 'string'
                  ? error
                  : (JSON.stringify(error) ?? 'it threw nothing')
            )
                .split('\n', 1)[0]
                ?.slice(0, 500) ?? ''
        );
    } catch {
        return 'it threw something that cannot be shown';
    }
}
