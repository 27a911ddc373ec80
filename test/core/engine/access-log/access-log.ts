import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { expect, fail } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { AccessRecord } from '@portico/sdk';

import { AccessLog, type AccessLogOptions } from '../../../../core/src/engine/access-log/access-log.ts';
import { startCaddy, type TestCaddy } from '../../../support/engine/caddy.ts';
import { testSite } from '../../../support/engine/site.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const always = new AbortController().signal;
const beginning = new Date(0);
const redirect = { to: 'https://away.test', code: 302, keepPath: true } as const;
let caddy: TestCaddy;
let isOn: boolean;

beforeEach(async () => {
    isOn = true;
    caddy = await startCaddy({ accessLog: true });
    await caddy.apply({
        sites: [
            { id: 1, site: testSite({ id: 1, domain: 'a.test', type: 'redirect', redirect }) },
            { id: 2, site: testSite({ id: 2, domain: '*.w.test' }) }
        ]
    });
});
afterEach(() => caddy.close());

/** The log as one panel reads it. */
const openLog = (options: Partial<AccessLogOptions> = {}): AccessLog =>
    new AccessLog({
        place: () => ({
            path: caddy.context.folders.accessLogFile,
            uids: [process.getuid?.() ?? 0]
        }),
        hostOf: (name) => ({ 'a.test': 1, '*.w.test': 2 })[name],
        isOn: () => isOn,
        isWritten: async () => false,
        log: {
            warn: (message, fields) => fail(`${message} ${JSON.stringify(fields)}`)
        },
        pollMs: 20,
        ...options
    });

/** So many records, and the rest of the batch that the last of them is in. */
async function take(
    batches: AsyncIterable<readonly AccessRecord[]>,
    least: number
): Promise<readonly AccessRecord[]> {
    const records: AccessRecord[] = [];
    for await (const batch of batches) {
        records.push(...batch);
        if (records.length >= least) {
            break;
        }
    }
    return records;
}

/** Sends requests whose lines have a hundred kilobytes each. */
async function fill(times: number): Promise<void> {
    const path = `/${'x'.repeat(100_000)}`;
    for (let time = 0; time < times; time += 1) {
        await caddy.ask({ host: 'sub.w.test', path });
    }
}

const written = (): string => readFileSync(caddy.context.folders.accessLogFile, 'utf8');
const files = (): readonly string[] =>
    readdirSync(dirname(caddy.context.folders.accessLogFile)).filter((name) => name.startsWith('access'));

