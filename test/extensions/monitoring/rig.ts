/** The plugin on a machine of the test, in the test kit. */
import { createRequire } from 'node:module';

import {
    createTestHost,
    type TestAnswer,
    type TestHost,
    type TestHostOptions,
    type Who
} from '@portico/testing';

import { defineMonitoring } from '../../../extensions/monitoring/src/index.ts';
import type { Machine } from '../../../extensions/monitoring/src/machine.ts';
import { TestMachine } from './machine.ts';

const manifest = createRequire(import.meta.url)('../../../extensions/monitoring/package.json') as {
    readonly portico: { readonly capabilities: NonNullable<TestHostOptions['grants']> };
};

export const base = '/api/plugins/monitoring';

/** `root` may everything, `op` reads and writes, `viewer` reads. */
export const people: Readonly<Record<'root' | 'op' | 'viewer', Who>> = {
    root: {
        username: 'root',
        role: 'admin',
        permissions: [
            'read',
            'commands',
            'write',
            'logs',
            'export',
            'control',
            'plugins:read',
            'engine:read',
            'engine:logs',
            'cronjob:run'
        ]
    },
    op: { username: 'op', role: 'operator', permissions: ['read', 'write', 'logs'] },
    viewer: { username: 'viewer', role: 'viewer', permissions: ['read'] }
};

type Person = keyof typeof people | null;

export class MonitoringRig {
    readonly host: TestHost;
    readonly machine: TestMachine;

    constructor(host: TestHost, machine: TestMachine) {
        this.host = host;
        this.machine = machine;
    }

    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
    ask(as: Person, method: string, path: string, body?: object, headers = {}): Promise<TestAnswer<any>> {
        return this.host.as(as === null ? 'anonymous' : people[as]).ask(method, path, body, { headers });
    }

    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
    get(path: string, as: Person = 'viewer'): Promise<TestAnswer<any>> {
        return this.ask(as, 'GET', `${base}${path}`);
    }

    end(): Promise<void> {
        return this.host.close();
    }
}

export async function createMonitoringRig({
    settings = {},
    on,
    reach
}: {
    readonly settings?: Readonly<Record<string, unknown>>;
    readonly on?: Machine;
    /** Programs and local sockets are those of this machine, and these networks are granted beside the public ones. */
    readonly reach?: readonly string[];
} = {}): Promise<MonitoringRig> {
    const machine = new TestMachine();
    const host = await createTestHost(defineMonitoring(on ?? machine), {
        package: new URL('../../../extensions/monitoring', import.meta.url),
        settings,
        timing: { patienceMs: 60_000 },
        ...(reach === undefined
            ? {}
            : { machine: 'real', grants: { ...manifest.portico.capabilities, network: ['*', ...reach] } })
    });
    host.programs.missing('systemctl');
    return new MonitoringRig(host, machine);
}
