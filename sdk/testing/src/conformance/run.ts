/** The conformance suite: what every plugin keeps to. */
import { readFile, realpath } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { LeakDetector } from '@portico/core/plugin-runtime';
import { isDefinition, type PluginDefinition } from '@portico/sdk';
import type { RouteDocument } from '@portico/sdk/host';

import { createTestHost, type TestHost } from '../host.ts';
import type { PluginFailure, TestHostOptions } from '../options.ts';
import { readTestPackage } from '../package.ts';
import { checkCycles } from './cycles.ts';
import { errorOf, type Finding, type Rule, warningOf } from './finding.ts';
import { checkPackage, entryOf, readPackageJson } from './package.ts';
import { checkReadme } from './readme.ts';
import { type ConformanceRequest, requestsOf } from './requests.ts';
import { checkThreads } from './threads.ts';

/** What the suite cannot know by itself. A `conformance.json` in the package may say `settings` and `requests` too. */
export interface ConformanceOptions {
    /** Settings without which the plugin does not run. */
    readonly settings?: Readonly<Record<string, unknown>>;
    /** Fakes of the plugins that it requires; default: ones that do not answer. */
    readonly partners?: TestHostOptions['partners'];
    /** What it is asked in each cycle and in each thread; default: every route that reads and needs no parameter. */
    readonly requests?: readonly ConformanceRequest[];
    /** How often it is disabled and enabled; default 100. */
    readonly cycles?: number;
    /** Says answers of scripts, roots and hosts, before each host is asked. */
    readonly prepare?: (host: TestHost) => void | Promise<void>;
    /** Further checks of package.json, as a panel has them. */
    readonly manifest?: (packageJson: unknown) => readonly Finding[];
    /** Imports the module in another way, as a panel does. */
    readonly load?: (folder: string) => Promise<PluginDefinition | readonly Finding[]>;
}

/** What came of it. */
export interface ConformanceReport {
    /** Name of the plugin; that of its folder when its manifest cannot be read. */
    readonly plugin: string;
    /** Rules that were looked at; after a failure that keeps it from running, the rest is not. */
    readonly checked: readonly Rule[];
    readonly findings: readonly Finding[];
    /** No finding is an error. */
    readonly passed: boolean;
}

/**
 * Holds a plugin against what every plugin keeps to: its package, its import, its routes, its README, a hundred times off and on with
 * nothing left, and the same answers from another thread.
 *
 * @param place - the package's folder, or anything in it, such as a test's `import.meta.url`
 */
export async function runConformance(
    place: string | URL,
    options: ConformanceOptions = {}
): Promise<ConformanceReport> {
    const suite = new Suite(await folderOf(place), options);
    await suite.run();
    return suite.report();
}

class Suite {
    readonly #folder: string;
    #options: ConformanceOptions;
    readonly #findings: Finding[] = [];
    readonly #checked: Rule[] = [];
    #plugin: string;

    constructor(folder: string, options: ConformanceOptions) {
        this.#folder = folder;
        this.#options = options;
        this.#plugin = folder;
    }

    report(): ConformanceReport {
        return {
            plugin: this.#plugin,
            checked: this.#checked,
            findings: this.#findings,
            passed: this.#findings.every(({ level }) => level === 'warning')
        };
    }

