/** What a program that the panel runs as a database server is to the rest of the plugin. Each is one object of this shape. */
import type { ServiceOptions, TaskRun } from '@portico/sdk';

import type { Access, KindName, Login, Session } from '../kinds/kind.ts';
import type { Ctx } from '../settings.ts';
import type { Passing } from './folders.ts';
import type { RemoteAccess } from './network/remote.ts';

/** What a server is tuned for. */
export type Preset = 'tiny' | 'web' | 'oltp' | 'olap';
/** Presets with what a user reads. */
export const presetWords: Readonly<Record<Preset, string>> = {
    tiny: 'As small as it can be',
    web: 'Web sites: many short statements',
    oltp: 'Many small transactions',
    olap: 'Few, long evaluations'
};

/** The value of an option. */
export type OptionValue = number | boolean | string;

/** An option of a server that an admin may set. */
export interface Option {
    readonly name: string;
    /** `bytes` and `integer` are whole numbers, `milliseconds` and `seconds` numbers. */
    readonly type: 'integer' | 'bytes' | 'seconds' | 'milliseconds' | 'boolean' | 'choice';
    readonly min?: number;
    readonly max?: number;
    readonly choices?: readonly string[];
    /** It takes effect at the next start only. */
    readonly restart: boolean;
}

/** An option as the server that runs has it. */
export interface RunningOption {
    readonly value: OptionValue | null;
    readonly default: OptionValue | null;
}

/** A server to run. Paths are absolute. */
export interface Plan {
    readonly release: string;
    readonly port: number;
    /** Belongs to the server's account alone. */
    readonly dataFolder: string;
    /** Holds the socket. */
    readonly runFolder: string;
    /** Holds what `configFiles` gives. */
    readonly configFolder: string;
    /** Keeps its log of changes; null: it keeps no past. */
    readonly logFolder: string | null;
    /** Null: programs of this machine only. */
    readonly remote: RemoteAccess | null;
    /** Nothing but the panel's account reaches it, and only by the socket. */
    readonly alone: boolean;
    /** Options that differ from the server's own defaults. */
    readonly options: Readonly<Record<string, OptionValue>>;
}

/** Runs a program as the server's account until it ends. @throws SERVER_OFFLINE 50350 with what it wrote when it fails */
export type RunTool = (
    file: string,
    args: readonly string[],
    given?: {
        readonly stdin?: string;
        readonly env?: Readonly<Record<string, string>>;
        readonly privateFiles?: Readonly<Record<string, string>>;
        /** It may take hours. */
        readonly isLong?: boolean;
    }
) => Promise<void>;

/** One of the two servers of an upgrade, which only the panel reaches. */
export interface UpgradeSide {
    readonly plan: Plan;
    readonly socket: string;
    readonly access: Access;
}

/** What fills the data folder of a newer release. That is there, and empty. */
export interface UpgradeWork extends Pick<TaskRun, 'signal' | 'progress'> {
    readonly ctx: Ctx;
    readonly from: UpgradeSide;
    readonly to: UpgradeSide;
    /** The panel's account, on both sides. */
    readonly login: Login;
    readonly run: RunTool;
    /** Makes the new data folder that of a server without databases. */
    initialise(): Promise<void>;
    /** Ends the server that serves. */
    stop(): Promise<void>;
    /** Starts one of the two, the old one in place of the server that serves, and waits until it answers. */
    start(which: Passing): Promise<void>;
}

/** How a data folder gets to a newer release. */
export interface EngineUpgrade {
    /** Whether the first release is newer than the second. */
    isNewer(release: string, than: string): boolean;
    /** @throws TOOL_MISSING 50302 for the programs that are needed beside the server */
    check(release: string): Promise<void>;
    /** Takes everything to the new data folder; the new server may run then. @throws SQL_FAILED 42250, SERVER_OFFLINE 50350 with what the programs wrote */
    fill(work: UpgradeWork): Promise<void>;
}

/** A program that serves databases. */
export interface Engine {
    readonly kind: KindName;
    /** The account that it runs as where there is one of that name. */
    readonly account: string;
    /** The command that installs it. */
    readonly install: string;
    /** Releases that are installed, such as `10.11`, newest first. */
    releases(): Promise<readonly string[]>;
    readonly options: readonly Option[];
    /** Options of a preset, sized for so much memory. */
    presetOptions(preset: Preset, memoryBytes: number): Readonly<Record<string, OptionValue>>;
    /** The files of its configuration, by name. They hold no secret. */
    configFiles(plan: Plan): Readonly<Record<string, string>>;
    /** Fills the data folder, and makes the panel's account. */
    initialise(plan: Plan, run: RunTool, login: { username: string; password: string }): Promise<void>;
    service(plan: Plan): Pick<ServiceOptions, 'file' | 'args' | 'stopSignal' | 'reloadSignal'>;
    socket(plan: Pick<Plan, 'runFolder' | 'port'>): string;
    readonly upgrade: EngineUpgrade;
    /** The options that run now, by name. */
    running(session: Session): Promise<ReadonlyMap<string, RunningOption>>;
    /** Lets options take effect that need no restart; null stands for the server's own default. Null where a reload of the service does it. */
    readonly apply:
        ((session: Session, changed: Readonly<Record<string, OptionValue | null>>) => Promise<void>) | null;
}

/** A share of a size, in whole MiB, between two bounds that are MiB too. */
export function share(bytes: number, part: number, least: number, most = Infinity): number {
    const mebibyte = 1024 * 1024;
    return Math.max(least, Math.min(most, Math.floor((bytes * part) / mebibyte))) * mebibyte;
}
