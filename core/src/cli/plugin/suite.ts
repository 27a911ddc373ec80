/** A plugin, from a folder or a packed archive, held against what every plugin keeps to and against what this panel takes. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, realpath, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import {
    createRegistry,
    type Host,
    readManifest,
    type Registry,
    resolve as resolvePlugins
} from '@portico/registry';
import type { PluginDefinition } from '@portico/sdk';

import { CommandError } from '../command/command-error.ts';
import { type Output, toPlainText } from '../command/output.ts';
import { hostSdk } from './develop/host-sdk.ts';
import { reservedNames } from './develop/reserved-names.ts';
import { type ConformanceReport, type Finding, loadConformance } from './develop/testing-kit.ts';

const run = promisify(execFile);
const npmMs = 300_000;

const mends: Readonly<Record<string, string>> = {
    NAME_RESERVED: 'Choose another name',
    SDK_RANGE: 'Widen the range, or try it with a panel that has such an SDK',
    SDK_RANGE_MISSING: 'Add "sdk": "^1.0.0" to the field "portico"',
    SDK_BUNDLED: 'Make it a peer dependency, and keep bundlers from taking it in',
    SIDE_EFFECT: 'Move work into onStart',
    IMPORT_TIMEOUT: 'Import must end at once: move waiting into onStart',
    ENTRY_MISSING: 'Build the plugin first (npm run build), or correct "exports"',
    DEFINITION_MISSING: 'export default definePlugin({ … })'
};

/** Runs the suite on a folder or on a `.tgz`, and says what it found. @returns the exit code */
export async function checkPlugin(
    place: string,
    output: Output,
    options: { readonly cycles: number }
): Promise<number> {
    const scratch = await mkdtemp(join(tmpdir(), 'portico-plugin-'));
    try {
        const path = resolve(place);
        const kind = await stat(path).catch(() => null);
        if (kind === null) {
            throw new CommandError(`There is no ${path}`);
        }
        const sdk = await hostSdk();
        const host: Host = { sdk: sdk.version, node: process.versions.node };
        const registry = await createRegistry({
            dataDir: join(scratch, 'panel'),
            registryUrl: 'http://127.0.0.1:9',
            hmacKey: new Uint8Array(32),
            reserved: reservedNames,
            host,
            log: { info: () => undefined, warn: () => undefined }
        });
        const folder = await realpath(kind.isDirectory() ? path : await unpack(path, scratch, sdk.folder));
        const { runConformance } = await loadConformance();
        const report = await runConformance(folder, {
            cycles: options.cycles,
            manifest: (packageJson) => manifestFindings(packageJson, host),
            load: (each) => load(each, host, registry)
        });
        show(report, output);
        return report.passed ? 0 : 1;
    } finally {
        await rm(scratch, { recursive: true, force: true });
    }
}

/** As an install would see it: what npm would fetch is fetched, and the SDK is the panel's. */
async function unpack(archive: string, scratch: string, sdkFolder: string): Promise<string> {
    const target = join(scratch, 'unpacked');
    await mkdir(target);
    await run('tar', ['-xzf', archive, '-C', target, '--no-same-owner']).catch((error: unknown) => {
        throw new CommandError(`${archive} is not an archive that npm pack wrote`, 1, { cause: error });
    });
    const folder = join(target, 'package');
    const { dependencies = {} } = await readPackage(folder).catch((error: unknown) => {
        throw new CommandError(`${archive} has no package in it`, 1, { cause: error });
    });
    if (Object.keys(dependencies).length > 0) {
        await run(
            'npm',
            [
                'install',
                '--omit=dev',
                '--omit=peer',
                '--ignore-scripts',
                '--no-audit',
                '--no-fund',
                '--no-save'
            ],
            { cwd: folder, timeout: npmMs }
        ).catch((error: unknown) => {
            throw new CommandError(
                `What it depends on could not be installed: ${(error as { stderr?: string }).stderr ?? String(error)}`,
                1,
                { cause: error }
            );
        });
    }
    await mkdir(join(target, 'node_modules', '@portico'), { recursive: true });
    await symlink(sdkFolder, join(target, 'node_modules', '@portico', 'sdk'));
    return folder;
}

async function readPackage(folder: string): Promise<{ readonly dependencies?: object }> {
    return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
        readonly dependencies?: object;
    };
}

function manifestFindings(packageJson: unknown, host: Host): readonly Finding[] {
    const judged = readManifest(packageJson, reservedNames, host.sdk);
    if ('fault' in judged) {
        return [finding('manifest', judged.fault.code, judged.fault.message)];
    }
    // What it requires is not here: only whether this panel is one that it works with is asked.
    const { plugin } = judged;
    return resolvePlugins(
        [{ ...plugin, manifest: { ...plugin.manifest, requires: {} } }],
        host
    ).unresolved.map(({ code, message }) => finding('manifest', code, message));
}

async function load(
    folder: string,
    host: Host,
    registry: Registry
): Promise<PluginDefinition | readonly Finding[]> {
    const loaded = await registry.load({
        origin: 'folder',
        folder,
        lock: null,
        result: readManifest(await readPackage(folder), reservedNames, host.sdk)
    });
    return 'failure' in loaded
        ? [finding('import', loaded.failure.code, loaded.failure.message)]
        : loaded.definition;
}

function finding(rule: 'manifest' | 'import', code: string, message: string): Finding {
    return {
        rule,
        level: 'error',
        where: code,
        message,
        mend: mends[code] ?? 'See what the message says; docs/plugins/reference.md lists the codes'
    };
}

function show({ plugin, checked, findings, passed }: ConformanceReport, output: Output): void {
    const lines = findings.map(
        ({ level, rule, where, message, mend }) =>
            `${level === 'error' ? 'FAIL' : 'warn'}  ${rule.padEnd(9)} ${where}: ${message}\n${' '.repeat(16)}→ ${mend}`
    );
    output.result(
        { plugin, passed, checked, findings },
        toPlainText(
            [
                ...lines,
                `${plugin}: ${passed ? 'keeps to everything that was looked at' : `${findings.filter(({ level }) => level === 'error').length} to mend`} (${checked.join(', ')})`
            ].join('\n')
        )
    );
}
