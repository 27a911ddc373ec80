/** The plugin on the test kit with the programs of this machine, and what tests of it ask again and again. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import { createTestHost, type TestAnswer, type TestHost } from '@portico/testing';

import backup from '../../../extensions/backup/src/index.ts';
import { until } from '../../support/until.ts';

/** Every permission of the plugin. */
export const permissions = ['read', 'browse', 'run', 'content', 'write', 'restore', 'hooks', 'secrets'];

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
type Answer = TestAnswer<any>;

export interface BackupRig {
    readonly host: TestHost;
    /** A folder of the test. */
    readonly root: string;
    ask(method: string, path: string, body?: object): Promise<Answer>;
    /** Asks for what must succeed, and gives its data. */
    made(method: string, path: string, body?: object): Promise<Answer['data']>;
    /** Asks for a task, and waits for its end. */
    ended(method: string, path: string, body?: object): ReturnType<TestHost['tasks']['wait']>;
    /** Makes a repository, and gives its id. */
    repository(input: object): Promise<number>;
    /** Runs a plan, and gives the run when it is over. */
    run(planId: number, body?: object): Promise<Answer['data']>;
    close(): Promise<void>;
}

/** What work gives, and the commands that restic is given meanwhile, in their order. */
export async function withCommands<T>(
    { programs: { calls } }: TestHost,
    work: () => Promise<T>
): Promise<readonly [given: T, commands: readonly string[]]> {
    const before = calls.length;
    const given = await work();
    const commands = calls
        .slice(before)
        .filter(({ file }) => file === 'restic')
        .map(({ args }) => args[args.indexOf('--json') + 1] ?? '');
    return [given, commands];
}

export async function createBackupRig(
    options: Partial<Parameters<typeof createTestHost>[1]> = {}
): Promise<BackupRig> {
    const root = mkdtempSync(join(tmpdir(), 'backup-'));
    const host = await createTestHost(backup, {
        package: join(import.meta.dirname, '../../../extensions/backup'),
        machine: 'real',
        timing: { patienceMs: 60_000 },
        ...options
    });
    const ask = (method: string, path: string, body?: object): Promise<Answer> =>
        host.as({ permissions }).ask(method, path, body);
    const made: BackupRig['made'] = async (method, path, body) => {
        const answer = await ask(method, path, body);
        expect(answer.status, `${method} ${path}: ${answer.text}`).to.be.within(200, 202);
        return answer.data;
    };
    const ended: BackupRig['ended'] = async (method, path, body) => {
        const { id } = await made(method, path, body);
        return host.tasks.wait(id as number);
    };
    return {
        host,
        root,
        ask,
        made,
        ended,
        async repository(input) {
            const task = await ended('POST', '/repositories', {
                name: 'target',
                password: 'correct horse',
                ...input
            });
            expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
            return (task.result as { repositoryId: number }).repositoryId;
        },
        async run(planId, body = {}) {
            const { id } = await made('POST', `/plans/${planId}/run`, body);
            await until(
                async () => (await made('GET', `/runs/${id}`)).finishedAt !== null,
                'the run ends',
                60_000
            );
            return made('GET', `/runs/${id}`);
        },
        async close() {
            await host.close();
            rmSync(root, { recursive: true, force: true });
        }
    };
}
