/** What becomes of an engine that is changed by others, through its own admin socket. */
import { request } from 'node:http';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readOrigin } from '../../../../core/src/engine/caddy/origin.ts';
import type { EngineOptions } from '../../../../core/src/engine/service.ts';
import { creates, realRig, type Rig } from '../../../support/engine/rig.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, describe, it } = lab;

const message = 'The engine runs another configuration than the panel gave it';

describe('an engine that is changed behind the panel', { timeout: 60_000 }, () => {
    let rig: Rig;

    afterEach(() => rig.close());

    const start = async (repair: boolean): Promise<void> => {
        const options: Partial<EngineOptions> = { driftCheckMs: 200 };
        rig = await realRig(options);
        rig.state.driftRepair = repair;
        await rig.engine.change(creates({ domain: 'a.test' }));
    };

    const deleteServers = (): Promise<number> =>
        new Promise((done, failed) => {
            request(
                {
                    socketPath: rig.folders.adminSocket,
                    method: 'DELETE',
                    path: '/config/apps/http/servers',
                    headers: { host: readOrigin(rig.folders) }
                },
                (response) => {
                    response.resume();
                    done(response.statusCode ?? 0);
                }
            )
                .on('error', failed)
                .end();
        });

    const stateOfHost = (): unknown => {
        const row = rig.engine.draft().hosts.get(1);
        return row === undefined ? null : rig.engine.stateOf(row);
    };

    it('is repaired by itself, and an admin is told', async () => {
        await start(true);
        const { configuration } = await rig.engine.status();
        expect(await deleteServers()).to.equal(200);
        await until(
            () => rig.events.failed.some((event) => event.message.startsWith(message)),
            'the drift to be noticed'
        );
        await until(
            async () => (await rig.engine.status()).configuration.running === configuration.wanted,
            'the drift to be repaired'
        );
        expect(await rig.engine.status()).to.include({ drifted: false, message: null });
        expect(stateOfHost()).to.equal({ state: 'applied', message: null });
        expect(rig.events.failed).to.equal([
            { result: 'drifted', message: `${message}; the panel has repaired it` }
        ]);
    });

    it('is left alone where the setting says so: status, hosts and one notification say it', async () => {
        await start(false);
        expect(await deleteServers()).to.equal(200);
        await until(async () => (await rig.engine.status()).drifted, 'the drift to be noticed');
        expect(await rig.engine.status()).to.include({ state: 'running', drifted: true, message });
        expect(stateOfHost()).to.equal({ state: 'error', message });
        expect(rig.engine.problem()).to.equal(message);
        await new Promise((done) => setTimeout(done, 600));
        expect(rig.events.failed).to.equal([{ result: 'drifted', message }]);

        rig.state.driftRepair = true;
        await until(async () => !(await rig.engine.status()).drifted, 'the drift to be repaired');
        expect(rig.engine.problem()).to.be.null();
        expect(stateOfHost()).to.equal({ state: 'applied', message: null });
    });
});
