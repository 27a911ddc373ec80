import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type Incident, readIncidents } from '../../../../../core/src/plugins/manager/watchdog/incident.ts';
import type { Options } from '../../../../support/plugins/processes/watched-process.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const entry = fileURLToPath(
    new URL('../../../../support/plugins/processes/watched-process.ts', import.meta.url)
);

interface Outcome {
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly output: string;
    readonly incidents: readonly Incident[];
}

/** Runs code as a plugin's, in a process with a watchdog. */
async function watch(
    root: string,
    name: string,
    harm: string,
    { node = [], ...options }: Options & { readonly node?: readonly string[] } = {}
): Promise<Outcome> {
    const incidents = join(root, `${name}-incidents`);
    const module = join(root, `${name}.mjs`);
    writeFileSync(
        module,
        `import { execFileSync } from 'node:child_process';\nexport function harm() {\n${harm}\n}\n`
    );
    const child = spawn(
        process.execPath,
        [
            '--conditions=portico-source',
            '--disable-warning=ExperimentalWarning',
            ...node,
            entry,
            incidents,
            module,
            JSON.stringify(options)
        ],
        { stdio: ['ignore', 'pipe', 'pipe'] }
    );
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
        child.once('close', (...end) => resolve(end))
    );
    return { code, signal, output, incidents: readIncidents(incidents) };
}

describe('Watchdog', { timeout: 120_000 }, () => {
    let root: string;
    before(() => {
        root = realpathSync(mkdtempSync(join(tmpdir(), 'portico-watchdog-')));
    });
    after(() => rmSync(root, { recursive: true, force: true }));

    it('names the plugin that blocks for ever, with the place, and ends the process', async () => {
        const { signal, output, incidents } = await watch(root, 'loop', 'for (;;) {}');
        expect(signal).to.equal('SIGKILL');
        expect(incidents.map(({ plugin, code }) => [plugin, code])).to.equal([['harmful', 'LOOP_BLOCKED']]);
        expect(incidents[0]?.message).to.contain('loop.mjs:3');
        expect(output).to.contain('The panel ends, because the plugin harmful has blocked it');
    });

    it('names a plugin that waits for a program, and lets the process go on', async () => {
        const { code, output, incidents } = await watch(root, 'sleep', "execFileSync('sleep', ['2']);", {
            waits: true
        });
        expect(code).to.equal(0);
        expect(incidents.map(({ message }) => message)).to.equal([
            'It blocked the whole panel for more than 0.5 s, in sleep.mjs:3'
        ]);
        expect(output).to.contain('noted LOOP_BLOCKED');
    });

    it('names no plugin for a block of the panel itself, and ends nothing', async () => {
        const { code, incidents } = await watch(
            root,
            'own',
            "globalThis.setTimeout(Function('const end = Date.now() + 2500; while (Date.now() < end);'), 0);"
        );
        expect([code, incidents]).to.equal([0, []]);
    });

    it('names the plugin that ends the process', async () => {
        const { code, incidents } = await watch(root, 'exit', 'process.exit(7);');
        expect(code).to.equal(7);
        expect(incidents.map(({ plugin, code: what }) => [plugin, what])).to.equal([
            ['harmful', 'PROCESS_EXITED']
        ]);
    });

    it('names the plugin that eats the memory, before it is gone', async () => {
        const { incidents } = await watch(
            root,
            'memory',
            'const all = []; for (;;) { all.push({ a: [1, 2, 3, all.length] }); }',
            { node: ['--max-old-space-size=400'], blockedMs: 60_000 }
        );
        expect(incidents.map(({ plugin, code }) => [plugin, code])).to.include([
            ['harmful', 'MEMORY_EXHAUSTED']
        ]);
    });
});
