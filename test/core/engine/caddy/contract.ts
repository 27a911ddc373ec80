import * as Lab from '@hapi/lab';

import { adminConfig } from '../../../../core/src/engine/files/home.ts';
import { answerOf, createRealEngine } from '../../../support/engine/real.ts';
import { freePort } from '../../../support/ports.ts';
import { engineContract } from '../contract.ts';

export const lab = Lab.script();

engineContract(lab, 'Caddy', async () => {
    const engine = createRealEngine();
    const port = await freePort();
    return {
        driver: engine.driver,
        good: (mark) => engine.answering(mark, port),
        bad: {
            config: {
                admin: adminConfig(engine.folders),
                apps: {
                    http: {
                        servers: {
                            a: {
                                listen: [`127.0.0.1:${port}`],
                                routes: [{ handle: [{ handler: 'no_such_handler' }] }]
                            }
                        }
                    }
                }
            },
            reason: 'http.handlers.no_such_handler'
        },
        serves: () => answerOf(port).catch(() => null),
        kill: () => {
            process.kill(engine.driver.process().pid ?? 0, 'SIGKILL');
        },
        chat: async () => {
            await engine.driver.config();
        },
        close: () => engine.close()
    };
});
