import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { openPluginDatabase, type PluginDatabase } from '../../../../core/src/plugins/runtime/database.ts';
import { entities, migrations } from '../../../../extensions/monitoring/src/entities.ts';
import { Bucket } from '../../../../extensions/monitoring/src/history/bucket.ts';
import { History, type Point } from '../../../../extensions/monitoring/src/history/history.ts';
import { HistoryRows } from '../../../../extensions/monitoring/src/history/rows.ts';
import { chooseTiers, planQuery } from '../../../../extensions/monitoring/src/history/tiers.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000];
const start = Date.parse('2026-01-01T00:00:00Z');
const bounds = { retentionDays: 365, maxSeries: 400 };
type Sampled = readonly [at: number, value: number];

/** A history on a real database, in a folder that goes away. */
async function withHistory(
    work: (rig: {
        open(more?: Partial<typeof bounds>): Promise<History>;
        again(at: number): Promise<History>;
        crash(at: number): Promise<History>;
        bytes(): number;
        db(): PluginDatabase;
    }) => Promise<void>
): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-history-'));
    let db: PluginDatabase | null = null;
    let history: History | null = null;
    const open = async (at: number, more: Partial<typeof bounds> = {}): Promise<History> => {
        await db?.close();
        db = await openPluginDatabase({ dataDir: folder, entities, migrations });
        history = new History(db, { ...bounds, ...more });
        await history.load(at);
        return history;
    };
    try {
        await work({
            open: (more) => open(start, more),
            async again(at) {
                await history?.flush();
                return open(at);
            },
            crash: (at) => open(at),
            bytes: () =>
                ['data.db', 'data.db-wal'].reduce(
                    (sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0),
                    0
                ),
            db: () => db as PluginDatabase
        });
    } finally {
        await (db as PluginDatabase | null)?.close();
        rmSync(folder, { recursive: true, force: true });
    }
}

/** What the points must be, added up without any of the plugin's code. */
function bruteForce(
    samples: readonly Sampled[],
    { from, to, step }: { readonly from: number; readonly to: number; readonly step: number }
): (Pick<Point, 'min' | 'avg' | 'max'> & { readonly at: string })[] {
    const points = [];
    for (let at = from; at < to; at += step) {
        const values = samples.filter(([when]) => when >= at && when < at + step).map(([, value]) => value);
        points.push({
            at: new Date(at).toISOString(),
            min: values.length === 0 ? null : Math.min(...values),
            avg: values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length,
            max: values.length === 0 ? null : Math.max(...values)
        });
    }
    return points;
}

/** Equal as far as rows keep digits: seven of limits, eight of means. */
function agree(points: readonly Point[], expected: readonly Point[]): void {
    expect(points.map(({ at }) => at)).to.equal(expected.map(({ at }) => at));
    points.forEach(({ min, avg, max }, index) => {
        const other = expected[index] ?? { min: null, avg: null, max: null };
        expect(isNear(min, other.min, 1e-6)).to.be.true();
        expect(isNear(avg, other.avg, 1e-8)).to.be.true();
        expect(isNear(max, other.max, 1e-6)).to.be.true();
        expect(min === null || ((avg ?? NaN) >= min && (avg ?? NaN) <= (max ?? NaN))).to.be.true();
    });
}

function isNear(value: number | null, other: number | null, part: number): boolean {
    return value === null || other === null
        ? value === other
        : Math.abs(value - other) <= part * Math.max(1, Math.abs(other));
}

const asked = (now: number, from: number, step: number | null, interval = 10 * second) => ({
    now,
    from,
    to: now,
    step,
    interval
});

