/** Programs that a plugin runs: no shell, nothing inherited, and the whole process group ends with the plugin's generation. */
import type { Bytes } from '../routes/route.ts';

/** Limits of a program with all its descendants. */
export interface GroupLimits {
    /** Memory with cached files, without swap; at least 1 MiB. What does not fit ends a process of the program: see {@link Exit.limit}. */
    readonly memoryBytes?: number;
    /** Per cent of one processor, from 1: 200 is two processors. The program runs slower; it is not ended. */
    readonly cpuPercent?: number;
    /** Processes and threads at the same time; further ones are refused to the program. */
    readonly processes?: number;
}

/** What a program with all its descendants used. */
export interface Usage {
    readonly cpuSeconds: number;
    readonly memoryPeakBytes: number;
}

/** How a program runs. */
export interface SpawnOptions {
    /** Absolute; default: the plugin's data folder. */
    readonly cwd?: string;
    /** The whole environment beside PATH, HOME, LANG and TZ, and TERM in a terminal. `PATH`, `LD_*` and `NODE_OPTIONS` are refused. */
    readonly env?: Readonly<Record<string, string>>;
    /** Account to run as; needs the capability `users`, and a panel that runs as root. */
    readonly user?: string;
    /** 1 to 86,400; then the group is killed. Default: 60 for `exec`, none for `spawn`. */
    readonly timeoutSeconds?: number;
    readonly limits?: {
        /** Address space of each process. */
        readonly memoryBytes?: number;
        /** Seconds of processor time of each process. */
        readonly cpuSeconds?: number;
        /** Processes of the account. */
        readonly processes?: number;
        /** Open files of each process. */
        readonly openFiles?: number;
        /** Size of each file that is written. */
        readonly fileBytes?: number;
        /**
         * Limits of the program and all its descendants together, by a control group of the kernel. An empty object only measures (see
         * {@link Child.usage}). @throws TOOL_MISSING 50302 where the panel can write no control group; an empty object is never refused
         */
        readonly group?: GroupLimits;
    };
    /**
     * Texts by file name, for programs that read secrets from files: at most 16, 1 MiB in all. They lie in a working folder of their own
     * (so `cwd` is left out), 0600, owned by the account, and are gone when the program has ended. As another account, the program cannot
     * write to that folder.
     */
    readonly privateFiles?: Readonly<Record<string, string>>;
    /**
     * Runs it in a network of its own that leads nowhere, not even to this machine, and without any right of the kernel, whatever account
     * it runs as. Root's own files stay writable to root: name a `user`, too. @throws TOOL_MISSING 50302 where the machine allows it not
     */
    readonly isolate?: { readonly network: false };
    /**
     * Permission bits that files and folders made by the program do not get, 0 to 0o777. Default 0o077: only its account can read them. With 0o027
     * the group can read them too.
     */
    readonly umask?: number;
    /** Ends the group when it aborts. */
    readonly signal?: AbortSignal;
    /** Runs it in a terminal; `stderr` is then empty. @throws TOOL_MISSING 50302 where terminals are not available */
    readonly pty?: { readonly columns: number; readonly rows: number };
}

/** How a program runs to its end. */
export interface ExecOptions extends Omit<SpawnOptions, 'pty'> {
    readonly stdin?: string | Uint8Array;
    /** Of stdout and stderr each, default 1 MiB; what comes after it is read and dropped. */
    readonly maxOutputBytes?: number;
}

/** What a program gave when it ended. */
export interface ExecResult {
    /** Exit code; null when a signal ended it. */
    readonly code: number | null;
    readonly signal: string | null;
    readonly stdout: string;
    readonly stderr: string;
    /** Output was dropped. */
    readonly truncated: boolean;
    readonly timedOut: boolean;
    /** As {@link Exit.limit}. */
    readonly limit?: 'memory';
}

/** How a program ended. */
export interface Exit {
    readonly code: number | null;
    readonly signal: string | null;
    readonly timedOut: boolean;
    /** `memory`: the kernel ended the program, or a descendant, because `limits.group.memoryBytes` was used up. */
    readonly limit?: 'memory';
}

/** A running program with all of its descendants: signals and the end of the generation reach the whole group. */
export interface Child extends AsyncDisposable {
    /** The process id of the program itself, which leads its group. */
    readonly pid: number;
    /** What the program reads; close it when there is no more. */
    readonly stdin: WritableStream<Uint8Array>;
    /** Must be read: a full pipe stops the program. */
    readonly stdout: Bytes;
    /** Must be read, as `stdout`. */
    readonly stderr: Bytes;
    /** Resolves when the program has ended, with how it ended. */
    readonly exited: Promise<Exit>;
    /** Signals the group; default SIGTERM. Resolves when the signal was sent. */
    kill(signal?: NodeJS.Signals): Promise<void>;
    /** What it used until now, or until it ended; null without `limits.group`, and where the machine does not measure it. */
    usage(): Promise<Usage | null>;
    /** Tells the program the new size of its window; of a terminal only. */
    resize(columns: number, rows: number): Promise<void>;
}
