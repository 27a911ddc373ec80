import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    type Ordered,
    placesBefore
} from '../../../../../extensions/container/src/stacks/deploying/order.ts';
import { freePort } from '../../../../support/ports.ts';
import { image } from '../../engines.ts';
import { describeOnEngines } from '../../support/on-engines.ts';
import type { ContainerRig } from '../../support/rig.ts';

export const lab = Lab.script();
const { describe, it } = lab;

function planOf(
    services: Readonly<
        Record<string, { needs?: readonly string[]; joins?: string; port?: number; held?: number }>
    >
): Ordered {
    const all = Object.entries(services);
    // The part of a plan that `placesBefore` reads.
    return {
        wanted: all.map(([service, { joins = '', port = null }]) => ({
            service,
            spec: { name: service, networkMode: joins, pidMode: '', ipcMode: '', ports: [{ hostPort: port }] }
        })),
        compiled: {
            services: all.map(([name, { needs = [] }]) => ({
                name,
                dependsOn: needs.map((service) => ({ service, condition: 'service_started', required: true }))
            }))
        },
        current: new Map(all.map(([name, { held }]) => [name, { Ports: [{ PublicPort: held }] }]))
    } as unknown as Ordered;
}

describe('placesBefore', () => {
    it('lets containers come after what they depend on, join and take a port of, and after no other', () => {
        const plan = planOf({
            a: { held: 80 },
            b: {},
            c: { needs: ['a', 'b'] },
            d: { joins: 'container:b' },
            e: { port: 80 },
            f: { port: 81 }
        });
        expect(placesBefore(plan)).to.equal([[], [], [0, 1], [1], [0], []]);
    });

    it('lets no more than eight begin at once', () => {
        const plan = planOf(Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`s${at}`, {}])));
        expect(placesBefore(plan).map((places) => places.length)).to.equal([0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    });
});

const service = (more: string): string =>
    `{ image: "${image}", stop_grace_period: 0s, command: [sleep, "1000"], ${more} }`;
const slow = (seconds: number): string =>
    service(`healthcheck: { test: [CMD, test, -f, /tmp/up], interval: 200ms, retries: 10000 }`).replace(
        '[sleep, "1000"]',
        `[sh, -c, "sleep ${seconds}; touch /tmp/up; exec sleep 1000"]`
    );
const afterSlow = service('depends_on: { slow: { condition: service_healthy } }');

const startedAt = async (rig: ContainerRig, name: string): Promise<number> =>
    Date.parse((await rig.engine.ask('GET', `/containers/${name}/json`)).data.State.StartedAt as string);

describeOnEngines(lab, 'Containers of a stack', (real) => {
    real('that wait for no other are started while others wait', async (rig) => {
        const compose = `services:\n  slow: ${slow(2)}\n  waits: ${afterSlow}\n  free: ${service('')}\n`;
        await rig.make('/stacks', { name: 'order', compose });
        expect(await startedAt(rig, 'order-free-1')).to.be.below(await startedAt(rig, 'order-waits-1'));
        await rig.make('/stacks/order', {}, 'DELETE');
    });

    real('are ended at once when one of them cannot be started, and those of before run on', async (rig) => {
        const port = await freePort();
        const one = `services:\n  held: ${service(`ports: ["${port}:80"]`)}\n`;
        await rig.make('/stacks', { name: 'holder', compose: one });
        await rig.make('/stacks', { name: 'cut', compose: `services:\n  free: ${service('')}\n` });
        const before = await startedAt(rig, 'cut-free-1');
        const compose = `services:
  slow: ${slow(600)}
  waits: ${afterSlow}
  taken: ${service(`ports: ["${port}:80"]`)}
  free: ${service('')}
`;
        const failed = await rig.run('/stacks/cut', { compose, waitSeconds: 900 }, 'PUT');
        expect([failed.state, failed.error?.code]).to.equal(['failed', 42254]);
        expect((await rig.engine.names()).filter((name) => name.startsWith('cut-'))).to.equal(['cut-free-1']);
        expect(await startedAt(rig, 'cut-free-1')).to.equal(before);
        await rig.make('/stacks/cut', {}, 'DELETE');
        await rig.make('/stacks/holder', {}, 'DELETE');
    });

    real('can hand a port to another of them', async (rig) => {
        const port = await freePort();
        const published = `ports: ["${port}:80"]`;
        const compose = (first: string, second: string): string =>
            `services:\n  one: ${service(first)}\n  two: ${service(second)}\n`;
        await rig.make('/stacks', { name: 'moved', compose: compose(published, '') });
        const moved = await rig.make('/stacks/moved', { compose: compose('', published) }, 'PUT');
        expect(moved.state).to.equal('running');
        await rig.make('/stacks/moved', {}, 'DELETE');
    });
});
