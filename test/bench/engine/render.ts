/** The time that rendering takes without an engine: of everything, and of one change among few and many sites. */
import { Projection } from '../../../core/src/engine/render/projection/projection.ts';
import { render } from '../../../core/src/engine/render/render.ts';
import type { Site } from '../../../core/src/engine/site.ts';
import { testContext, testSite } from '../../support/engine/site.ts';
import { median, number, type Report } from '../report.ts';
import { behaviours } from '../servers/fleet.ts';

const few = 10;
const many = 10_000;

const sites = (count: number, address = '127.0.0.1:3000'): readonly Site[] =>
    Array.from({ length: count }, (_, id) =>
        testSite({
            id,
            domain: `host${id}.example.test`,
            upstreams: [{ address, weight: 1 }],
            ...behaviours[id % behaviours.length]
        })
    );

/** The median of one call, in milliseconds. */
const time = async (runs: number, work: (run: number) => unknown): Promise<number> => {
    const taken: number[] = [];
    for (let run = 0; run < runs; run += 1) {
        const start = process.hrtime.bigint();
        await work(run);
        taken.push(Number(process.hrtime.bigint() - start) / 1e6);
    }

    return median(taken);
};

const filled = (count: number): Projection => {
    const projection = new Projection(testContext());
    projection.change({ sites: sites(count).map((site) => ({ id: site.id, site })) });
    projection.loaded();
    return projection;
};

const changeTime = (count: number): Promise<number> => {
    const projection = filled(count);
    const site = sites(few)[3] ?? testSite();
    return time(
        2000,
        (run) =>
            projection.change({
                sites: [
                    {
                        id: site.id,
                        site: {
                            ...site,
                            upstreams: [{ address: `127.0.0.1:${3000 + (run % 100)}`, weight: 1 }]
                        }
                    }
                ]
            }).table
    );
};

export async function bench(report: Report): Promise<void> {
    const scratch = await time(
        5,
        () => render({ ...testContext(), sites: sites(many), certificates: [] }).configHash
    );
    const changes = [await changeTime(few), await changeTime(many)] as const;
    report.add({ target: '', what: `${many} sites compiled from scratch`, value: scratch, unit: 'ms' });
    report.add({
        target: '10',
        what: `compiling one change: ${many} sites against ${few}`,
        value: changes[1] / changes[0],
        most: [3, 1.5],
        of: `${number(changes[1] * 1000)} of ${number(changes[0] * 1000)} µs`
    });
}
