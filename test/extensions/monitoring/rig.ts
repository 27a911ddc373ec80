/** The plugin on a machine of the test, behind the real boundary, the real HTTP servers and a real database. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Generation } from '../../../core/src/plugins/runtime/generation.ts';
import { defineMonitoring } from '../../../extensions/monitoring/src/index.ts';
import type { Machine } from '../../../extensions/monitoring/src/sampling/sources/machine.ts';
import { type Asked, createPluginRig, type PluginRig, type RigOptions } from '../../support/plugin-host.ts';
import { TestMachine } from './machine.ts';

export const base = '/api/plugins/monitoring';
const { portico: manifest } = JSON.parse(
    readFileSync(new URL('../../../extensions/monitoring/package.json', import.meta.url), 'utf8')
) as { portico: { capabilities: object } };

export interface MonitoringRig {
    readonly rig: PluginRig;
    readonly machine: TestMachine;
    readonly generation: Generation;
    get(path: string, as?: string): Promise<Asked>;
    /** Ends the generation, if any, and starts another one on the same data. */
    again(settings?: object): Promise<Generation>;
    end(): Promise<void>;
}

/** `root` may everything, `op` reads and writes, `viewer` reads. */
export async function createMonitoringRig({
    settings = {},
    on,
    rigOptions
}: {
    readonly settings?: object;
    readonly on?: Machine;
    readonly rigOptions?: RigOptions;
} = {}): Promise<MonitoringRig> {
    const rig = await createPluginRig(rigOptions);
    const machine = new TestMachine();
    const definition = defineMonitoring(on ?? machine);
    rig.user(
        'root',
        ['read', 'commands', 'write']
            .map((verb) => `monitoring:${verb}`)
            .concat('plugins:read', 'engine:read'),
        { role: 'admin' }
    );
    rig.user('op', ['monitoring:read', 'monitoring:write'], { role: 'operator' });
    rig.user('viewer', ['monitoring:read'], { role: 'viewer' });
    let generation: Generation | null = null;
    const made = {
        rig,
        machine,
        get generation(): Generation {
            return generation as Generation;
        },
        get: (path: string, as = 'viewer') => rig.ask(as, 'GET', `${base}${path}`),
        async again(changed: object = settings) {
            await generation?.close('a new generation');
            generation = await rig.run(definition, {
                name: 'monitoring',
                capabilities: manifest.capabilities,
                manifest: manifest as never,
                settings: { ...changed },
                dataDir: join(rig.root, 'data/monitoring')
            });
            return generation;
        },
        end: () => rig.close()
    };
    await made.again();
    return made;
}
