import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { appDocument, noMinisign } from './publisher.ts';
import { AppstoreRig } from './rig.ts';

export const lab = Lab.script();
const { describe, it } = lab;
const signed = itUnless(noMinisign, it);

describe('Refusals', { timeout: 60_000 }, () => {
    signed('say what is wrong and what to do, and change nothing', async () => {
        await using rig = await AppstoreRig.start();
        rig.publisher.publish([appDocument({ form: [{ name: 'A', type: 'number', required: true }] })]);
        await rig.addSource('main');
        await rig.sync('main');
        const said = async (path: string, body: object): Promise<readonly [number | null, string]> => {
            const { code, text } = await rig.post(path, body);
            return [code, JSON.parse(text).message];
        };
        const app = { source: 'main', app: 'wiki' };
        expect(await said('/plan', { ...app, app: 'typo' })).to.equal([
            40400,
            'No source named main offers an app typo: see the names, or sync the source'
        ]);
        const [code, value] = await said('/plan', { ...app, values: { A: 'x' } });
        expect([code, value.includes('values.A: This is a number')]).to.equal([40001, true]);
        const [, version] = await said('/plan', { ...app, version: '9.9.9', values: { A: 1 } });
        expect(version).to.contain('The source has version 1.0.0 now, and not 9.9.9');
        expect((await said('/installed', { ...app, values: { A: 1 } }))[0]).to.equal(50350);
        expect((await rig.get('/installed')).data).to.equal([]);
        // A source without signatures, which is accepted by a word of the admin alone.
        await rig.post('/import', {
            kind: 'compose',
            name: 'own',
            files: { 'docker-compose.yml': 'services: { web: { image: "nginx:1", ports: ["80:80"] } }' }
        });
        const [refused, words] = await said('/plan', { source: 'local', app: 'own' });
        expect([refused, words.includes('"acknowledgeUnsigned": true')]).to.equal([40952, true]);
        await rig.put('/sources/local', { acceptUnsigned: false });
        const [, other] = await said('/plan', { source: 'local', app: 'own', acknowledgeUnsigned: true });
        expect(other).to.contain('set its `acceptUnsigned`');
    });
});

describe('Sources', { timeout: 120_000 }, () => {
    signed('are synced by the clock, as often as the setting says', async () => {
        await using rig = await AppstoreRig.start();
        await rig.addSource('main');
        const sequence = async (): Promise<number> => (await rig.get('/sources/main')).data.sequence;
        // The window of updates, which begins with a sync, too, is at another time of the day.
        const window = `${String((rig.host.clock.now().getHours() + 12) % 24).padStart(2, '0')}:00`;
        const every = (syncHours: number): Promise<unknown> =>
            rig.host.setSettings({ syncHours, autoUpdateWindow: `${window}-23:59` });
        await every(3);
        rig.publisher.publish([appDocument({})]);
        await rig.sync('main');
        const first = await sequence();
        rig.publisher.publish([appDocument({ version: '1.1.0' })]);
        await rig.host.clock.advance({ hours: 2 });
        expect(await sequence()).to.equal(first);
        await rig.host.clock.advance({ hours: 1 });
        expect(await sequence()).to.be.above(first);
        const second = await sequence();
        await every(1);
        rig.publisher.publish([appDocument({ version: '1.2.0' })]);
        await rig.host.clock.advance({ hours: 1 });
        expect(await sequence()).to.be.above(second);
    });
});
