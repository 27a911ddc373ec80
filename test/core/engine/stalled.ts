/** What callers see of an engine whose process lives and does nothing. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { creates, realRig, type Rig, updates } from '../../support/engine/rig.ts';
import { freeze } from '../../support/machine/freeze.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

/** A behaviour of its own, which needs a load. */
const ownBehaviour = {
    headers: { request: [], response: [{ op: 'set' as const, name: 'x-own', value: 'yes' }] }
};

const timed = async <T>(
    work: Promise<T>
): Promise<{ readonly seconds: number; readonly error: { readonly code?: unknown } | null }> => {
    const began = performance.now();
    const error = await work.then(
        () => null,
        (thrown: { readonly code?: unknown }) => thrown
    );
    return { seconds: (performance.now() - began) / 1000, error };
};

describe('a stalled engine', { timeout: 60_000 }, () => {
    let rig: Rig;
    let pid: number;

    beforeEach(async () => {
        // The supervisor comes too late to help: only the change and the status themselves can find out.
        rig = await realRig({}, { pingEveryMs: 600_000 });
        await rig.engine.change(creates({ domain: 'a.test' }));
        pid = rig.engine.process().pid ?? 0;
    });

    afterEach(async () => {
        try {
            process.kill(pid, 'SIGCONT');
        } catch {
            // The panel has replaced it.
        }

        await rig.close();
    });

    it('refuses a change that needs a load with 50301 in good time, saves nothing, and never serves it', async () => {
        await freeze(pid);
        const { seconds, error } = await timed(rig.engine.change(updates(1, ownBehaviour)));
        expect(error?.code).to.equal(50301);
        expect(seconds).to.be.below(10);
        expect(rig.rows().get(1)?.row.version).to.equal(1);
        expect(rig.engine.revisions({ before: null, limit: 10 }).total).to.equal(1);

        try {
            process.kill(pid, 'SIGCONT');
        } catch {
            // The panel has replaced it already.
        }

        await until(async () => (await rig.engine.status()).state === 'running', 'the engine to come back');
        const { configuration } = await rig.engine.status();
        expect(configuration.running).to.equal(configuration.wanted);
        expect(JSON.stringify(await rig.engine.configNow())).not.to.include('X-Own');

        const { outcome } = await rig.engine.change(updates(1, ownBehaviour));
        expect(outcome).to.include({ applied: true, reloaded: true });
    });

    it('refuses a change of the table alone as quickly', async () => {
        await freeze(pid);
        const { seconds, error } = await timed(rig.engine.change(updates(1, { enabled: false })));
        expect(error?.code).to.equal(50301);
        expect(seconds).to.be.below(10);
        expect(rig.rows().get(1)?.row.version).to.equal(1);
    });

    it('has a status that comes quickly and says that the engine does not answer', async () => {
        await freeze(pid);
        const began = performance.now();
        const status = await rig.engine.status();
        expect((performance.now() - began) / 1000).to.be.below(5);
        expect(status).to.include({
            state: 'failing',
            running: false,
            message: 'The engine does not answer'
        });
        expect(status.configuration.running).to.be.null();

        process.kill(pid, 'SIGCONT');
        expect(await rig.engine.status()).to.include({ state: 'running', running: true, message: null });
    });
});
