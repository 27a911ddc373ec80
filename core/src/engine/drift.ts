/** The engine as it is against the engine as it was left. */
import { differences } from './differences.ts';
import type { EngineDriver } from './port.ts';
import { EngineUnavailable } from './port.ts';
import type { Drift } from './service.ts';
import type { Serving } from './sync/served-state.ts';
import type { SiteTable } from './files/table/table.ts';

/** How many differences are told of each kind. */
const TOLD = 1000;

/** A look during an apply would show the apply: then it looks again, so often. */
const LOOKS = 5;

/** @throws EngineUnavailable when it does not run or does not answer */
export const findDrift = async (driver: EngineDriver, serving: Serving, table: SiteTable): Promise<Drift> => {
    for (let look = 1; ; look += 1) {
        const { generation, loaded } = serving;
        const running = await driver.config();
        if (running === null && driver.process().state !== 'running') {
            throw new EngineUnavailable('the engine does not run');
        }

        const moves = await table.compare(serving.servedTable());
        if (generation !== serving.generation && look < LOOKS) {
            continue;
        }

        const config = differences(plain(loaded), running, TOLD + 1);
        const names = moves.map(({ name, from, to }) => ({ name, wanted: to, running: from }));
        return {
            drifted: config.length > 0 || names.length > 0,
            config: config.slice(0, TOLD),
            table: names.slice(0, TOLD),
            more: config.length > TOLD || names.length > TOLD
        };
    }
};

/** As it went over the wire: without what JSON leaves out. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value)) as unknown;
