import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type Database, openDatabase } from '../../../../core/src/platform/database/database.ts';
import { pluginHostEntities, pluginHostMigrations } from '../../../../core/src/plugins/runtime/entities.ts';
import { Schedules, systemAlarm } from '../../../../core/src/plugins/runtime/schedules.ts';
import { createTestPorts, type TestPorts } from '../../../support/core/http-ports.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const minute = 60_000;
const once = { everySeconds: 3600, missed: 'run-once' } as const;

let root: string;
let db: Database;
let ports: TestPorts;
let now: number;
let ending: AbortController;

const schedules = (): Schedules =>
    new Schedules({
        plugin: 'probe',
        clock: { now: () => now },
        db,
        log: ports.log,
        signal: ending.signal,
        alarm: (milliseconds, ring) => systemAlarm(Math.min(milliseconds, 5), ring)
    });
const kept = async (): Promise<readonly string[]> =>
    (await db.read((em) => em.execute<{ name: string }[]>('select name from plugin_schedules'))).map(
        ({ name }) => name
    );

describe('Schedules', () => {
    beforeEach(async () => {
        root = mkdtempSync(join(tmpdir(), 'portico-schedules-'));
        db = await openDatabase({
            file: join(root, 'core.db'),
            entities: [...pluginHostEntities],
            migrations: [...pluginHostMigrations]
        });
        ports = createTestPorts();
        now = Date.UTC(2026, 0, 1);
        ending = new AbortController();
    });
    afterEach(async () => {
        ending.abort();
        await db.close();
        rmSync(root, { recursive: true, force: true });
    });

    it('makes good for what passed between two generations, and not for what was taken away', async () => {
        const runs: string[] = [];
        const run =
            (name: string) =>
            async ({ missed }: { missed: boolean }): Promise<void> =>
                void runs.push(`${name} ${missed ? 'missed' : 'due'}`);
        const first = schedules();
        await first.add('stays', once, run('stays'));
        await first.add('goes', once, run('goes'));
        await first.add('changes', once, run('changes'));
        expect((await kept()).toSorted()).to.equal(['changes', 'goes', 'stays']);
        await first.remove('goes');
        await first.stop('stays');
        await first.stop('changes');
        expect((await kept()).toSorted()).to.equal(['changes', 'stays']);
        now += 120 * minute;
        const second = schedules();
        await second.add('stays', once, run('stays'));
        await second.add('goes', once, run('goes'));
        await second.add('changes', { everySeconds: 3600 }, run('changes'));
        await until(async () => runs.length > 0, 'the missed run');
        expect(runs).to.equal(['stays missed']);
        expect((await kept()).toSorted()).to.equal(['goes', 'stays']); // what is skipped now has missed no time
        await Promise.all(second.names().map((name) => second.stop(name)));
    });

    it('says so when a time is missed and skipped', async () => {
        const runs: Date[] = [];
        const own = schedules();
        await own.add('hourly', { everySeconds: 3600 }, async ({ at }) => void runs.push(at));
        now += 90 * minute;
        await until(
            async () =>
                ports.lines.some((line) =>
                    JSON.stringify(line).includes('A run of a schedule was missed and is skipped')
                ),
            'the line'
        );
        expect([runs, own.next('hourly')?.toISOString()]).to.equal([[], '2026-01-01T02:00:00.000Z']);
        await own.stop('hourly');
    });

    it('can be taken away and replaced from within its own run', async () => {
        const runs: string[] = [];
        const own = schedules();
        await own.add('self', { everySeconds: 60 }, async () => {
            runs.push('first');
            await own.add('self', { everySeconds: 60 }, async () => {
                runs.push('second');
                await own.remove('self');
            });
        });
        now += minute;
        await until(
            async () => runs.length === 1 && own.next('self')?.getTime() === now + minute,
            'the first run'
        );
        now += minute;
        await until(async () => runs.length === 2 && own.names().length === 0, 'the second run');
        now += 5 * minute;
        expect(runs).to.equal(['first', 'second']);
    });

    it('runs once for one name, however many add it at once', async () => {
        const runs: string[] = [];
        const own = schedules();
        await Promise.all(
            ['a', 'b', 'c'].map((mark) =>
                own.add('one', { everySeconds: 60 }, async () => void runs.push(mark))
            )
        );
        expect(own.names()).to.equal(['one']);
        now += minute;
        await until(async () => runs.length > 0, 'a run');
        now += minute;
        await until(async () => runs.length > 1, 'another run');
        expect(new Set(runs).size).to.equal(1);
        await own.stop('one');
    });
});
