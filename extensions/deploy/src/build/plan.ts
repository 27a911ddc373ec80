/** How a checkout is built and how its release runs. */

/** How a release serves. */
export type Runtime = 'static' | 'process' | 'container' | 'compose';

/** What is done with a checkout. */
export interface BuildPlan {
    readonly framework: string;
    readonly runtime: Runtime;
    /** One program with its arguments; null: nothing is installed. */
    readonly install: readonly string[] | null;
    readonly commands: readonly (readonly string[])[];
    /** Below the folder of the project; `.` is that folder, null the whole checkout. */
    readonly output: string | null;
    /** The program that answers requests; null for files. */
    readonly command: readonly string[] | null;
    readonly port: number | null;
    /** Names of variables that the framework reads, with the values that it needs. */
    readonly env: Readonly<Record<string, string>>;
    /** Folders that a next build is faster with. */
    readonly cache: readonly string[];
}

/** What a release needs to run: kept with its deployment, so that it can run again. */
export interface ReleasePlan {
    /** Number of the deployment that built it: its folder has that name. */
    readonly release: number;
    readonly runtime: Runtime;
    readonly command: readonly string[] | null;
    /** Of programs: the one that the admin wants; of an image: the one in the container. */
    readonly port: number | null;
    readonly env: Readonly<Record<string, string>>;
    /** The folder of the project in the release. */
    readonly path: string;
    /** Names of the images that were built for it, and their ids by the services that run them. */
    readonly images?: readonly string[];
    readonly digests?: Readonly<Record<string, string>>;
    /** The compose file that it runs as. */
    readonly compose?: string;
}
