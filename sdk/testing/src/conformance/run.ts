/** The conformance suite: what every plugin keeps to. */
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { isDefinition, type PluginDefinition } from '@portico/sdk';
import type { RouteDocument } from '@portico/sdk/host';

import { createTestHost, type TestHost } from '../panel/host.ts';
import type { PluginFailure, TestHostOptions } from '../panel/options.ts';
import { packageFolder, readTestPackage } from '../panel/package.ts';
import { checkCycles } from './cycles.ts';
import { checkEntities } from './database.ts';
import { errorOf, type Finding, type Rule, warningOf } from './finding.ts';
import { importPlugin, judgeManifest, readPackageJson } from './load.ts';
import { checkLabels } from './package/labels.ts';
import { checkPackage } from './package/package.ts';
import { checkPlaces } from './package/places.ts';
import { checkReadme } from './package/readme.ts';
import { checkRequests, type ConformanceRequest, requestsOf } from './requests.ts';
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
}

/** What came of it. */
export interface ConformanceReport {
    /** Name of the plugin; its folder when its manifest cannot be read. */
    readonly plugin: string;
    /** Rules that were looked at; after a failure that keeps it from running, the rest is not. */
    readonly checked: readonly Rule[];
    readonly findings: readonly Finding[];
    /** No finding is an error. */
    readonly passed: boolean;
}

/**
 * Holds a plugin against what every plugin keeps to: its package, its import, its routes, its README, its tables, its answers, a hundred times off and on with
 * nothing left, and the same answers from another thread.
 *
 * @param place - the package's folder, or anything in it, such as a test's `import.meta.url`
 */
export async function runConformance(
    place: string | URL,
    options: ConformanceOptions = {}
): Promise<ConformanceReport> {
    const scratch = await mkdtemp(join(tmpdir(), 'portico-conformance-'));
    try {
        const found = packageFolder(place);
        const folder = found === null ? String(place) : await realpath(found);
        const suite = new Suite(folder, scratch, options);
        await suite.run();
        return suite.report();
    } finally {
        await rm(scratch, { recursive: true, force: true });
    }
}

class Suite {
    readonly #folder: string;
    readonly #scratch: string;
    #options: ConformanceOptions;
    readonly #findings: Finding[] = [];
    readonly #checked: Rule[] = [];
    #plugin: string;

    constructor(folder: string, scratch: string, options: ConformanceOptions) {
        this.#folder = this.#plugin = folder;
        this.#scratch = scratch;
        this.#options = options;
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
            const mend = 'A plugin is an npm package: portico plugin create makes one';
            this.#note('package', errorOf('package', this.#folder, 'It has no package.json to read', mend));
            return;
        }
        this.#note('package', ...checkPackage(packageJson));
        const refusals = await judgeManifest(packageJson);
        this.#note('manifest', ...refusals);
        if (refusals.length > 0) {
            return;
        }
        this.#plugin = readTestPackage(this.#folder).manifest.name;
        this.#options = { ...(await this.#fileOptions()), ...this.#options };
        const imported = await importPlugin(this.#folder, this.#scratch);
        if (isDefinition(imported)) {
            this.#note('import');
            await this.#start(imported);
        } else {
            this.#note('import', imported);
        }
    }

    async #start(definition: PluginDefinition): Promise<void> {
        const { partners, settings } = this.#options;
        const named = [...definition.requires, ...definition.optional].map((name) => [name, {}] as const);
        const options: TestHostOptions = {
            package: this.#folder,
            partners: { ...Object.fromEntries(named), ...partners },
            quiet: true,
            ...(settings === undefined ? {} : { settings })
        };
        let host: TestHost;
        try {
            host = await createTestHost(definition, options);
        } catch (error) {
            const { code = 'UNKNOWN', message } = error as Partial<PluginFailure> & Error;
            const mend =
                code === 'SETTINGS_REQUIRED'
                    ? 'Give the suite settings: conformance.json { "settings": { … } }'
                    : 'See what the message says; docs/plugins/reference.md lists the codes';
            this.#note('start', errorOf('start', code, message, mend));
            return;
        }
        try {
            this.#note('start');
            await this.#look(host, definition, options);
        } finally {
            await host.close().catch(() => undefined);
        }
    }

    async #look(host: TestHost, definition: PluginDefinition, options: TestHostOptions): Promise<void> {
        await this.#options.prepare?.(host);
        const { routes } = host.document;
        const { manifest } = readTestPackage(this.#folder);
        this.#note('routes', ...routes.flatMap(checkRoute));
        // Every schema of joi describes itself; the SDK's type of a schema does not say so.
        const schema = definition.settings as { describe?(): { keys?: object } } | null;
        const described = schema?.describe?.();
        this.#note('labels', ...checkLabels(routes, described));
        this.#note('places', ...checkPlaces(manifest, routes));
        const settings = Object.keys(described?.keys ?? {});
        const readme = await readFile(join(this.#folder, 'README.md'), 'utf8').catch(() => null);
        this.#note(
            'readme',
            ...(readme === null
                ? [warningOf('readme', 'README.md', 'There is none', 'Say what it does; registries show it')]
                : checkReadme(readme, { manifest, routes, settings }))
        );
        const { requests = requestsOf(routes), cycles = 100 } = this.#options;
        this.#note('database', ...(await checkEntities(host, definition)));
        this.#note('requests', ...(await checkRequests(host, requests)));
        this.#note('cycles', ...(await checkCycles(host, cycles, requests)));
        this.#note('threads', ...(await checkThreads(definition, this.#folder, options, requests)));
    }

    async #fileOptions(): Promise<ConformanceOptions> {
        const text = await readFile(join(this.#folder, 'conformance.json'), 'utf8').catch(() => '{}');
        const { settings, requests } = JSON.parse(text) as ConformanceOptions;
        return {
            ...(settings === undefined ? {} : { settings }),
            ...(requests === undefined ? {} : { requests })
        };
    }

    #note(rule: Rule, ...findings: readonly Finding[]): void {
        this.#checked.push(rule);
        this.#findings.push(...findings);
    }
}

/** What every route says of itself. */
function checkRoute({ id, kind, methods, path, summary, schemas }: RouteDocument): readonly Finding[] {
    const where = `${methods.join('|')} ${path} (${id})`;
    const findings: Finding[] = [];
    if (summary === `${methods[0]} ${path}`) {
        const mend = "Say in one line what it does: summary: 'List the greetings'";
        findings.push(errorOf('routes', where, 'It has no summary', mend));
    }
    if ((kind === 'json' || kind === 'upload') && schemas.returns === undefined) {
        const mend =
            'Give it `returns`, the schema of `data`: it types the handler, checks it in tests and documents it';
        findings.push(errorOf('routes', where, 'It does not say what it answers', mend));
    }
    return findings;
}
