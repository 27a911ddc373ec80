/** What a test says of the panel that it starts, and how that fails. */
import type {
    Capabilities,
    GenerationFault,
    GenerationTiming,
    Manifest,
    ReleaseReport
} from '@portico/core/plugin-runtime';
import type { PluginDefinition } from '@portico/sdk';

import type { FakeContract } from '../doubles/partners.ts';
import { readTestPackage, type TestPackage } from './package.ts';
import type { TestRuntime } from './runtime.ts';

/** How the plugin's code is reached: `copy` copies whatever crosses, as between threads; `none` calls it directly; or a runtime of the test's own. */
export type Boundary = 'copy' | 'none' | ((plugin: BoundaryPlugin) => TestRuntime);

/** What a runtime of the test's own may want to know. */
export interface BoundaryPlugin {
    readonly name: string;
    readonly version: string;
    readonly dataDir: string;
    readonly machine: string;
}

/** Milliseconds; the panel's own are setup 10,000, start 30,000, stop 8,000, one health check 5,000. */
export interface TestTiming extends GenerationTiming {
    /** How long the test waits for an answer, an event, a task or a run, of real time; default 5,000. */
    readonly patienceMs: number;
}

/** What a test's panel is made of; everything may be left out. */
export interface TestHostOptions {
    /** The plugin's package: a folder, or anything in it, such as the test's `import.meta.url`. Its package.json is the manifest. */
    readonly package?: string | URL;
    /** In place of what the package says, or of a package: then the plugin is named `test` and asks for what stands here. */
    readonly manifest?: Partial<Manifest>;
    /** As an admin would set them. */
    readonly settings?: Readonly<Record<string, unknown>>;
    /** What the admin granted; default: all that the manifest asks for. */
    readonly grants?: Capabilities;
    /** Folders of the test's machine that no grant opens, as those of the panel itself are for a plugin: `/var/lib/portico`. */
    readonly forbidden?: readonly string[];
    /** Fakes of the plugins that this one works with. */
    readonly partners?: Readonly<Record<string, FakeContract>>;
    /** `real`: the files, programs, services and local sockets of the machine that runs the test. Default `empty`: a folder of the test's own, and no program. */
    readonly machine?: 'empty' | 'real';
    /** When the test's clock begins; default: now. */
    readonly now?: Date | number;
    /** Default: `copy`, which finds what could not cross between threads. */
    readonly boundary?: Boundary;
    readonly timing?: Partial<TestTiming>;
    /** Bugs of the plugin are not shown on standard error, only in `log`: for tests that provoke them. */
    readonly quiet?: boolean;
}

/** Why a plugin does not run, as its record in the panel would say. */
export class PluginFailure extends Error {
    readonly stage: GenerationFault['stage'];
    /** As in the panel: SETTINGS_REQUIRED, SETTINGS_INVALID, MIGRATION_FAILED, SETUP_FAILED, SETUP_TIMEOUT, REGISTRATION_INVALID, START_FAILED, START_TIMEOUT. */
    readonly code: string;

    /** @param thrown - what the plugin's code threw, where it is known whole: a failure that crossed the boundary has lost its words @internal */
    constructor(
        { stage, code, message, cause }: GenerationFault,
        thrown: { readonly message?: unknown } | undefined
    ) {
        super(`${code}: ${String(thrown?.message ?? message)}`, { cause: thrown ?? cause });
        this.name = 'PluginFailure';
        this.stage = stage;
        this.code = code;
    }
}

/** The plugin left something behind. */
export class LeakError extends Error {
    /** One line for each thing. */
    readonly leaks: readonly string[];

    /** @internal */
    constructor(plugin: string, leaks: readonly string[]) {
        super(`${plugin} left behind when it stopped:\n${leaks.map((leak) => `  - ${leak}`).join('\n')}`);
        this.name = 'LeakError';
        this.leaks = leaks;
    }
}

/** What a plugin left behind, one line for each thing; empty when it ended cleanly. */
export function leaksOf({ leaked, failures }: ReleaseReport): readonly string[] {
    return [
        ...failures.map((failure) => `onStop failed: ${failure}`),
        ...leaked.map(({ kind, name, error }) => `${kind} ${name}: ${error}`)
    ];
}

/** The package of the plugin under test. */
export function packageOf(
    code: PluginDefinition,
    { package: place, manifest = {} }: TestHostOptions
): TestPackage {
    const named = (names: readonly string[]): Record<string, string> =>
        Object.fromEntries(names.map((name) => [name, '*']));
    const found: TestPackage =
        place === undefined
            ? {
                  package: '@test/plugin',
                  version: '1.0.0',
                  title: 'test',
                  node: null,
                  folder: null,
                  manifest: {
                      name: 'test',
                      sdk: '*',
                      requires: named(code.requires),
                      optional: named(code.optional)
                  }
              }
            : readTestPackage(place);
    return { ...found, manifest: { ...found.manifest, ...manifest } };
}
