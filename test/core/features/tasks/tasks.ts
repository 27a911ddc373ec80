import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { StreamEvent } from '@portico/sdk';

import { taskEntities, taskMigrations } from '../../../../core/src/features/tasks/entities.ts';
import { type TaskRun, Tasks, type TaskStart } from '../../../../core/src/features/tasks/tasks.ts';
import type { Caller } from '../../../../core/src/platform/call.ts';
import { fail } from '../../../../core/src/platform/errors.ts';
import { callOf, handClock, openStore, person, type Store } from '../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

/** Work that a test ends by hand. */
function work(): {
    run: TaskRun;
    done: (result?: unknown) => void;
    failed: (error: Error) => void;
    begun: Promise<void>;
    start: Pick<TaskStart, 'work'>;
} {
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<unknown>();
    let begunRun!: TaskRun;
    return {
        get run() {
            return begunRun;
        },
        done: (result?: unknown) => end.resolve(result),
        failed: (error: Error) => end.reject(error),
        begun: begun.promise,
        start: {
            work: (run: TaskRun) => {
                begunRun = run;
                run.signal.addEventListener('abort', () => end.reject(run.signal.reason as Error));
                begun.resolve();
                return end.promise;
            }
        }
    };
}

describe('Tasks', () => {
    let store: Store;
    let tasks: Tasks;
    const admin = person('admin', ['certificates:write']);
    const operator = person('olga', ['certificates:write']);
    const viewer = person('viewer');
    const starter = person('starter');
    const timing = { saveMs: 10, closeMs: 200, cancelMs: 200 };

    const open = async (): Promise<void> => {
        tasks = await Tasks.open({ db: store.db, log: store.log, clock: handClock(), timing });
    };
    const start = (
        more: Partial<TaskStart> & Pick<TaskStart, 'work'>,
        who: Caller = admin
    ): ReturnType<Tasks['start']> =>
        tasks.start({ kind: 'certificate.issue', access: 'certificates:write', call: callOf(who), ...more });
    const ended = async (id: number, who: Caller = admin): Promise<StreamEvent[]> => {
        const events: StreamEvent[] = [];
        for await (const event of tasks.events(id, who, { signal: AbortSignal.timeout(5_000) })) {
            events.push(event);
        }
        return events;
    };

    beforeEach(async () => {
        store = await openStore({ entities: taskEntities, migrations: taskMigrations });
        await open();
    });

    afterEach(async () => {
        await tasks.close();
        await store.remove();
    });

    it('runs work and keeps its result, also after a restart', async () => {
        const call = callOf(admin);
        const one = work();
        const view = await start({
            ...one.start,
            call,
            title: 'Issue a certificate',
            audit: { action: 'issue', resource: 'certificates', resourceId: 3 }
        });
        expect(view).to.equal({
            id: 1,
            kind: 'certificate.issue',
            title: 'Issue a certificate',
            state: 'queued',
            progress: null,
            createdAt: '2026-01-15T12:00:00.000Z',
            actor: { id: 1, username: 'admin', tokenId: null, plugin: null },
            route: null,
            startedAt: null,
            finishedAt: null,
            result: null,
            error: null,
            version: 1
        });
        expect(call.done[0]).to.include({ action: 'issue', resource: 'certificates', resourceId: 3 });
        expect((call.done[0] as { reply: unknown }).reply).to.include({ status: 202, data: view });
        await one.begun;
        one.run.progress(0.5, 'half way');
        expect(tasks.get(1, admin)).to.include({ state: 'running', progress: 0.5 });
        one.done({ certificateId: 3 });
        await ended(1);
        const done = tasks.get(1, admin);
        expect(done).to.include({
            state: 'succeeded',
            progress: 1,
            result: { certificateId: 3 },
            error: null
        });
        expect(done.startedAt).to.be.a.string();
        expect(done.finishedAt).to.be.a.string();
        await store.reopen();
        await open();
        expect(tasks.get(1, admin)).to.equal(done);
        expect((await ended(1)).map(({ event }) => event)).to.equal(['progress', 'log', 'end']);
    });

    it('does not begin a task whose call cannot be put on record', async () => {
        let ran = false;
        const call = callOf(admin, { complete: () => Promise.reject(new Error('no entry')) });
        await expect(start({ call, key: 'k', work: async () => void (ran = true) })).to.reject('no entry');
        expect(tasks.list(admin, {}, { limit: 10, before: null }).tasks).to.equal([]);
        await ended((await start({ key: 'k', work: async () => null })).id);
        expect(ran).to.be.false();
    });

    it('keeps a failure with its reason, and says nothing of the inside of a bug', async () => {
        const first = await start({
            work: async () => Promise.reject(fail.TOOL_MISSING({ tool: 'git', install: 'apt install git' }))
        });
        await ended(first.id);
        expect(tasks.get(first.id, admin)).to.include({
            state: 'failed',
            result: null,
            error: {
                code: 50302,
                reason: 'TOOL_MISSING',
                message: 'git is not installed',
                data: { tool: 'git', install: 'apt install git' }
            }
        });
        const second = await start({ work: () => Promise.reject(new Error('canary of the inside')) });
        await ended(second.id);
        expect(JSON.stringify(tasks.get(second.id, admin))).not.to.contain('canary');
        expect(tasks.get(second.id, admin).error).to.include({ code: 50000, reason: 'INTERNAL' });
        expect(store.lines.some((line) => line.includes('canary of the inside'))).to.be.true();
        const third = await start({
            work: () => {
                throw new Error('thrown at once');
            }
        });
        await ended(third.id);
        expect(tasks.get(third.id, admin)).to.include({ state: 'failed' });
    });

    it('lets one task at a time have a key', async () => {
        const one = work();
        const { id } = await start({ ...one.start, key: 'certificate:3' });
        const error = await expect(start({ work: async () => null, key: 'certificate:3' })).to.reject();
        expect(error).to.include({ code: 40901, reason: 'IN_USE', data: { by: { task: id } } });
        await one.begun;
        one.done();
        await ended(id);
        const again = await Promise.allSettled([
            start({ work: async () => null, key: 'certificate:3' }),
            start({ work: async () => null, key: 'certificate:3' })
        ]);
        expect(again.map(({ status }) => status)).to.equal(['fulfilled', 'rejected']);
    });

    it('runs four at once and the rest in their order', async () => {
        const works = Array.from({ length: 6 }, work);
        for (const each of works) {
            await start(each.start);
        }
        await works[3]?.begun;
        expect(
            tasks.list(admin, { state: 'queued' }, { limit: 10, before: null }).tasks.map(({ id }) => id)
        ).to.equal([6, 5]);
        works[1]?.done();
        await works[4]?.begun;
        expect(
            tasks.list(admin, { state: 'running' }, { limit: 10, before: null }).tasks.map(({ id }) => id)
        ).to.equal([5, 4, 3, 1]);
        await tasks.cancel(6, callOf(admin));
        works.forEach((each) => each.done());
        await ended(5);
        expect(tasks.get(6, admin)).to.include({ state: 'cancelled', startedAt: null, error: null });
    });

    it('cancels what runs, once the call is on record', async () => {
        const one = work();
        const { id } = await start(one.start);
        await one.begun;
        await expect(
            tasks.cancel(id, callOf(admin, { complete: () => Promise.reject(new Error('no entry')) }))
        ).to.reject('no entry');
        expect(tasks.get(id, admin).state).to.equal('running');
        const call = callOf(admin);
        expect(await tasks.cancel(id, call)).to.include({ state: 'cancelled', error: null });
        expect(call.done[0]).to.include({ action: 'cancel', resource: 'tasks', resourceId: id });
        expect(await tasks.cancel(id, callOf(admin))).to.equal(tasks.get(id, admin));
        await expect(tasks.cancel(99, callOf(admin))).to.reject('There is nothing of that name here');
    });

    it('tells the truth about work that does not heed its signal', async () => {
        const end = Promise.withResolvers<void>();
        const { id } = await start({
            work: async () => {
                await end.promise;
                return 'done all the same';
            }
        });
        expect((await tasks.cancel(id, callOf(admin))).state).to.equal('running');
        end.resolve();
        await ended(id);
        expect(tasks.get(id, admin)).to.include({ state: 'succeeded', result: 'done all the same' });
    });

    it('marks what a restart cut as failed, with the reason and what was said until then', async () => {
        const one = work();
        const { id } = await start(one.start);
        await one.begun;
        one.run.progress(0.3, 'a line before the crash');
        const saved = store.db.prepare<[number], { log: string }>('select log from tasks where id = ?');
        for (
            const deadline = Date.now() + 5_000;
            Date.now() < deadline && saved.get(id)?.log.includes('before the crash') !== true;
        ) {
            await new Promise((resolve) => setTimeout(resolve, 5));
        }
        const before = tasks;
        await open();
        const view = tasks.get(id, admin);
        expect(view).to.include({ state: 'failed', progress: 0.3, result: null });
        expect(view.error).to.include({ reason: 'INTERRUPTED' });
        expect((await ended(id)).find(({ event }) => event === 'log')?.data).to.equal({
            line: 'a line before the crash'
        });
        await before.close();
    });

    it('ends what was cut as succeeded when its result was recorded with the change', async () => {
        const [one, two, three] = [work(), work(), work()];
        const ids = [];
        for (const each of [one, two, three]) {
            ids.push((await start(each.start)).id);
            await each.begun;
        }
        await store.db.write((tx) => one.run.recordResult(tx, { written: 7 }));
        await store.db
            .write(async (tx) => {
                await two.run.recordResult(tx, { written: 8 });
                throw new Error('undone');
            })
            .catch(() => undefined);
        await store.db.write((tx) => three.run.recordResult(tx, { written: 9 }));
        expect((await tasks.cancel(ids[2] ?? 0, callOf(admin))).state).to.equal('succeeded');
        const before = tasks;
        await open();
        const [cut, undone, cancelled] = ids.map((id) => tasks.get(id, admin));
        expect(cut).to.include({ state: 'succeeded', progress: 1, error: null, result: { written: 7 } });
        expect(undone).to.include({ state: 'failed', result: null });
        expect(cancelled).to.include({ state: 'succeeded', result: { written: 9 } });
        await before.close();
    });

    it('aborts what runs when it closes, and marks what does not end as cut', async () => {
        const one = work();
        const first = await start(one.start);
        const second = await start({ work: () => new Promise(() => undefined) });
        await one.begun;
        await tasks.close();
        await expect(start({ work: async () => null })).to.reject('The panel is not ready');
        await store.reopen();
        await open();
        expect(tasks.get(first.id, admin)).to.include({ state: 'failed' });
        expect(tasks.get(second.id, admin)).to.include({ state: 'failed' });
        expect(tasks.get(second.id, admin).error).to.include({ reason: 'INTERRUPTED' });
    });

    it('shows a task to its starter and to those who have its permission, and log and result only to these', async () => {
        const { id } = await start(
            {
                work: async (run) => {
                    run.log('canary line');
                    return 'canary result';
                }
            },
            starter
        );
        await ended(id, operator);
        expect(tasks.get(id, operator).result).to.equal('canary result');
        const own = tasks.get(id, starter);
        expect(own).to.include({ id, state: 'succeeded', result: null });
        expect(JSON.stringify(await ended(id, starter))).not.to.contain('canary');
        expect(() => tasks.get(id, viewer)).to.throw('There is nothing of that name here');
        expect(() => tasks.events(id, viewer, { signal: AbortSignal.abort() })).to.throw(
            'There is nothing of that name here'
        );
        await expect(tasks.cancel(id, callOf(viewer))).to.reject('There is nothing of that name here');
        expect(tasks.list(viewer, {}, { limit: 10, before: null }).tasks).to.equal([]);
        expect(tasks.list(starter, {}, { limit: 10, before: null }).tasks).to.equal([own]);
        expect(tasks.list(operator, {}, { limit: 10, before: null }).tasks).to.have.length(1);
        const mine = await start({ work: async () => 'mine', access: 'authenticated' }, viewer);
        await ended(mine.id, viewer);
        expect(tasks.get(mine.id, viewer).result).to.equal('mine');
        expect(() => tasks.get(mine.id, admin)).to.throw('There is nothing of that name here');
    });

    it('pages and filters the list', async () => {
        for (let index = 0; index < 7; index += 1) {
            const { id } = await start({
                kind: index % 2 === 0 ? 'even' : 'odd',
                work: async () => (index === 6 ? Promise.reject(fail.NOT_FOUND()) : index)
            });
            await ended(id);
        }
        const first = tasks.list(admin, {}, { limit: 3, before: null });
        expect(first.tasks.map(({ id }) => id)).to.equal([7, 6, 5]);
        expect(tasks.list(admin, {}, { limit: 3, before: first.next }).tasks.map(({ id }) => id)).to.equal([
            4, 3, 2
        ]);
        expect(
            tasks.list(admin, { kind: 'even' }, { limit: 9, before: null }).tasks.map(({ id }) => id)
        ).to.equal([7, 5, 3, 1]);
        expect(tasks.list(admin, { state: 'failed' }, { limit: 9, before: null }))
            .to.include({ next: null })
            .and.to.satisfy(
                ({ tasks: found }: { tasks: { id: number }[] }) => found.length === 1 && found[0]?.id === 7
            );
    });

    it('streams progress and log as they come, and goes on after a line that the reader has', async () => {
        const one = work();
        const { id } = await start(one.start);
        await one.begun;
        one.run.log('first\nsecond');
        const controller = new AbortController();
        const stream = tasks.events(id, admin, { signal: controller.signal });
        expect((await stream.next()).value).to.equal({
            event: 'progress',
            data: { state: 'running', progress: null }
        });
        expect((await stream.next()).value).to.equal({ event: 'log', id: '0', data: { line: 'first' } });
        expect((await stream.next()).value).to.equal({ event: 'log', id: '1', data: { line: 'second' } });
        const waiting = stream.next();
        one.run.progress(0.25);
        expect((await waiting).value).to.equal({
            event: 'progress',
            data: { state: 'running', progress: 0.25 }
        });
        const resumed = tasks.events(id, admin, { from: 1, signal: controller.signal });
        await resumed.next();
        expect((await resumed.next()).value).to.include({ id: '1' });
        const last = stream.next();
        controller.abort();
        expect((await last).done).to.be.true();
        one.done();
    });

    it('keeps the last thousand lines, without what a terminal would do with them', async () => {
        const { id } = await start({
            work: async (run) => {
                run.log('\u001b[31mred\u001b[0m\u0007 and \u001b]0;title\u0007plain\r\n');
                for (let index = 0; index < 1_500; index += 1) {
                    run.log(`line ${index}`);
                }
                run.log('x'.repeat(1_000_000));
            }
        });
        const lines = (await ended(id)).filter(({ event }) => event === 'log');
        expect(lines.length).to.be.at.most(1_000);
        expect(lines.at(-1)).to.equal({ event: 'log', id: '1501', data: { line: 'x'.repeat(4_096) } });
        const other = await start({
            work: async (run) => run.log('\u001b[31mred\u001b[0m\u0007 and \u001b]0;title\u0007plain\r\n')
        });
        expect((await ended(other.id)).find(({ event }) => event === 'log')?.data).to.equal({
            line: 'red and plain'
        });
    });

    it('does not keep a result that is too large or no plain data, and still succeeded', async () => {
        const cyclic: Record<string, unknown> = {};
        cyclic['self'] = cyclic;
        for (const result of ['x'.repeat(1024 * 1024), cyclic, 10n]) {
            const { id } = await start({ work: async () => result });
            await ended(id);
            expect(tasks.get(id, admin)).to.include({ state: 'succeeded', result: null });
        }
    });

    it('lets work write to the database', async () => {
        const { id } = await start({ work: () => store.db.write(async () => 'written') });
        await ended(id);
        expect(tasks.get(id, admin).result).to.equal('written');
    });

    it('keeps at most 1,000 tasks', async () => {
        await store.db.write(async (tx) => {
            await tx.em.execute(
                `insert into tasks (kind, title, state, access, starter, created_at, finished_at, log, version)
                with recursive n (i) as (select 1 union all select i + 1 from n where i < 1200) select 'old', 'old', 'succeeded', 'certificates:write', 'x', 0, 1, '{"first":0,"lines":[]}', 1 from n`,
                [],
                'run'
            );
        });
        await ended((await start({ work: async () => null })).id);
        expect(
            store.db
                .prepare<[], { n: number; low: number }>('select count(*) as n, min(id) as low from tasks')
                .get()
        ).to.equal({ n: 1_000, low: 202 });
    });
});