describe('History', () => {
    it(
        'keeps a year in constant space, and every step of it adds up to what was measured',
        { timeout: 240_000 },
        async () => {
            await withHistory(async ({ open, bytes }) => {
                const history = await open();
                const samples: Sampled[] = [];
                const end = start + 400 * day;
                let value = 50;
                let seed = 7;
                const random = (): number => {
                    seed = (seed * 48_271) % 2_147_483_647;
                    return seed / 2_147_483_647;
                };
                // The finer the younger: everything that a tier will hold is measured at that tier's step at least.
                for (let at = start + 50; at < end;) {
                    const left = end - at;
                    value = Math.max(0, Math.min(100, value + random() * 10 - 5));
                    // A day's outage each month.
                    if (Math.floor((at - start) / day) % 30 !== 17 || left < 2 * day) {
                        samples.push([at, value]);
                        await history.record(
                            at,
                            new Map([
                                ['cpu.usage', value],
                                ...Array.from(
                                    { length: 19 },
                                    (_none, index) => [`disk.used:/${index}`, value * index] as const
                                )
                            ])
                        );
                        if (samples.length % 20 === 0 || left < 2 * hour) {
                            await history.save();
                        }
                    }
                    at +=
                        left <= 1.2 * hour
                            ? 10 * second
                            : left <= 26 * hour
                              ? minute
                              : left <= 31 * day
                                ? 20 * minute
                                : 2 * hour;
                }
                await history.save();
                for (const [from, step] of [
                    [end - hour, 10 * second],
                    [end - 50 * minute, 30 * second],
                    [end - 24 * hour, minute],
                    [end - 20 * hour, 5 * minute],
                    [end - 29 * day, 20 * minute],
                    [end - 25 * day, 6 * hour],
                    [end - 364 * day, 2 * hour],
                    [end - 300 * day, day]
                ] as const) {
                    const plan = history.plan(asked(end, from, step));
                    expect(plan.step).to.equal(step);
                    const points = await history.points('cpu.usage', plan);
                    agree(points, bruteForce(samples, plan));
                    expect(points.filter(({ avg }) => avg !== null).length).to.be.above(10);
                }
                const plan = history.plan(asked(end, end - 364 * day, day));
                const outage = await history.points('cpu.usage', plan);
                expect(outage.some(({ avg }) => avg === null)).to.be.true();
                const thrice = await history.points('disk.used:/3', plan);
                outage.forEach(({ max }, index) => {
                    expect(
                        isNear(thrice[index]?.max ?? null, max === null ? null : max * 3, 1e-6)
                    ).to.be.true();
                });
                expect(await history.points('network.rx:none', plan)).to.equal(
                    outage.map(({ at }) => ({ at, min: null, avg: null, max: null }))
                );
                // 10,500 slots of 20 series, 18 bytes each, is 3.8 MB: with pages and the journal, not twice as much and the journal's 4 MB.
                expect(bytes()).to.be.below(10_000_000);
                // One more week of samples finds its slots there already.
                const before = bytes();
                for (let at = end; at < end + 7 * day; at += 20 * minute) {
                    await history.record(
                        at,
                        new Map([
                            ['cpu.usage', 1],
                            ...Array.from(
                                { length: 19 },
                                (_none, index) => [`disk.used:/${index}`, index] as const
                            )
                        ])
                    );
                    await history.save();
                }
                expect(bytes()).to.be.below(before + 1_000_000);
            });
        }
    );

    it('takes no more space for a year than it says', async () => {
        const year = chooseTiers(365).reduce((sum, { slots }) => sum + slots, 0);
        const written = 1_000;
        await withHistory(async ({ open, db }) => {
            await open();
            const rows = new HistoryRows(db());
            // 113 and 227: a row takes a little more than half a page, and a little more than a page.
            for (const count of [20, 64, 113, 227, 400]) {
                const closed = Array.from({ length: written }, (_none, at) => {
                    const bucket = new Bucket(at);
                    for (let id = 1; id <= count; id += 1) {
                        bucket.add(id, { min: at, max: at + id, sum: at * 10, count: 10 });
                    }
                    return { tier: 0, bucket };
                });
                await db().write(async (em) => {
                    await em.execute('delete from history');
                    await rows.write(em, [{ step: 1, slots: written }], closed);
                });
                const [pages] = await db().read((em) =>
                    em.execute<{ used: number }[]>(
                        'select (page_count - freelist_count) * page_size as used from pragma_page_count, pragma_freelist_count, pragma_page_size'
                    )
                );
                const bytes = ((pages?.used ?? Infinity) / written) * year;
                expect([count, bytes < count * 0.4e6]).to.equal([count, true]);
            }
        });
    });

    it('reads the rows of an earlier version, and goes on with them', async () => {
        await withHistory(async ({ open, again, db }) => {
            const history = await open();
            await history.record(start, new Map([['cpu.usage', 1]]));
            await history.save({ seen: true });
            const id = history.series.id('cpu.usage') ?? 0;
            // Two series with 32 bytes each: id, count, minimum, maximum, sum.
            const row = Buffer.alloc(64);
            for (const [at, series] of [id, id + 1].entries()) {
                row.writeUInt32BE(series, at * 32);
                row.writeUInt32BE(4, at * 32 + 4);
                [-1.5, 70_000.25, 10].forEach((value, field) =>
                    row.writeDoubleBE(value, at * 32 + 8 + field * 8)
                );
            }
            await db().write((em) =>
                em.execute('insert into history (id, at, data) values (?, ?, ?)', [6, start + minute, row])
            );
            const after = await again(start + hour);
            for (const step of [10 * second, minute]) {
                const plan = after.plan(asked(start + 70 * second, start + minute, step));
                expect((await after.points('cpu.usage', plan))[0]).to.include({
                    min: -1.5,
                    avg: 2.5,
                    max: 70_000.25
                });
            }
        });
    });

    it('goes on where an earlier generation ended, and adds up what it had not written', async () => {
        await withHistory(async ({ open, again, crash }) => {
            let history = await open();
            const samples: Sampled[] = [];
            const measure = async (from: number, to: number): Promise<void> => {
                for (let at = from; at < to; at += 10 * second) {
                    samples.push([at, (at / second) % 97]);
                    await history.record(at, new Map([['cpu.usage', (at / second) % 97]]));
                    await history.save();
                }
            };
            await measure(start, start + 25 * minute + 35 * second);
            history = await again(start + 25 * minute + 36 * second);
            await measure(start + 25 * minute + 40 * second, start + 47 * minute);
            // Nothing runs for hours; the end before was no crash.
            history = await again(start + 5 * hour + 3 * minute);
            await measure(start + 5 * hour + 3 * minute, start + 5 * hour + 33 * minute + 10 * second);
            // The sample in the open bucket is lost with a crash, and no other.
            samples.pop();
            history = await crash(start + 5 * hour + 34 * minute);
            await measure(start + 5 * hour + 34 * minute, start + 5 * hour + 50 * minute);
            const now = start + 5 * hour + 50 * minute;
            for (const [from, step] of [
                [now - 45 * minute, 10 * second],
                [start, minute],
                [start, 10 * minute],
                [start, 2 * hour]
            ] as const) {
                const plan = history.plan(asked(now, from, step));
                expect(plan.step).to.equal(step);
                agree(await history.points('cpu.usage', plan), bruteForce(samples, plan));
            }
        });
    });

    it('takes a clock that jumps: what was measured stays, and both passes through a time count', async () => {
        await withHistory(async ({ open }) => {
            const history = await open();
            const samples: Sampled[] = [];
            const measure = async (from: number, count: number, value: number): Promise<void> => {
                for (let index = 0; index < count; index += 1) {
                    samples.push([from + index * 10 * second, value + index]);
                    await history.record(from + index * 10 * second, new Map([['cpu.usage', value + index]]));
                    await history.save();
                }
            };
            await measure(start + hour, 60, 10);
            // To a year that is far away, and back to twenty minutes ago. As much as it lasted there, of another hour's slots, is written over.
            const far = start + 3_000 * day + 30 * minute;
            await measure(far, 3, 1_000);
            await measure(start + 50 * minute, 180, 40);
            const now = start + 80 * minute;
            const past = samples.filter(([at]) => at < now);
            for (const step of [10 * second, minute, 10 * minute]) {
                const plan = history.plan(asked(now, start + 45 * minute, step));
                agree(await history.points('cpu.usage', plan), bruteForce(past, plan));
            }
            expect(
                (await history.points('cpu.usage', history.plan(asked(far + minute, far, minute))))[0]
            ).to.include({ min: 1_000, max: 1_002 });
        });
    });

    it('keeps what fits another retention', async () => {
        await withHistory(async ({ open }) => {
            const history = await open();
            const samples: Sampled[] = [];
            for (let at = start; at < start + 20 * day; at += 30 * minute) {
                samples.push([at, at % 91]);
                await history.record(at, new Map([['cpu.usage', at % 91]]));
                if (samples.length % 10 === 0) {
                    await history.save();
                }
            }
            await history.save();
            const now = start + 20 * day;
            await history.resize({ retentionDays: 10, maxSeries: 400 }, now);
            const kept = history.plan(asked(now, now - 9 * day, 2 * hour));
            agree(await history.points('cpu.usage', kept), bruteForce(samples, kept));
            await history.resize({ retentionDays: 100, maxSeries: 400 }, now);
            agree(await history.points('cpu.usage', kept), bruteForce(samples, kept));
            const gone = history.plan(asked(now, now - 19 * day, 2 * hour));
            expect(
                (await history.points('cpu.usage', gone)).slice(0, 12 * 8).every(({ avg }) => avg === null)
            ).to.be.true();
        });
    });

    it("bounds the number of series: one that was not seen for a day makes room, and its id is never another's", async () => {
        await withHistory(async ({ open, again }) => {
            let history = await open({ maxSeries: 3 });
            const record = async (at: number, ...names: readonly string[]): Promise<void> => {
                await history.record(at, new Map(names.map((name, index) => [name, index + 1])));
                await history.save({ seen: true });
            };
            await record(start, 'cpu.usage', 'disk.used:/a', 'disk.used:/b', 'disk.used:/c');
            expect([history.series.names(), [...history.series.refused]]).to.equal([
                ['cpu.usage', 'disk.used:/a', 'disk.used:/b'],
                ['disk.used:/c']
            ]);
            await record(start + 2 * hour, 'cpu.usage', 'disk.used:/b', 'disk.used:/c');
            expect(history.series.id('disk.used:/c')).to.be.null();
            await record(start + 25 * hour, 'cpu.usage', 'disk.used:/b', 'disk.used:/c');
            expect([
                history.series.id('disk.used:/a'),
                history.series.id('disk.used:/c'),
                history.series.refused.size
            ]).to.equal([null, 4, 0]);
            history = await again(start + 26 * hour);
            expect(history.series.names()).to.have.length(3);
            const plan = history.plan(asked(start + 26 * hour, start, 2 * hour));
            expect(
                (await history.points('disk.used:/c', plan)).filter(({ avg }) => avg !== null)
            ).to.have.length(1);
            history.expire(start + 800 * day);
            await history.save();
            history = await again(start + 800 * day);
            expect(history.series.size).to.equal(0);
            await record(start + 800 * day, 'load.one');
            expect(history.series.id('load.one')).to.equal(5);
        });
    });

    it('keeps what a full disk refuses, and writes it when there is room', async () => {
        await withHistory(async ({ open, db }) => {
            const history = await open();
            const samples: Sampled[] = [];
            const measure = async (at: number): Promise<void> => {
                samples.push([at, at % 13]);
                await history.record(at, new Map([['cpu.usage', at % 13]]));
            };
            await measure(start);
            await measure(start + 10 * second);
            await expect(history.save({ write: () => Promise.reject(new Error('no room')) })).to.reject(
                'no room'
            );
            await measure(start + 20 * second);
            const plan = history.plan(asked(start + 30 * second, start, 10 * second));
            agree(await history.points('cpu.usage', plan), bruteForce(samples, plan));
            expect(await db().read((em) => em.execute('select * from history'))).to.equal([]);
            await history.save();
            expect(await db().read((em) => em.execute('select * from history'))).to.have.length(2);
            agree(await history.points('cpu.usage', plan), bruteForce(samples, plan));
        });
    });
});

