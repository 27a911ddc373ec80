/** What keeps the past of a server that the panel runs: base copies, and the log of all changes since. Each kind has one object of this shape. */
import type { ServerRow } from '../entities.ts';
import type { Login, Session } from '../kinds/kind.ts';
import type { Plan, RunTool } from '../managed/engine.ts';

/** Whether the server that runs keeps its log in the archive. */
export interface LogState {
    readonly isKept: boolean;
    /** Why the log does not reach the archive now; null when it does. */
    readonly problem: string | null;
}

/** A past to go back to. Paths are absolute. */
export interface Past {
    /** The base copy, which was complete at that time or before. */
    readonly base: string;
    /** Text of the file of the base copy that says where its log begins. */
    readonly label: string;
    /** Files of the log that belong to it, in order. */
    readonly logs: readonly string[];
    /** Data folder of the server whose past it is: it may hold log that is not in the archive yet. */
    readonly sourceFolder: string;
    readonly at: Date;
}

/** The server that is filled with a past. */
export interface Filled {
    readonly plan: Plan;
    /** The panel's account, with the password that it is to have. */
    readonly login: Login;
    /** Account of the machine that it runs as; absent: the panel's own. */
    readonly user?: string;
    readonly run: RunTool;
    readonly signal: AbortSignal;
}

/** Keeps the past of servers of one kind. */
export interface Archiver {
    /** @throws TOOL_MISSING 50302, VALIDATION_FAILED 40001 for a release that cannot do it */
    check(release: string): Promise<void>;
    logState(session: Session): Promise<LogState>;
    /** Copies the data of a server that runs into an empty folder of its account. */
    copy(folder: string, server: ServerRow, password: string, run: RunTool): Promise<void>;
    /** The file of a base copy that names the first file of the log which it needs, and how that is read. */
    readonly label: { readonly file: string; firstLog(text: string): string };
    /** The place of a file in the log; null for files that are no part of it. A log that is whole has numbers without a gap. */
    numberOf(file: string): number | null;
    /** Has the server forget its log before this file; null where the files are simply removed. */
    readonly purge: ((session: Session, first: string) => Promise<void>) | null;
    /** Fills the empty data folder of a server with a past. @throws SERVER_OFFLINE 50350 with what a program wrote */
    restore(past: Past, filled: Filled): Promise<void>;
}

/** Copies what is in a folder into another one, as the account of the server. */
export function copyFolder(run: RunTool, from: string, to: string): Promise<void> {
    return run('cp', ['--archive', '--reflink=auto', '--', `${from}/.`, `${to}/`], { isLong: true });
}
