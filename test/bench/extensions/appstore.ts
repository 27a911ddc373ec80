/** Catalogues of a thousand apps against ten, and what a plan and an update cost against the same by hand. */
import { appDocument, noMinisign, type Part } from '../../extensions/appstore/publisher.ts';
import { AppstoreRig } from '../../extensions/appstore/rig.ts';
import { pushImages, repository, webApp, webCompose } from '../../extensions/appstore/support.ts';
import { noEngine } from '../../extensions/container/engines.ts';
import type { ContainerRig } from '../../extensions/container/support/rig.ts';
import { median, number, type Report } from '../report.ts';

const apps = 1_000;
const few = 10;
const rounds = 9;
const updates = 5;

export async function bench(report: Report): Promise<void> {
    const lacks = noMinisign ?? noEngine;
    if (lacks !== undefined) {
        console.log(`      not measured: ${lacks}`);
        return;
    }
    await measureCatalogue(report);
    await measureUpdates(report);
}

const document = (index: number, version = '1.0.0'): Part =>
    appDocument({ id: `app-${index}`, version, title: { en: `App ${index}` } });
const documents = (count: number): readonly Part[] =>
    Array.from({ length: count }, (_, index) => document(index));

async function measureCatalogue(report: Report): Promise<void> {
    await using rig = await AppstoreRig.start();
    await rig.addSource();
    const page = async (): Promise<number> => {
        const times: number[] = [];
        for (let round = 0; round < rounds; round += 1) {
            times.push(await timed(() => rig.get('/apps?q=app')));
        }
        return median(times);
    };
    rig.publisher.publish(documents(few));
    await rig.sync();
    const small = await page();
    rig.publisher.publish(documents(apps));
    await rig.sync();
    const large = await page();
    report.add({
        target: 'as1',
        what: `the first page of ${apps} apps against that of ${few}`,
        value: large / small,
        most: [2.5, 2],
        of: `${number(large)} of ${number(small)} ms`
    });
    rig.publisher.publish(documents(apps).with(17, document(17, '1.0.1')));
    rig.publisher.requests.length = 0;
    await rig.sync();
    report.add({
        target: 'as2',
        what: `documents that a sync fetches where one of ${apps} changed`,
        value: rig.publisher.requests.filter((path) => path.startsWith('apps/')).length,
        unit: '',
        most: [1, 1]
    });
}

async function measureUpdates(report: Report): Promise<void> {
    await using rig = await AppstoreRig.start({ engine: true });
    const digests = await pushImages(rig, ['1', '2']);
    const publish = async (version: string, tag: string): Promise<void> => {
        rig.publisher.publish([webApp(digests, version, { compose: webCompose(tag) })]);
        await rig.sync();
    };
    await rig.addSource();
    await publish('1.0.0', '1');
    const body = { source: 'main', app: 'wiki' };
    const plans: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
        plans.push(await timed(() => rig.post('/plan', body)));
    }
    report.add({
        target: 'as3',
        what: 'a plan where the images are known',
        value: median(plans),
        unit: 'ms',
        most: [600, 300]
    });
    const done = await rig.install(body);
    if (done.state !== 'succeeded') {
        throw new Error(JSON.stringify(done.error));
    }
    const container = rig.container as ContainerRig;
    await container.make('/stacks', { name: 'hand', compose: composeByHand('1') });
    const [through, byHand]: [number[], number[]] = [[], []];
    const [away, awayByHand]: [number[], number[]] = [[], []];
    for (let round = 1; round <= updates; round += 1) {
        const tag = String(1 + (round % 2));
        await publish(`1.0.${round}`, tag);
        const update = (): Promise<unknown> => rig.make('/installed/wiki/update');
        away.push(
            await interruption(container, 'app-wiki', async () => void through.push(await timed(update)))
        );
        const hand = (): Promise<void> => updateByHand(container, tag);
        awayByHand.push(
            await interruption(container, 'hand', async () => void byHand.push(await timed(hand)))
        );
    }
    report.add({
        target: 'as4',
        what: 'an update against pull, stop, copy and start by hand',
        value: median(through) / median(byHand),
        most: [1.5, 1.2],
        of: `${number(median(through))} of ${number(median(byHand))} ms`
    });
    report.add({
        target: 'as5',
        what: 'how long an update interrupts an app, against stop, copy and start by hand',
        value: median(away) / median(awayByHand),
        most: [1.2, 1],
        of: `${number(median(away))} of ${number(median(awayByHand))} ms`
    });
}

/** Milliseconds from the end of the container of a stack to the start of the next one, as the engine tells them. */
async function interruption(
    { engine }: ContainerRig,
    stack: string,
    work: () => Promise<void>
): Promise<number> {
    const since = Date.now() / 1_000;
    await work();
    const filters = JSON.stringify({
        type: ['container'],
        event: ['die', 'start'],
        label: [`com.docker.compose.project=${stack}`]
    });
    const query = `since=${since}&until=${Date.now() / 1_000}&filters=${encodeURIComponent(filters)}`;
    const { data } = await engine.ask('GET', `/events?${query}`);
    const events = String(data)
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { readonly Action: string; readonly timeNano: number });
    const ended = events.find(({ Action }) => Action === 'die');
    const started = events.findLast(({ Action }) => Action === 'start');
    if (ended === undefined || started === undefined) {
        throw new Error(`The update of ${stack} ended and started nothing: ${String(data)}`);
    }
    return (started.timeNano - ended.timeNano) / 1_000_000;
}

/** The same steps as an admin takes them, with a stack of the admin's own. */
async function updateByHand(container: ContainerRig, tag: string): Promise<void> {
    await container.make('/images/pull', { image: `${repository}:${tag}` });
    await container.make('/stacks/hand/stop');
    const copy = await container.host.as('admin').fetch('GET', '/volumes/hand_data/archive');
    await copy.arrayBuffer();
    await container.make('/stacks/hand', { compose: composeByHand(tag) }, 'PUT');
}

const composeByHand = (tag: string): string => webCompose(tag).replace('${APP_PORT}', '18300');

async function timed(work: () => Promise<unknown>): Promise<number> {
    const began = performance.now();
    await work();
    return performance.now() - began;
}
