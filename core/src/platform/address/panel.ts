/** Where the command line finds the panel that runs on a data folder: `panel.json` in it, its owner's alone, while the panel listens. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where the running panel of a data folder listens. */
export interface PanelAddress {
    readonly pid: number;
    /** Under which this machine reaches it. */
    readonly host: string;
    readonly port: number;
    /** Names the process: tokens of the command line are made for this one only. */
    readonly instance: string;
}

const fileOf = (dataDir: string): string => join(dataDir, 'panel.json');

/** Writes it whole or not at all. */
export function writePanelAddress(dataDir: string, address: PanelAddress): void {
    const temporary = `${fileOf(dataDir)}.new`;
    rmSync(temporary, { force: true });
    writeFileSync(temporary, `${JSON.stringify(address)}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(temporary, fileOf(dataDir));
}

/** What was written last; a panel that was killed leaves it behind, so that it says nothing of whether one runs. Null when there is none, or none of this form. */
export function readPanelAddress(dataDir: string): PanelAddress | null {
    try {
        const { pid, host, port, instance } = JSON.parse(readFileSync(fileOf(dataDir), 'utf8')) as Partial<
            Record<keyof PanelAddress, unknown>
        >;
        const complete =
            Number.isSafeInteger(pid) &&
            typeof host === 'string' &&
            Number.isSafeInteger(port) &&
            typeof instance === 'string';
        return complete ? { pid: pid as number, host, port: port as number, instance } : null;
    } catch (error) {
        if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') {
            return null;
        }
        throw error;
    }
}

/** Removes the file, if there is one. */
export function removePanelAddress(dataDir: string): void {
    rmSync(fileOf(dataDir), { force: true });
}