describe('planQuery', () => {
    const tiers = chooseTiers(365);
    const now = start + 400 * day;
    const plan = (ago: number, step: number | null, interval = 10 * second) =>
        planQuery(tiers, { from: now - ago, to: now, step, now, interval });

    it('takes the finest tier that reaches back, and about 500 points, unless a step is asked for', () => {
        expect(
            [hour, 6 * hour, day, 7 * day, 30 * day, 365 * day].map((ago) => [
                plan(ago, null).tier,
                plan(ago, null).step / second
            ])
        ).to.equal([
            [0, 10],
            [1, 60],
            [1, 180],
            [2, 1_800],
            [2, 5_400],
            [3, 64_800]
        ]);
        expect([
            plan(hour, hour).tier,
            plan(hour, 45 * second).step,
            plan(2 * hour, second).step,
            plan(40 * day, minute).step,
            plan(900 * day, minute).tier
        ]).to.equal([2, 50 * second, minute, 2 * hour, 3]);
    });

    it('never has a step shorter than what lies between two samples', () => {
        expect([plan(hour, null, 5 * minute).step, plan(hour, second, 25 * second).step]).to.equal([
            5 * minute,
            30 * second
        ]);
    });

    it('has no more slots than the retention needs', () => {
        expect(chooseTiers(1).map(({ slots }) => slots)).to.equal([360, 1_440, 144, 12]);
        expect(tiers.map(({ slots }) => slots)).to.equal([360, 1_440, 4_320, 4_380]);
    });
});