describe('AccessLog', { timeout: 60_000 }, () => {
    it('tells of each request to which host it was, without query, headers and credentials', async () => {
        const before = Date.now();
        const headers = {
            'user-agent': 'probe/1 ä',
            cookie: 'session=sesame',
            authorization: 'Basic c2VzYW1l',
            referer: 'https://other.test/?q=sesame',
            'x-api-key': 'sesame'
        };
        await caddy.ask({ path: '/x/y%20z?token=sesame', headers, method: 'PUT', body: 'sesame' });
        await caddy.ask({ host: 'sub.w.test:8080' });
        await caddy.ask({ host: 'unknown.test', path: 'http://sesame:sesame@unknown.test?sesame' });
        const records = await take(openLog().follow({ from: beginning, signal: always }), 3);
        expect(records.map(({ at: _at, ms: _ms, bytes: _bytes, ...record }) => record)).to.equal([
            {
                hostId: 1,
                method: 'PUT',
                path: '/x/y%20z',
                status: 302,
                ip: '127.0.0.1',
                agent: 'probe/1 ä',
                dropped: 0
            },
            { hostId: 2, method: 'GET', path: '/', status: 502, ip: '127.0.0.1', agent: null, dropped: 0 },
            { hostId: null, method: 'GET', path: '/', status: 404, ip: '127.0.0.1', agent: null, dropped: 0 }
        ]);
        for (const { at, ms, bytes } of records) {
            expect(at.getTime()).to.be.between(before - 1, Date.now() + 1);
            expect(ms).to.be.between(-1, Date.now() - before + 1);
            expect(bytes).to.be.at.least(0);
        }
        expect(records[2]?.bytes).to.equal('404 Not Found\n'.length);
        expect(written().replace('http://sesame:sesame@', ''))
            .to.not.contain('sesame')
            .and.not.contain('session');
        expect(caddy.log()).to.not.contain('http.log.access');
    });

    it('begins with what comes, or at a time that was', async () => {
        const log = openLog();
        const coming = log.follow({ from: null, signal: always });
        await caddy.ask({ path: '/before' });
        const first = coming.next();
        const seen = await until(async () => {
            await caddy.ask({ path: '/after' });
            return Promise.race([first, new Promise<null>((done) => setTimeout(done, 50, null))]);
        }, 'a record');
        expect((seen.value as readonly AccessRecord[])[0]?.path).to.equal('/after');
        await coming.return();

        await caddy.ask({ path: '/last' });
        const all = await until(async () => {
            const found = await take(log.follow({ from: beginning, signal: always }), 1);
            return found.at(-1)?.path === '/last' && found;
        }, 'the last record');
        const second = all[1]?.at ?? beginning;
        const later = await take(log.follow({ from: second, signal: always }), 1);
        expect(later).to.equal(all.filter(({ at }) => at >= second));
        expect(later.length).to.be.below(all.length);
    });

    it('leaves records out, and says how many, for a reader that does not keep up; others miss none', async () => {
        const [quick, slow] = [openLog(), openLog({ mostBehind: 2_000_000 })];
        await caddy.ask({ path: '/first' });
        const late = slow.follow({ from: beginning, signal: always });
        const second = slow.follow({ from: beginning, signal: always });
        expect((await late.next()).value).to.have.length(1);
        expect((await second.next()).value).to.have.length(1);
        const all = take(quick.follow({ from: beginning, signal: always }), 191);
        await fill(190);
        const records = await all;
        expect([records.length, records.filter(({ dropped }) => dropped > 0)]).to.equal([191, []]);
        expect(records.at(-1)?.path).to.have.length(2048);
        expect(files()).to.have.length(2);
        await until(async () => {
            // What a reader is behind of is the disk's, so it is looked at over and over.
            const rest = await take(
                slow.follow({ from: records.at(-1)?.at ?? beginning, signal: always }),
                1
            );
            return rest.length > 0;
        }, 'the end of the log');
        for (const reader of [late, second]) {
            let [got, dropped] = [1, 0];
            while (got + dropped < 191) {
                const { value } = await reader.next();
                for (const record of value as readonly AccessRecord[]) {
                    got += 1;
                    dropped += record.dropped;
                }
            }
            expect([got + dropped, dropped > 0]).to.equal([191, true]);
            await reader.return();
        }
    });

    it('loses nothing that was recorded when the engine is killed, and counts a line that it did not finish', async () => {
        for (let time = 0; time < 50; time += 1) {
            await caddy.ask({ path: `/${time}` });
        }
        process.kill(caddy.pid, 'SIGKILL');
        const log = openLog();
        // The line of the last request may not have been written: its answer comes first.
        const records = await take(log.follow({ from: beginning, signal: always }), 49);
        expect(records.map(({ path }) => path).slice(0, 49)).to.equal(
            Array.from({ length: 49 }, (_, time) => `/${time}`)
        );
        const [line = ''] = written().split('\n');
        const reader = log.follow({ from: records.at(-1)?.at ?? beginning, signal: always });
        await reader.next();
        appendFileSync(caddy.context.folders.accessLogFile, `${line.slice(0, 40)}${line}\n`);
        const now = JSON.stringify({ ...(JSON.parse(line) as object), ts: Date.now() / 1000 });
        appendFileSync(caddy.context.folders.accessLogFile, `${now}\n`);
        const { value } = await reader.next();
        expect((value as readonly AccessRecord[]).map(({ path, dropped }) => [path, dropped])).to.equal([
            ['/0', 1]
        ]);
        await reader.return();
    });

    it('ends with its signal, and removes what was recorded once the log is off', async () => {
        await caddy.ask({});
        await until(() => written() !== '', 'a record');
        let isWritten = true;
        const log = openLog({ isWritten: async () => isWritten });
        const ending = new AbortController();
        const waiting = log.follow({ from: new Date(Date.now() + 60_000), signal: ending.signal }).next();
        await log.tidy();
        expect(files()).to.have.length(1);
        isOn = false;
        await log.tidy();
        expect(files()).to.have.length(1);
        isWritten = false;
        await log.tidy();
        expect(existsSync(caddy.context.folders.accessLogFile)).to.be.false();
        ending.abort();
        expect(await waiting).to.equal({ value: undefined, done: true });
    });
});
