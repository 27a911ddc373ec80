import { glob, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

export const lab = Lab.script();
const { describe, it } = lab;

const root = resolve(import.meta.dirname, '../..');

// Words that the core itself needs as values, though they are names of extensions too: a type of host, a check, a hook.
const coreWords = new Set(['backup', 'database', 'php']);
const plannedNames = [
    'ai',
    'appstore',
    'container',
    'containers',
    'cronjob',
    'deploy',
    'docker',
    'filemanager',
    'firewall',
    'mcpserver',
    'monitoring',
    'terminal'
];

describe('the core, the registry and the SDK', () => {
    it("contain no extension's name as a value", async () => {
        const existing = await Array.fromAsync(
            glob('extensions/*/package.json', { cwd: root }),
            (path) => path.split('/')[1]
        );
        const all = [...new Set([...plannedNames, ...existing])];
        const names = all.filter((name) => !coreWords.has(name ?? '')).join('|');
        const said = new RegExp(
            `@portico/plugin-[a-z]|plugins/(?:${all.join('|')})\\b|(['"\`])(?:${names})(?::[a-z]+)?\\1`
        );
        const found: string[] = [];
        for await (const path of glob('{core,registry,sdk}/src/**/*.ts', { cwd: root })) {
            const lines = (await readFile(join(root, path), 'utf8')).split('\n');
            lines.forEach((line, index) => {
                if (said.test(line)) {
                    found.push(`${path}:${index + 1} ${line.trim()}`);
                }
            });
        }
        expect(found).to.equal([]);
    });
});
