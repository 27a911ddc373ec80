/** Turns a Caddyfile into the engine's own configuration, by the engine's own adapter. */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';

import { type EngineFolders, writeForEngine } from '../../files/home.ts';
import { type EngineConfig, EngineRejected, EngineUnavailable } from '../../port.ts';
import { runBinary } from '../process/binary.ts';

const timeLimitMs = 30_000;

/** Bytes of a configuration that an adapter may answer. */
const maxBytes = 64 * 1024 * 1024;

/**
 * Why a Caddyfile is not handed to the adapter, which would read files and variables of this machine for it; null when it may be.
 * Quotes and backslashes are taken out first: the adapter does not see them either.
 */
export const outsideOf = (text: string): string | null => {
    const plain = text.replaceAll(/["`\\]/g, '');
    if (plain.includes('{$')) {
        return 'it takes values from environment variables ({$…}), which are not here: write the values instead';
    }

    const snippets = new Set([...plain.matchAll(/(?:^|\s)\(([\w.-]+)\)\s*\{/g)].map(([, name]) => name));
    for (const [, name = ''] of plain.matchAll(/(?<![\w./-])import\s+(\S*)/g)) {
        if (!snippets.has(name)) {
            return `it imports ${name === '' ? 'something' : name}, which is not a snippet of it: put the content of the other file in its place`;
        }
    }

    return /(?<![\w./-])import(?:\s*$|\s*[{}])/m.test(plain)
        ? 'it imports something without saying what'
        : null;
};

/**
 * Runs as the engine's user, without any right, and ends after 30 s.
 * @throws EngineRejected with the adapter's own message, or why the text is not handed to it
 * @throws EngineUnavailable when the process gives no answer
 */
export const adaptCaddyfile = async (
    folders: EngineFolders,
    binary: string,
    text: string,
    signal: AbortSignal
): Promise<EngineConfig> => {
    const fault = outsideOf(text);
    if (fault !== null) {
        throw new EngineRejected(fault);
    }

    const file = join(folders.runtime, `adapt-${randomBytes(8).toString('hex')}`);
    try {
        writeForEngine(folders, file, text);
        const { code, stdout, stderr } = await runBinary(
            folders,
            binary,
            ['adapt', '--adapter', 'caddyfile', '--config', file],
            { timeoutMs: timeLimitMs, signal, mostBytes: maxBytes }
        );
        if (code === 0) {
            return JSON.parse(stdout) as EngineConfig;
        }

        const lines = stderr
            .split('\n')
            .map((line) => line.trim())
            .filter((line) => line !== '');
        const message = (lines.findLast((line) => !line.startsWith('{')) ?? '')
            .replace(/^(?:adapt|Error): /, '')
            .replaceAll(file, 'Caddyfile')
            .slice(0, 1024);
        if (code === null || code >= 126 || message === '') {
            throw new EngineUnavailable("the engine's adapter ended without an answer");
        }

        throw new EngineRejected(message);
    } finally {
        rmSync(file, { force: true });
    }
};
