import type { EngineFolders } from '../../files/home.ts';
import type { EngineSettings } from '../../site.ts';
import type { EngineFeatures } from '../features.ts';

/** The folders that a configuration names. */
export type CompileFolders = Pick<
    EngineFolders,
    'adminSocket' | 'storage' | 'table' | 'certificates' | 'logFile' | 'accessLogFile'
>;

/** Everything besides sites and certificates that a configuration is made from. */
export interface CompileContext {
    readonly settings: EngineSettings;
    readonly folders: CompileFolders;
    readonly features: EngineFeatures;
    /** The one address that the sites are served on; left out: all of them. */
    readonly address?: string;
}

/** A part of the engine's configuration. */
export type Part = Readonly<Record<string, unknown>>;
