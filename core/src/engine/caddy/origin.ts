/**
 * The name under which the engine's admin API lets itself be asked. It is random for each process: a request that a visitor led to the admin
 * socket would have to know it.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

import { adminConfig, type EngineFolders } from '../files/home.ts';
import type { EngineConfig } from '../port.ts';

const pattern = 'portico-[0-9a-f]{32}';

/** A name for a process that is about to start. */
export const makeOrigin = (): string => `portico-${randomBytes(16).toString('hex')}`;

/** The name that the running engine was started with; the one of `adminConfig` for an engine that an older panel started. */
export const readOrigin = (folders: EngineFolders): string => {
    try {
        const text = readFileSync(folders.originFile, 'utf8');
        return new RegExp(`^${pattern}$`).test(text) ? text : plainOrigin(folders);
    } catch {
        return plainOrigin(folders);
    }
};

/** A configuration as the engine gets it. Everywhere else the name of `adminConfig` stands for the random one. */
export const withOrigin = (config: EngineConfig, folders: EngineFolders, origin: string): EngineConfig => ({
    ...config,
    admin: { ...adminConfig(folders), origins: [origin] }
});

/** The reverse of {@link withOrigin}. An admin API that is not the panel's is left as it is: it is drift. */
export const withoutOrigin = (config: EngineConfig, folders: EngineFolders): EngineConfig => {
    const { admin } = withOrigin(config, folders, readOrigin(folders));
    return isDeepStrictEqual(config['admin'], admin) ? { ...config, admin: adminConfig(folders) } : config;
};

/** Hides such names in a line of the engine's log, which has one for each request to the admin API. */
export const hideOrigins = (line: string): string => line.replaceAll(new RegExp(pattern, 'g'), 'portico');

const plainOrigin = (folders: EngineFolders): string =>
    (adminConfig(folders)['origins'] as string[])[0] ?? '';
