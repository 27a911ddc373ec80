import * as Lab from '@hapi/lab';

import { createFaultyEngine } from '../../support/engine/faulty.ts';
import { engineContract } from './contract.ts';

export const lab = Lab.script();

engineContract(lab, 'the faulty engine, without a fault', async () => {
    const driver = createFaultyEngine();
    driver.judge((config) => (config['bad'] === true ? 'bad is not a field' : null));
    return {
        driver,
        good: (mark) => ({ mark }),
        bad: { config: { bad: true }, reason: 'bad is not a field' },
        serves: async () => (driver.running?.['mark'] as string | undefined) ?? null,
        kill: () => {
            driver.crash('killed');
            setImmediate(() => driver.recover());
        },
        chat: async () => driver.say('a line'),
        close: () => driver.close()
    };
});
