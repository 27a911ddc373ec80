/** What is used of npm's own libraries, which bring no types. */
declare module 'pacote' {
    export interface FetchOptions {
        readonly registry?: string;
        readonly cache?: string;
        readonly timeout?: number;
        readonly fetchRetries?: number;
        readonly retry?: { readonly retries: number };
        readonly offline?: boolean;
        readonly fullMetadata?: boolean;
        readonly verifySignatures?: boolean;
        readonly resolved?: string;
        readonly integrity?: string;
        readonly packumentCache?: Map<string, unknown>;
        readonly [scoped: string]: unknown;
    }
    export interface Packument {
        readonly 'dist-tags'?: unknown;
        readonly versions?: unknown;
    }
    export interface PickedManifest {
        readonly name: string;
        readonly version: string;
        readonly dist?: {
            readonly attestations?: { readonly provenance?: { readonly predicateType?: string } };
        };
        readonly _resolved: string;
        readonly _integrity?: string;
        readonly _signatures?: readonly unknown[];
    }
    export interface FetchResult {
        readonly from: string;
        readonly resolved: string;
        readonly integrity: string;
    }
    const pacote: {
        packument(spec: string, options: FetchOptions): Promise<Packument>;
        manifest(spec: string, options: FetchOptions): Promise<PickedManifest>;
        extract(spec: string, folder: string, options: FetchOptions): Promise<FetchResult>;
        readonly tarball: {
            stream<T>(
                spec: string,
                handler: (stream: NodeJS.ReadableStream) => Promise<T>,
                options: FetchOptions
            ): Promise<T>;
        };
    };
    export default pacote;
}

declare module '@npmcli/arborist' {
    import type { FetchOptions } from 'pacote';
    export interface Edge {
        readonly name: string;
        readonly spec: string;
        readonly type: string;
        readonly valid: boolean;
        readonly missing: boolean;
        readonly optional: boolean;
    }
    export interface Node {
        readonly name: string;
        /** The name in its package.json. */
        readonly packageName: string;
        readonly version: string;
        readonly resolved: string | null;
        readonly integrity: string | null;
        readonly isProjectRoot: boolean;
        readonly isLink: boolean;
        readonly inBundle: boolean;
        readonly hasShrinkwrap: boolean;
        /** An optional package that this machine cannot use. */
        readonly inert?: boolean;
        readonly package: Readonly<Record<string, unknown>>;
        readonly edgesOut: ReadonlyMap<string, Edge>;
        readonly inventory: ReadonlyMap<string, Node>;
    }
    export interface ArboristOptions extends FetchOptions {
        readonly path: string;
        readonly ignoreScripts: boolean;
        readonly binLinks: boolean;
        readonly audit: boolean;
        readonly save: boolean;
        readonly packageLock: boolean;
        readonly legacyPeerDeps: boolean;
        readonly omit: readonly string[];
        readonly allowGit: 'none';
        readonly allowRemote: 'none';
        readonly allowFile: 'none';
        readonly allowDirectory: 'none';
    }
    export default class Arborist {
        constructor(options: ArboristOptions);
        readonly options: { offline?: boolean };
        buildIdealTree(options?: { readonly complete?: boolean }): Promise<Node>;
        reify(options: ArboristOptions): Promise<Node>;
    }
}

declare module 'npm-registry-fetch' {
    // eslint-disable-next-line no-duplicate-imports -- the other import belongs to another module's declaration
    import type { FetchOptions } from 'pacote';
    const registryFetch: {
        json(
            path: string,
            options: FetchOptions & { readonly query?: Readonly<Record<string, string>> }
        ): Promise<unknown>;
    };
    export default registryFetch;
}

declare module 'ssri' {
    interface Integrity {
        hexDigest(): string;
        match(other: Integrity | string): unknown;
        toString(): string;
        readonly sha512?: readonly { hexDigest(): string }[];
    }
    const ssri: {
        parse(value: string, options?: { readonly single?: boolean }): Integrity | null;
        fromData(data: Uint8Array, options?: { readonly algorithms?: readonly string[] }): Integrity;
        checkData(data: Uint8Array, integrity: string): unknown;
    };
    export default ssri;
}

declare module 'npm-package-arg' {
    interface Spec {
        readonly type: 'version' | 'range' | 'tag' | 'alias' | 'git' | 'remote' | 'file' | 'directory';
        readonly name: string | null;
        readonly fetchSpec: string | null;
    }
    const npa: { (spec: string): Spec; resolve(name: string, spec: string): Spec };
    export default npa;
}
