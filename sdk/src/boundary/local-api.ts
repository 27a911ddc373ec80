/** What works in the plugin's own guest runtime, because it gives live objects, which cannot cross the boundary. */
import type { Socket as NetSocket } from 'node:net';

import type { Db } from '../context/context.ts';
import type { Files } from '../context/files.ts';
import type { Child, ExecOptions, ExecResult, SpawnOptions } from '../context/process.ts';
import type { Release } from './protocol.ts';

/** Services that work in the plugin's own guest runtime, because they give live objects, which cannot cross. */
export interface LocalApi {
    readonly db: Db;
    readonly fetch: typeof globalThis.fetch;
    files(root: string): Files;
    /** Opens a folder to `files` until the lease is disposed of, also against the rules of grants. */
    lend(folder: string): Promise<AsyncDisposable>;
    dial(target?: { readonly host: string; readonly port: number } | { readonly path: string }): NetSocket;
    resolve(host: string): Promise<readonly string[]>;
    exec(file: string, args: readonly string[], options?: ExecOptions): Promise<ExecResult>;
    spawn(file: string, args: readonly string[], options?: SpawnOptions): Promise<Child>;
    /** Releases everything that these services gave. */
    release(): Promise<Release>;
}
