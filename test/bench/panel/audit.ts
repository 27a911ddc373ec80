/**
 * Targets 6 and 7: the audit log with many entries. Measures what an entry adds to a change, how much longer a deep or filtered page takes than the
 * first page, and how long a verification blocks the event loop. `PORTICO_BENCH_ENTRIES` is the number of entries, by default 250,000.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Audit } from '../../../core/src/features/audit/audit.ts';
import { auditEntities, auditMigrations } from '../../../core/src/features/audit/entities.ts';
import type { AuditFilter } from '../../../core/src/features/audit/search/search.ts';
import { settingsEntities, settingsMigrations } from '../../../core/src/features/settings/entities.ts';
import { systemClock } from '../../../core/src/platform/clock.ts';
import { type Database, openDatabase } from '../../../core/src/platform/database/database.ts';
import { createKeyring } from '../../../core/src/platform/keys/keyring.ts';
import { createLog } from '../../../core/src/platform/log/log.ts';
import type { AuditEntry } from '../../../core/src/server/http/ports.ts';
import { number, type Report } from '../report.ts';

const total = Number(process.env['PORTICO_BENCH_ENTRIES'] ?? 250_000);
const actions = ['create', 'update', 'delete', 'login', 'login_failed', 'logout', 'run', 'reload'];
const resources = ['hosts', 'users', 'certificates', 'settings', 'tasks'];

function entry(n: number): AuditEntry {
    return {
        actor: { id: n % 50, username: `user${n % 50}`, tokenId: null, plugin: null },
        action: actions[(n * 7919) % 8] ?? '',
        resource: resources[(n * 104_729) % 5] ?? '',
        resourceId: n % 3000,
        outcome: n % 1_000 === 0 ? 'failure' : 'success',
        status: 200,
        code: 0,
        ip: `10.${n % 4}.${n % 256}.${(n * 31) % 256}`,
        userAgent:
            'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36',
        requestId: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
        before: { upstream: `127.0.0.1:${n % 60_000}`, enabled: true },
        after: { upstream: `127.0.0.1:${n % 50_000}`, enabled: true }
    };
}

async function micros(times: number, work: () => Promise<unknown>): Promise<number> {
    const samples: number[] = [];
    for (let round = 0; round < times; round += 1) {
        const began = performance.now();
        await work();
        samples.push((performance.now() - began) * 1_000);
    }
    return samples.sort((a, b) => a - b)[Math.floor(times / 2)] ?? 0;
}

/** A figure with its unit, or as a ratio where it has one. */
type Line = (
    what: string,
    value: number,
    unit: string,
    against?: { readonly ratio: number; readonly target: string; readonly most?: readonly [number, number] }
) => void;

const lineOf =
    (report: Report): Line =>
    (what, value, unit, against) =>
        against === undefined
            ? report.add({ target: '', what, value, unit })
            : report.add({
                  target: against.target,
                  what,
                  value: against.ratio,
                  ...(against.most === undefined ? {} : { most: against.most }),
                  of: `${number(value)} ${unit}`
              });

async function fill(db: Database, audit: Audit): Promise<void> {
    for (let n = 1; n <= total; n += 1_000) {
        await db.write(async (tx) => {
            for (let each = n; each < n + 1_000; each += 1) {
                await audit.record(tx, entry(each));
            }
        });
    }
}

/** Processor time of one transaction that changes a row, with and without an audit entry. */
async function writing(line: Line, db: Database, audit: Audit): Promise<void> {
    let n = 0;
    const change = (record: boolean): Promise<void> =>
        db.write(async (tx) => {
            n += 1;
            await tx.em.execute(
                'insert into settings (key, value, version, updated_at) values (?, ?, 1, 1) on conflict (key) do update set version = version + 1',
                [`bench ${n % 50}`, '1'],
                'run'
            );
            if (record) {
                await audit.record(tx, entry(n));
            }
        });
    const cost = async (record: boolean): Promise<number> => {
        const before = process.cpuUsage();
        for (let round = 0; round < 2_000; round += 1) {
            await change(record);
        }
        const used = process.cpuUsage(before);
        return (used.user + used.system) / 2_000;
    };
    await cost(true);
    const [without, withEntry] = [await cost(false), await cost(true)];
    line('transaction without an entry (CPU)', without, 'µs');
    line('transaction with an entry against one without (CPU)', withEntry, 'µs', {
        ratio: withEntry / without,
        target: '6',
        most: [3.5, 2.9]
    });
}

