import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Call } from '@portico/sdk';
import { createTestHost, type TestHost } from '@portico/testing';

import { defineAppstore } from '../../../extensions/appstore/src/index.ts';
import { realMachine } from '../../../extensions/appstore/src/machine.ts';
import type { ContainerContract } from '../../../extensions/container/src/contract.ts';
import { defineContainer } from '../../../extensions/container/src/index.ts';
import { realMachine as containerMachine } from '../../../extensions/container/src/machine.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const manifest = (name: string): URL => new URL(`../../../extensions/${name}/package.json`, import.meta.url);

describe('A machine without a container engine', () => {
    let folder: string;
    let socket: string;
    let container: TestHost;
    let apps: TestHost;

    before(async () => {
        folder = mkdtempSync(join(tmpdir(), 'pah-'));
        socket = join(folder, 'absent.sock');
        container = await createTestHost(defineContainer(containerMachine), {
            package: manifest('container'),
            machine: 'real',
            settings: { socket, stackFolder: folder },
            // The admin did not let it have files.
            grants: {
                sockets: ['*'],
                hosts: 'own',
                public: ['redeploys one stack, with a token of its own'],
                taps: [
                    ...['backup.list', 'backup.collect', 'backup.restore'],
                    ...['export.collect', 'import.restore']
                ]
            }
        });
        container.network.lead(socket, { path: socket });
        apps = await createTestHost(defineAppstore(realMachine), {
            package: manifest('appstore'),
            machine: 'real',
            partners: {
                container: {
                    engine: async (_input: never, { signal }: Call) =>
                        container.contract<ContainerContract>({ plugin: 'appstore' }).engine({}, { signal })
                }
            }
        });
    });

    after(async () => {
        await apps?.close();
        await container?.close();
        rmSync(folder, { recursive: true, force: true });
    });

    it('lets both plugins run, and their health name the command that helps', async () => {
        const command = 'apt-get install docker.io';
        const [engine, storage] = await container.health();
        const absent = `There is no container engine at ${socket}: see the setting \`socket\``;
        expect(engine).to.include({ name: 'engine', state: 'degraded', evidence: absent });
        expect(engine?.remedy?.command).to.equal(command);
        expect(storage).to.include({ name: 'storage', state: 'degraded' });
        expect(storage?.evidence).to.contain(`${folder} cannot be used`);
        const { code } = await container.as('admin').ask('GET', '/containers');
        expect(code).to.equal(50302);

        const checks = await apps.health();
        const [first] = checks;
        expect(first).to.include({
            name: 'engine',
            state: 'degraded',
            evidence: `No app can be installed or changed: ${absent}`
        });
        expect(first?.remedy?.command).to.equal(command);
        expect(checks.slice(1).map(({ state }) => state)).to.equal(['ok', 'ok']);
        expect((await apps.as('admin').ask('GET', '/apps')).status).to.equal(200);
    });
});
