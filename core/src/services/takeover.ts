/** One backing takes over the services that the other one kept. Each step may be cut off and is then done again. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';

import { ServicesUnavailable } from './port.ts';
import { OutputLog } from './supervisor/service/output-log.ts';
import { bootId, killLeftBehind, Run } from './supervisor/service/run.ts';
import { Connection } from './supervisor/socket/connection.ts';
import { servicesFolder } from './supervisor/socket/protocol.ts';
import { isLeftover, Store } from './supervisor/store.ts';
import { noRuns, readRuns, writeAsked, writeRuns } from './systemd/runs.ts';
import { Systemctl } from './systemd/systemctl.ts';
import { UnitFiles } from './systemd/unit-files.ts';

/** How long a supervisor may take to let go of its services. */
const retireMs = 15_000;
const pollMs = 50;
const outputBytes = 8 * 1024 * 1024;

/** Whether systemd is the first process of this machine. Source: sd_booted(3). */
export function isSystemdFirst(): boolean {
    return existsSync('/run/systemd/system');
}

/**
 * Ends the supervisor, and the programs that it started, because systemd can only keep what it started itself. What should run stays written down.
 *
 * @param folder - where the panel keeps its services
 * @throws ServicesUnavailable when the supervisor does not let go; Error when a program does not end
 */
export async function takeFromSupervisor(folder: string): Promise<void> {
    if (existsSync(join(folder, 'lock'))) {
        await retireSupervisor(folder);
    }
    await Promise.all(storesOf(folder).map((store) => endRun(store)));
}

/**
 * Ends the units that systemd kept for a panel, so that they run no second time under the supervisor, and writes down what is to run.
 *
 * @throws ServicesUnavailable when systemd does not end one
 */
export async function takeFromSystemd(folder: string): Promise<void> {
    const files = new UnitFiles(folder);
    const systemd = new Systemctl();
    const units = files.list();
    const left = storesOf(folder).filter((store) => readRuns(store.folder) !== null);
    left.forEach((store) => writeAsked(store.folder, true));
    for (const unit of units) {
        if (isSystemdFirst()) {
            await systemd.stop(unit, retireMs);
        }
        files.remove(unit);
    }
    if (units.length > 0 && isSystemdFirst()) {
        await systemd.reload();
    }
    for (const store of left) {
        const { restart } = store.readSpec().command;
        const { due, exits, failures, lastExit } = readRuns(store.folder) ?? noRuns;
        const done = due ? null : restart === 'once' ? 'ever' : bootId;
        store.writeState({ ...store.readState(), run: null, done, exits, failures, lastExit });
        files.removeInputs(store);
        rmSync(join(store.folder, 'asked'), { force: true });
        // Last, because it says that the rest is still to be done.
        rmSync(join(store.folder, 'runs'));
    }
}

/** Ends the supervisor and its watchdog; the kernel says by their lock when both are gone. */
export async function retireSupervisor(folder: string): Promise<void> {
    const until = performance.now() + retireMs;
    while (!(await isFree(join(folder, 'lock')))) {
        if (performance.now() > until) {
            throw new ServicesUnavailable('The supervisor of services does not let go of them');
        }
        const connection = await Connection.open(folder);
        await connection?.call('retire', {}).catch(() => undefined);
        await connection?.closed;
        await wait(pollMs);
    }
}

async function isFree(lock: string): Promise<boolean> {
    return promisify(execFile)('flock', ['-n', lock, 'true']).then(
        () => true,
        () => false
    );
}

/** Ends what the supervisor started, and writes down that it does not run. */
async function endRun(store: Store): Promise<void> {
    const spec = store.readSpec();
    const state = store.readState();
    const { run: record, done, exits, failures, lastExit } = state;
    if (readRuns(store.folder) === null) {
        const isOver = done === 'ever' || done === bootId;
        writeRuns(store.folder, { ...noRuns, exits, failures, lastExit, due: !isOver });
    }
    if (record === null) {
        return;
    }
    const parts = { spec, store, log: new OutputLog(store.outputFile, outputBytes) };
    const run = Run.adopt(parts, record);
    await (run === null
        ? killLeftBehind(parts, record)
        : run.stop(spec.command.stopSignal, spec.command.stopSeconds * 1000));
    await parts.log.flush();
    store.writeState({ ...state, run: null });
}

/** The services that can be read. */
function storesOf(folder: string): readonly Store[] {
    const units = join(folder, servicesFolder);
    return existsSync(units)
        ? readdirSync(units)
              .filter((name) => !isLeftover(name))
              .map((name) => new Store(join(units, name)))
              .filter(isReadable)
        : [];
}

function isReadable(store: Store): boolean {
    try {
        store.readSpec();
        return true;
    } catch {
        return false;
    }
}
