/** What other plugins may ask of this one, and the hook that it publishes. Types only. */
import type { Call, Notify } from '@portico/sdk';

/** A release that serves now. */
export interface Released {
    readonly projectId: number;
    /** Name of the project. */
    readonly project: string;
    readonly deploymentId: number;
    /** Number of the deployment in its project. */
    readonly number: number;
    readonly trigger: 'manual' | 'push' | 'poll' | 'rollback' | 'preview';
    readonly commit: string | null;
    /** Domain that it serves; null for a project without a host. */
    readonly domain: string | null;
}

declare module '@portico/sdk' {
    interface Hooks {
        /** A release serves: its switch is made. */
        'deploy.released': Notify<Released>;
    }
}

/** The contract of the plugin `deploy`. */
export interface DeployContract {
    /**
     * Makes a project, as POST `/projects` does, for a person who may. Nothing is deployed yet.
     *
     * @throws FORBIDDEN 40300 unless the person who is acted for has the permission `write`; VALIDATION_FAILED 40001; REPOSITORY_REFUSED 42250;
     * CONFLICT 40900
     */
    createProject(
        input: { readonly project: Readonly<Record<string, unknown>> },
        call: Call
    ): Promise<{ readonly id: number }>;
}
