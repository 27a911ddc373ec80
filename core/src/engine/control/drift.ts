import type { SiteTable } from '../files/table/table.ts';
import { type EngineDriver, EngineUnavailable } from '../port.ts';
import type { Drift } from '../service.ts';
import type { ServedState } from '../sync/served-state.ts';
import { differences } from './differences.ts';

/** At most so many differences of each kind are returned. */
const told = 1000;

/** The comparison is repeated so often when a sync ran meanwhile. */
const looks = 5;

/** Compares what the engine runs with what it was given. @throws EngineUnavailable when it does not run or does not answer */
export const findDrift = async (
    driver: EngineDriver,
    served: ServedState,
    table: SiteTable
): Promise<Drift> => {
    for (let look = 1; ; look += 1) {
        const { generation, loaded } = served;
        const running = await driver.config();
        if (running === null && driver.process().state !== 'running') {
            throw new EngineUnavailable('the engine does not run');
        }

        const moves = await table.compare(served.servedTable());
        if (generation !== served.generation && look < looks) {
            continue;
        }

        const config = differences(plain(loaded), running, told + 1);
        const names = moves.map(({ name, from, to }) => ({ name, wanted: to, running: from }));
        return {
            drifted: config.length > 0 || names.length > 0,
            config: config.slice(0, told),
            table: names.slice(0, told),
            more: config.length > told || names.length > told
        };
    }
};

/** The value as it went over the wire: without what JSON leaves out. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value)) as unknown;
