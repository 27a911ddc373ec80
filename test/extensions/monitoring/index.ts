import { readFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { metrics } from '../../../extensions/monitoring/src/sampling/metrics.ts';
import { settings } from '../../../extensions/monitoring/src/settings.ts';
import { createMonitoringRig, type MonitoringRig } from './rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('the definition of monitoring', () => {
    let rig: MonitoringRig;
    before(async () => {
        rig = await createMonitoringRig();
    });
    after(() => rig.end());

    it('documents its routes as they are', () => {
        const readme = readFileSync(
            new URL('../../../extensions/monitoring/README.md', import.meta.url),
            'utf8'
        );
        for (const { path, methods } of rig.host.document.routes) {
            expect(readme, `${methods.join()} ${path}`).to.match(
                new RegExp(`\\| (?:${methods.join('|')})[^|]*\`${path.replace(/[{}/]/g, '\\$&')}`)
            );
        }
        for (const name of [
            ...metrics.map((metric) => metric.name),
            ...Object.keys(settings.describe()['keys'] as object).map((key) => `${key}\` |`)
        ]) {
            expect(readme).to.contain(`\`${name.replace(/` \|$/, '')}\``);
        }
    });
});