    async run(): Promise<void> {
        const packageJson = await readPackageJson(this.#folder).catch(() => null);
        if (packageJson === null) {
            this.#note('package', [
                errorOf(
                    'package',
                    this.#folder,
                    'There is no package.json that can be read',
                    'A plugin is an npm package: portico plugin create makes one'
                )
            ]);
            return;
        }
        this.#note('package', checkPackage(packageJson));
        const findings = this.#options.manifest?.(packageJson) ?? [];
        try {
            this.#plugin = readTestPackage(this.#folder).manifest.name;
            this.#note('manifest', findings);
        } catch (error) {
            // What the caller found says it with a code.
            const isKnown = findings.some(({ level }) => level === 'error');
            this.#note(
                'manifest',
                isKnown
                    ? findings
                    : [
                          errorOf(
                              'manifest',
                              'package.json',
                              (error as Error).message,
                              'Add the field "portico" with a name and the range of SDK versions: { "name": "hello", "sdk": "^1.0.0" }'
                          )
                      ]
            );
        }
        if (this.#findings.some(({ rule, level }) => rule === 'manifest' && level === 'error')) {
            return;
        }
        this.#options = { ...(await this.#fileOptions()), ...this.#options };
        const entry = await entryOf(this.#folder, packageJson);
        if (entry === null) {
            this.#note('import', [
                errorOf(
                    'import',
                    'package.json',
                    '"exports" names no file that is there',
                    'Build the plugin first (npm run build), or correct "exports"'
                )
            ]);
            return;
        }
        const definition = await this.#import(entry);
        if (definition !== null) {
            await this.#runs(definition, entry);
        }
    }

    async #runs(definition: PluginDefinition, entry: string): Promise<void> {
        const partners = {
            ...Object.fromEntries([...definition.requires, ...definition.optional].map((name) => [name, {}])),
            ...this.#options.partners
        };
        const options: TestHostOptions = {
            package: this.#folder,
            partners,
            quiet: true,
            ...(this.#options.settings === undefined ? {} : { settings: this.#options.settings })
        };
        let host: TestHost;
        try {
            host = await createTestHost(definition, options);
        } catch (error) {
            const { code = 'UNKNOWN', message } = error as Partial<PluginFailure> & Error;
            this.#note('start', [
                errorOf(
                    'start',
                    code,
                    message,
                    code === 'SETTINGS_REQUIRED'
                        ? 'Give the suite settings: conformance.json { "settings": { … } }'
                        : 'See what the message says; docs/plugins/reference.md lists the codes'
                )
            ]);
            return;
        }
        try {
            this.#note('start', []);
            await this.#options.prepare?.(host);
            const { routes } = host.document;
            this.#note('routes', routes.flatMap(checkRoute));
            const readme = await readFile(join(this.#folder, 'README.md'), 'utf8').catch(() => null);
            const settings = Object.keys(
                (definition.settings as { describe?(): { keys?: object } } | null)?.describe?.().keys ?? {}
            );
            this.#note(
                'readme',
                readme === null
                    ? [
                          warningOf(
                              'readme',
                              'README.md',
                              'There is none',
                              'Say what the plugin does; registries show it'
                          )
                      ]
                    : checkReadme(readme, {
                          manifest: readTestPackage(this.#folder).manifest,
                          routes,
                          settings
                      })
            );
            const requests = this.#options.requests ?? requestsOf(routes);
            this.#note('cycles', await checkCycles(host, this.#options.cycles ?? 100, requests));
            const grants = readTestPackage(this.#folder).manifest.capabilities ?? {};
            this.#note('threads', await checkThreads(definition, entry, { ...options, grants }, requests));
        } finally {
            await host.close().catch(() => undefined);
        }
    }

    /** The first code of the plugin that runs. */
    async #import(entry: string): Promise<PluginDefinition | null> {
        const loaded = await this.#options.load?.(this.#folder);
        if (loaded !== undefined) {
            this.#note('import', 'length' in loaded ? loaded : []);
            return 'length' in loaded ? null : loaded;
        }
        const leaks = new LeakDetector(true);
        const module = await leaks
            .enter(() => import(pathToFileURL(entry).href) as Promise<{ readonly default?: unknown }>)
            .catch((error: unknown) => error as Error);
        const work = 'Move work into onStart: an import has no effect of its own';
        const findings = (await leaks.end()).map(({ kind, name }) =>
            errorOf('import', entry, `Importing it started a ${kind}, at ${name}`, work)
        );
        if (module instanceof Error) {
            findings.push(
                errorOf(
                    'import',
                    entry,
                    `Importing it failed: ${module.message}`,
                    'Run it alone, with node, to see where'
                )
            );
        } else if (!isDefinition(module.default)) {
            findings.push(
                errorOf(
                    'import',
                    entry,
                    'Its default export was not made by definePlugin',
                    'export default definePlugin({ … })'
                )
            );
        }
        this.#note('import', findings);
        return module instanceof Error || !isDefinition(module.default) ? null : module.default;
    }

    async #fileOptions(): Promise<ConformanceOptions> {
        const text = await readFile(join(this.#folder, 'conformance.json'), 'utf8').catch(() => '{}');
        const { settings, requests } = JSON.parse(text) as ConformanceOptions;
        return {
            ...(settings === undefined ? {} : { settings }),
            ...(requests === undefined ? {} : { requests })
        };
    }

    #note(rule: Rule, findings: readonly Finding[]): void {
        this.#checked.push(rule);
        this.#findings.push(...findings);
    }
}

/** What every route says of itself. */
function checkRoute({ id, kind, methods, path, summary, schemas }: RouteDocument): readonly Finding[] {
    const where = `${methods.join('|')} ${path} (${id})`;
    return [
        ...(summary === `${methods[0]} ${path}`
            ? [
                  errorOf(
                      'routes',
                      where,
                      'It has no summary',
                      "Say in one line what it does: summary: 'List the greetings'"
                  )
              ]
            : []),
        ...((kind === 'json' || kind === 'upload') && schemas.returns === undefined
            ? [
                  errorOf(
                      'routes',
                      where,
                      'It does not say what it answers',
                      'Give it `returns`, the schema of `data`: it types the handler, checks it in tests and documents it'
                  )
              ]
            : [])
    ];
}

async function folderOf(place: string | URL): Promise<string> {
    const path = resolve(
        typeof place === 'string' && !place.startsWith('file:') ? place : fileURLToPath(place)
    );
    try {
        return readTestPackage(path).folder ?? path;
    } catch {
        return realpath(path).catch(() => dirname(path));
    }
}