async function reading(line: Line, audit: Audit): Promise<void> {
    const page =
        (filter: AuditFilter, before: number | null = null) =>
        (): Promise<unknown> =>
            audit.list(filter, { limit: 50, before });
    await micros(20, page({}));
    const first = await micros(200, page({}));
    line('first page of 50', first, 'µs');
    const cases: readonly (readonly [string, AuditFilter, number | null])[] = [
        ['page at half the depth', {}, total / 2],
        ['last page', {}, 60],
        ['action', { action: 'login' }, null],
        ['action, at half the depth', { action: 'login' }, total / 2],
        ['resource', { resource: 'users' }, null],
        ['resourceId (1 of 3,000)', { resourceId: '77' }, null],
        ['actor', { actor: 'user7' }, null],
        ['outcome failure (1 of 1,000)', { outcome: 'failure' }, null],
        ['from and to', { from: 0, to: Date.now() }, null],
        ['nothing has it (action)', { action: 'nothing' }, null],
        ['action, resource and actor', { action: 'login', resource: 'users', actor: 'user7' }, null],
        [
            'four filters, nothing matches',
            { action: 'login', resource: 'users', actor: 'user7', outcome: 'failure' },
            null
        ],
        ['q: everywhere', { q: 'chrome' }, null],
        ['q: everywhere, at half the depth', { q: 'chrome' }, total / 2],
        ['q: one user name', { q: 'user7"' }, null],
        ['q: one address', { q: `10.1.${Math.floor(total / 3) % 256}.7` }, null],
        ['q: nowhere', { q: 'xyzzy' }, null],
        ['q: nowhere, common parts', { q: 'users login chrome' }, null]
    ];
    for (const [label, filter, before] of cases) {
        const time = await micros(20, page(filter, before));
        line(`page: ${label}`, time, 'µs', {
            ratio: time / first,
            target: '7',
            most: label.includes('depth') || label === 'last page' ? [2, 1.2] : [3, 1.5]
        });
    }
}

async function longestPause(
    work: () => Promise<unknown>
): Promise<{ readonly pause: number; readonly took: number }> {
    let [pause, last, working] = [0, performance.now(), true];
    const began = last;
    const watch = (async () => {
        while (working) {
            await new Promise((resolve) => setImmediate(resolve));
            pause = Math.max(pause, performance.now() - last);
            last = performance.now();
        }
    })();
    await work();
    working = false;
    await watch;
    return { pause, took: performance.now() - began };
}

export async function bench(report: Report): Promise<void> {
    const line = lineOf(report);
    const folder = mkdtempSync(join(tmpdir(), 'portico-bench-'));
    try {
        const db = await openDatabase({
            file: join(folder, 'panel.db'),
            entities: [...auditEntities, ...settingsEntities],
            migrations: [...auditMigrations, ...settingsMigrations]
        });
        const audit = await Audit.open({
            db,
            keyring: createKeyring(folder),
            headFile: join(folder, 'audit.head'),
            clock: systemClock,
            log: createLog({ level: 'error' }),
            retentionDays: () => 365
        });
        const began = performance.now();
        await fill(db, audit);
        line(`entries written in batches of 1,000: ${total}`, (performance.now() - began) / 1_000, 's');
        while (
            db.prepare<[], { facets: number }>('select facets from audit_indexed').get()?.facets !==
                audit.head().sequence &&
            audit.head().sequence -
                (db.prepare<[], { facets: number }>('select facets from audit_indexed').get()?.facets ?? 0) >=
                128
        ) {
            await new Promise((resolve) => setTimeout(resolve, 20));
        }
        line('and indexed after', (performance.now() - began) / 1_000, 's');
        await writing(line, db, audit);
        await reading(line, audit);
        const heap = process.memoryUsage().rss;
        const walk = await longestPause(() => audit.verify());
        line('verify', walk.took / 1_000, 's');
        line('verify: longest pause of the event loop', walk.pause, 'ms');
        const seek = await longestPause(() => audit.list({ q: 'xy' }, { limit: 50, before: null }));
        line('q of two letters that nothing has', seek.took, 'ms');
        line('the same: longest pause of the event loop', seek.pause, 'ms');
        line('memory gained by them', (process.memoryUsage().rss - heap) / 1e6, 'MB');
        await audit.close();
        await db.close();
        line('size of the file', statSync(join(folder, 'panel.db')).size / 1e6, 'MB');
    } finally {
        rmSync(folder, { recursive: true });
    }
}
