import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';

import { type EngineFolders, writeForEngine } from '../../files/home.ts';
import { type EngineConfig, EngineRejected, EngineUnavailable } from '../../port.ts';
import { runBinary } from '../process/binary.ts';

const timeLimitMs = 60_000;

/**
 * Proves a configuration in a process of its own, which neither listens nor writes where the running engine does: its
 * storage and its logs are thrown away.
 * @throws EngineRejected with the engine's own message
 * @throws EngineUnavailable when the process gives no verdict
 */
export const validateConfig = async (
    folders: EngineFolders,
    binary: string,
    config: EngineConfig,
    signal: AbortSignal
): Promise<void> => {
    const name = randomBytes(8).toString('hex');
    const file = join(folders.runtime, `check-${name}.json`);
    const storage = join(folders.scratch, name);
    try {
        writeForEngine(folders, file, JSON.stringify(harmless(config, storage)));
        const result = await runBinary(folders, binary, ['validate', '--config', file], {
            timeoutMs: timeLimitMs,
            signal
        });
        if (result.code === 0) {
            return;
        }

        const message = verdictOf(result.stderr)
            .replaceAll(file, 'the configuration')
            .replaceAll(storage, 'the storage');
        if (result.code === null || result.code >= 126 || message === '') {
            throw new EngineUnavailable(
                `the engine's check of the configuration ended without a verdict${message === '' ? '' : `: ${message}`}`
            );
        }

        throw new EngineRejected(message);
    } finally {
        rmSync(file, { force: true });
        rmSync(storage, { recursive: true, force: true });
    }
};

const harmless = (config: EngineConfig, storage: string): EngineConfig => {
    const { logging, ...rest } = config;
    const logs = Object.entries(record(record(logging)['logs']));
    return {
        ...rest,
        admin: { disabled: true, config: { persist: false } },
        storage: { module: 'file_system', root: storage },
        ...(logging === undefined
            ? {}
            : {
                  logging: {
                      logs: Object.fromEntries(
                          logs.map(([name, log]) => [name, { ...record(log), writer: { output: 'discard' } }])
                      )
                  }
              })
    };
};

/** The engine logs JSON lines and ends with its error; a panic or `sh` say it in their own way. */
const verdictOf = (stderr: string): string => {
    const lines = stderr
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '');
    const error = lines.findLast((line) => line.startsWith('Error: '))?.slice('Error: '.length);
    return (error ?? lines.findLast((line) => !line.startsWith('{')) ?? '').slice(0, 4096);
};

const record = (value: unknown): Readonly<Record<string, unknown>> =>
    typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
