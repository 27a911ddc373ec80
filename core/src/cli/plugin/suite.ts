/** A plugin, from a folder or a packed archive, held against what every plugin keeps to and against what this panel takes. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { CommandError } from '../command/command-error.ts';
import { type Output, toPlainText } from '../command/output.ts';
import { hostSdk } from './develop/host-sdk.ts';
import { type ConformanceReport, loadConformance } from './develop/testing-kit.ts';

const run = promisify(execFile);
const npmMs = 300_000;

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
        const folder = kind.isDirectory() ? path : await unpack(path, scratch);
        const { runConformance } = await loadConformance();
        const report = await runConformance(folder, options);
        show(report, output);
        return report.passed ? 0 : 1;
    } finally {
        await rm(scratch, { recursive: true, force: true });
    }
}

/** As an install would see it: what npm would fetch is fetched, and the SDK is the panel's. */
async function unpack(archive: string, scratch: string): Promise<string> {
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
    await symlink((await hostSdk()).folder, join(target, 'node_modules', '@portico', 'sdk'));
    return folder;
}

async function readPackage(folder: string): Promise<{ readonly dependencies?: object }> {
    return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
        readonly dependencies?: object;
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
