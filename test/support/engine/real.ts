import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CaddyDriver, type CaddyDriverOptions } from '../../../core/src/engine/caddy/caddy.ts';
import { adminConfig, type EngineFolders, engineHome } from '../../../core/src/engine/files/home.ts';
import type { EngineConfig, EngineDriver } from '../../../core/src/engine/port.ts';

/** A data folder with the driver of a real engine. `close` ends everything that was started, and removes the folder. */
export interface RealEngine {
    readonly dataDir: string;
    readonly folders: EngineFolders;
    /** The first driver. */
    readonly driver: EngineDriver;
    /** Another driver of the same folder, as another panel process would have. */
    another(options?: Partial<CaddyDriverOptions>): EngineDriver;
    /** A configuration that answers `body` on ports of 127.0.0.1, or on listen addresses given as text. */
    answering(body: string, ...listen: readonly (number | string)[]): EngineConfig;
    close(): Promise<void>;
}

const silence = (): void => undefined;

/** Time limits that are short for tests, and long enough for a busy machine. */
const quickTiming = {
    tickMs: 50,
    pingEveryMs: 250,
    pingMs: 2000,
    pingsMissed: 2,
    backoffMs: 100,
    graceMs: 2000
};

/** Makes the folder and the driver. @param below - folders between the temporary folder and the data folder */
export const createRealEngine = (options: Partial<CaddyDriverOptions> = {}, below = ''): RealEngine => {
    const top = mkdtempSync(join(tmpdir(), 'portico-engine-'));
    const dataDir = join(top, below, 'data');
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    chmodSync(dataDir, 0o700);
    const folders = engineHome(dataDir, options.user ?? null);
    const drivers: EngineDriver[] = [];
    const another = (more: Partial<CaddyDriverOptions> = {}): EngineDriver => {
        const driver = new CaddyDriver({
            binary: null,
            dataDir,
            user: null,
            log: { info: silence, warn: silence, error: silence },
            timing: quickTiming,
            ...options,
            ...more
        });
        drivers.push(driver);
        return driver;
    };

    return {
        dataDir,
        folders,
        driver: another(),
        another,
        answering: (body, ...listen) => ({
            admin: adminConfig(folders),
            storage: { module: 'file_system', root: folders.storage },
            logging: {
                logs: {
                    default: {
                        writer: { output: 'file', filename: folders.logFile, roll_size_mb: 1, roll_keep: 2 },
                        encoder: { format: 'json' }
                    }
                }
            },
            apps: {
                http: {
                    servers: Object.fromEntries(
                        listen.map((address, index) => [
                            `server${index}`,
                            {
                                listen: [typeof address === 'number' ? `127.0.0.1:${address}` : address],
                                automatic_https: { disable: true },
                                routes: [{ handle: [{ handler: 'static_response', body }] }]
                            }
                        ])
                    )
                }
            }
        }),
        async close() {
            const [first, ...others] = drivers;
            await Promise.all(others.map((driver) => driver.close()));
            await first?.stop().catch(silence);
            await first?.close();
            for (const path of [folders.persistent, folders.runtime, top]) {
                rmSync(path, { recursive: true, force: true });
            }
        }
    };
};

/** The body that a port answers with, on a new connection. */
export const answerOf = async (port: number): Promise<string> =>
    (
        await fetch(`http://127.0.0.1:${port}/`, {
            headers: { connection: 'close' },
            signal: AbortSignal.timeout(5000)
        })
    ).text();
