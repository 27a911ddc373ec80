import type { EngineDriver } from './port.ts';

/** Where the driver says what it does. pino's logger fits. */
export interface EngineLog {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
    error(fields: object, message: string): void;
}

export interface CaddyDriverOptions {
    /** Path of the binary; null: `caddy` on the PATH. */
    readonly binary: string | null;
    /** The panel's data folder; it exists and is 0700. */
    readonly dataDir: string;
    /** Who the engine runs as; null: the package's user under root, else the panel's own. */
    readonly user: string | null;
    readonly log: EngineLog;
}

/** The one engine driver: Caddy over its admin API. Starts nothing by itself. */
export declare const createCaddyDriver: (options: CaddyDriverOptions) => EngineDriver;
