/** The engine as `GET /api/proxyengine/status` shows it. */
export interface EngineStatus {
    readonly state: 'missing' | 'stopped' | 'running' | 'failing';
    readonly version: string | null;
    readonly pid: number | null;
    readonly startedAt: string | null;
    readonly message: string | null;
    readonly wanted: 'running' | 'stopped';
    readonly autoReload: boolean;
    readonly drifted: boolean;
    readonly revision: number;
    readonly appliedRevision: number;
    readonly pending: number;
    readonly refused: readonly { readonly id: number; readonly message: string }[];
    readonly lastApply: {
        readonly at: string;
        readonly durationMs: number;
        readonly changes: number;
        readonly reloaded: boolean;
        readonly result: 'applied' | 'rejected' | 'failed';
        readonly message: string | null;
    } | null;
}
