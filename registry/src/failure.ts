/** Every way in which a package can fail before it is set up. The codes are stable: records, answers and the documentation name them. */
import type { ManifestFault } from './manifest.ts';
import type { Unresolved } from './resolve/resolve.ts';

/** The stage at which a package stopped. */
export type Stage = 'discovered' | 'resolved' | 'loaded';

/** Why a plugin cannot be used; stays on its record. */
export interface StageFailure {
    readonly stage: Stage;
    readonly code: ManifestFault['code'] | Unresolved['code'] | LoadCode;
    /** One sentence for an admin. */
    readonly message: string;
}

/** Why a package that fits was not loaded. */
export type LoadCode =
    | 'ENTRY_MISSING' // package.json names no file to import, or one that is not there
    | 'SDK_BUNDLED' // a copy of the SDK or of MikroORM lies in the package
    | 'IMPORT_FAILED' // the module threw
    | 'IMPORT_TIMEOUT' // the import has not settled in time
    | 'SIDE_EFFECT' // importing it started something
    | 'DEFINITION_MISSING'; // its default export was not made by definePlugin

/** Why an install was refused. Nothing was changed. */
export type InstallCode =
    | 'SPEC_REFUSED' // not a registry name with a version
    | 'PACKAGE_NOT_FOUND' // the registry has no such package or version
    | 'REGISTRY_UNREACHABLE' // no answer, or one that is none, or it broke off
    | 'INTEGRITY_MISMATCH' // what came is not what the registry, or the caller, named
    | 'SIGNATURE_INVALID' // the registry publishes keys, and this is not signed by one of them
    | 'ARCHIVE_REFUSED' // links, paths that leave the folder, too many or too large entries
    | 'DEPENDENCY_REFUSED' // a dependency that is not a registry name with a version, or that brings its own copies
    | 'PACKAGE_REFUSED' // the package is no plugin for this panel: see `cause`
    | 'STORAGE_FULL'
    | 'CANCELLED';

/** An install that ended before anything was changed. */
export class InstallFailure extends Error {
    override readonly name = 'InstallFailure';
    readonly code: InstallCode;
    /** What the stages said of the package, for `PACKAGE_REFUSED`. */
    readonly failure: StageFailure | null;

    constructor(
        code: InstallCode,
        message: string,
        options: { readonly cause?: unknown; readonly failure?: StageFailure } = {}
    ) {
        super(message, options.cause === undefined ? {} : { cause: options.cause });
        this.code = code;
        this.failure = options.failure ?? null;
    }
}
