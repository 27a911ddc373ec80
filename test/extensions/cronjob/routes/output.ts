import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../../support/until.ts';
import { createCronjobRig, type CronjobRig, type Person } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

interface Event {
    readonly event: string;
    readonly id: string | null;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- events are looked into field by field
    readonly data: any;
}

/** Reads events until `enough`, or to the end of the stream. */
async function events(
    cron: CronjobRig,
    path: string,
    {
        as = 'admin',
        lastEventId,
        enough = () => false
    }: { as?: Person; lastEventId?: string; enough?: (seen: readonly Event[]) => boolean } = {}
): Promise<Event[]> {
    const seen: Event[] = [];
    const options = lastEventId === undefined ? {} : { lastEventId };
    for await (const { event = 'message', id = null, data } of cron.as(as).events(path, options)) {
        seen.push({ event, id, data });
        if (enough(seen)) {
            break;
        }
    }
    return seen;
}

const textIn = (seen: readonly Event[]): string =>
    seen
        .filter(({ event }) => event === 'output')
        .map(({ data }) => data.text)
        .join('');

describe('GET /api/plugins/cronjob/runs/{id}/output', () => {
    let cron: CronjobRig;
    let scratch: string;

    before(async () => {
        scratch = mkdtempSync(join(tmpdir(), 'portico-cronjob-'));
        cron = await createCronjobRig();
    });

    after(async () => {
        await cron.close();
        rmSync(scratch, { recursive: true, force: true });
    });

    it('streams what a run prints as it comes, goes on after a break, ends with the run, and replays all of it later', async () => {
        const gate = join(scratch, 'gate');
        const id = await cron.task({
            script: `echo "fïrst"; while [ ! -e ${gate} ]; do sleep 0.05; done; echo second >&2; exit 4`
        });
        const { data: run } = await cron.ask('POST', `/tasks/${id}/run`);
        const early = await events(cron, `/runs/${run.id}/output`, {
            enough: (seen) => textIn(seen) === 'fïrst\n',
            as: 'operator'
        });
        expect(early.at(-1)).to.equal({ event: 'output', id: '7', data: { text: 'fïrst\n' } });
        const later = events(cron, `/runs/${run.id}/output`, { lastEventId: '7' });
        writeFileSync(gate, '');
        const rest = await later;
        expect(textIn(rest)).to.equal('second\n');
        expect(rest.at(-1)).to.include({ event: 'end', id: '14' });
        expect(rest.at(-1)?.data).to.include({ id: run.id, state: 'failed', exitCode: 4 });
        expect((await cron.over(run.id)).output).to.equal('fïrst\nsecond\n');
        const replay = await events(cron, `/runs/${run.id}/output`);
        expect(textIn(replay)).to.equal('fïrst\nsecond\n');
        expect(replay.at(-1)).to.equal(rest.at(-1));
        expect(
            (await events(cron, `/runs/${run.id}/output`, { lastEventId: '14' })).map(({ event }) => event)
        ).to.equal(['end']);
        expect(textIn(await events(cron, `/runs/${run.id}/output`, { lastEventId: 'nonsense' }))).to.equal(
            'fïrst\nsecond\n'
        );
    });

    it('shows a run that waits once it begins', async () => {
        const gate = join(scratch, 'second-gate');
        const id = await cron.task({
            script: `echo turn; while [ ! -e ${gate} ]; do sleep 0.05; done`,
            overlap: 'queue'
        });
        await cron.ask('POST', `/tasks/${id}/run`);
        const { data: waiting } = await cron.ask('POST', `/tasks/${id}/run`);
        expect(waiting.state).to.equal('queued');
        const seen = events(cron, `/runs/${waiting.id}/output`);
        writeFileSync(gate, '');
        expect((await seen).map(({ event }) => event)).to.equal(['output', 'end']);
        const { data: skipped } = await (async () => {
            const busy = await cron.task({ command: ['sleep', '600'] });
            const { data: first } = await cron.ask('POST', `/tasks/${busy}/run`);
            const second = await cron.ask('POST', `/tasks/${busy}/run`);
            await cron.ask('DELETE', `/runs/${first.id}`);
            return second;
        })();
        expect(
            (await events(cron, `/runs/${skipped.id}/output`)).map(({ event, data }) => [event, data.state])
        ).to.equal([['end', 'skipped']]);
    });

    it('lets go of a reader who leaves, and of all when the plugin ends', async () => {
        const id = await cron.task({ command: ['sh', '-c', 'echo here; sleep 600'] });
        const { data: run } = await cron.ask('POST', `/tasks/${id}/run`);
        await Promise.all(
            [1, 2, 3].map(() => events(cron, `/runs/${run.id}/output`, { enough: (seen) => seen.length > 0 }))
        );
        const last = events(cron, `/runs/${run.id}/output`).catch(() => []);
        await until(
            async () => (await cron.ask('GET', `/runs/${run.id}`)).data.output === 'here\n',
            'the run'
        );
        const report = await cron.host.stop();
        expect(report.leaked).to.equal([]);
        expect(report.failures).to.equal([]);
        await last;
        await cron.host.start();
        expect((await cron.ask('GET', '/runs/999999/output')).code).to.equal(40400);
    });
});
