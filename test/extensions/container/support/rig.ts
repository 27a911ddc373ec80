/** The plugin in the test kit, with a real engine. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createTestHost, type TestAnswer, type TestHost } from '@portico/testing';

import { defineContainer } from '../../../../extensions/container/src/index.ts';
import type { Machine } from '../../../../extensions/container/src/machine.ts';
import { type EngineKind, TestEngine } from '../engines.ts';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
type Data = any;

/** A task that has ended. */
export interface EndedTask {
    readonly state: string;
    readonly result: Data;
    readonly error: { readonly code: number; readonly message: string } | null;
}

/** The engine of the test in the place of the machine's own. As with systemd, what does not start is seen when it is asked. */
const machineOf = (engine: TestEngine): Machine => ({
    daemonFile: join(engine.root, 'daemon.json'),
    applyDaemon: async (_ctx, how) =>
        how === 'reload' ? engine.reload() : engine.restart().catch(() => undefined)
});

/** One plugin, one engine, and folders for binds. */
export class ContainerRig implements AsyncDisposable {
    readonly host: TestHost;
    readonly engine: TestEngine;
    readonly folder: string;

    private constructor(host: TestHost, engine: TestEngine, folder: string) {
        this.host = host;
        this.engine = engine;
        this.folder = folder;
    }

    static async start(settings: object = {}, kind: EngineKind = 'docker'): Promise<ContainerRig> {
        const engine = await TestEngine.start(kind);
        const folder = mkdtempSync(join(tmpdir(), 'pcr-'));
        mkdirSync(join(folder, 'roots'));
        const host = await createTestHost(defineContainer(machineOf(engine)), {
            package: new URL('../../../../extensions/container/package.json', import.meta.url),
            machine: 'real',
            settings: {
                socket: engine.socket,
                stackFolder: join(folder, 'stacks'),
                bindRoots: [join(folder, 'roots')],
                ...settings
            },
            timing: { patienceMs: 60_000 }
        });
        host.network.lead(engine.socket, { path: engine.socket });
        return new ContainerRig(host, engine, folder);
    }

    ask(
        method: string,
        path: string,
        body?: object,
        who: Parameters<TestHost['as']>[0] = 'admin'
    ): Promise<TestAnswer<Data>> {
        return this.host.as(who).ask<Data>(method, path, body);
    }

    get(path: string): Promise<TestAnswer<Data>> {
        return this.ask('GET', path);
    }

    post(path: string, body: object = {}): Promise<TestAnswer<Data>> {
        return this.ask('POST', path, body);
    }

    put(path: string, body: object): Promise<TestAnswer<Data>> {
        return this.ask('PUT', path, body);
    }

    /** Posts what begins a task, and waits for its end. */
    async run(path: string, body: object = {}, method = 'POST'): Promise<EndedTask> {
        const { status, data, text } = await this.ask(method, path, body);
        if (status !== 202) {
            throw new Error(`${status} ${text}`);
        }
        return (await this.host.tasks.wait(data.id as number)) as EndedTask;
    }

    /** As {@link run}, and it must succeed. Gives the result. */
    async make(path: string, body: object = {}, method = 'POST'): Promise<Data> {
        const { state, result, error } = await this.run(path, body, method);
        if (state !== 'succeeded') {
            throw new Error(`${state} ${JSON.stringify(error)}`);
        }
        return result;
    }

    async close(): Promise<void> {
        await this.host.close();
        await this.engine.close();
        rmSync(this.folder, { recursive: true, force: true });
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }
}
