import { appendFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../../support/until.ts';
import { createMonitoringRig, type MonitoringRig, people } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

let rig: MonitoringRig;
let folder: string;

const read = (query: string) => rig.get(`/logs/lines?${query}`, 'op');
const textsOf = async (query: string): Promise<string[]> =>
    (await read(query)).data.map(({ text }: { text: string }) => text);
const file = (name: string): string => `source=file:/var/log/${name}`;
/** The cursor of the next page. */
const nextOf = (link: string | null): string => /cursor=([^&>]+)/.exec(link ?? '')?.[1] ?? '';

/** Entries as `journalctl -o json` writes them, the newest first. */
const journal = [3, 2, 1]
    .map((n) =>
        JSON.stringify({
            __CURSOR: `s=a;i=${n}`,
            __REALTIME_TIMESTAMP: String(Date.parse('2026-03-01T11:00:00Z') * 1000 + n),
            MESSAGE: n === 2 ? [...Buffer.from('a byte \xff', 'latin1')] : `Line ${n}`,
            PRIORITY: '3',
            SYSLOG_IDENTIFIER: 'web',
            _PID: '77'
        })
    )
    .join('\n');

describe('/api/plugins/monitoring/logs', () => {
    before(async () => {
        rig = await createMonitoringRig({
            settings: { logFiles: ['/var/log/*.log', '/var/log/web/a?.txt'] }
        });
        rig.host.programs.answer('journalctl', ({ args }) =>
            args.includes('--field=_SYSTEMD_UNIT') ? 'web.service\ncron.service\n' : `${journal}\n`
        );
        folder = join(rig.host.machine, 'var/log');
        mkdirSync(join(folder, 'web'), { recursive: true });
        writeFileSync(join(rig.host.machine, 'secret'), 'the secret\n');
        symlinkSync('../../secret', join(folder, 'link.log'));
        writeFileSync(join(folder, 'other.txt'), 'not named\n');
        writeFileSync(
            join(folder, 'app.log'),
            [
                '2026-03-01T10:00:00Z INFO started',
                '2026-03-01T10:00:01Z ERROR The Disk is full',
                '  a line without a time',
                'Feb 28 09:00:00 host sshd[1]: warning: slow',
                '1.2.3.4 - - [01/Mar/2026:11:00:00 +0100] "GET / HTTP/1.1" 200',
                '{"ts":1772359200,"level":"warn","msg":"from JSON","user":"ada"}',
                'last, without an end'
            ].join('\n')
        );
        writeFileSync(join(folder, 'web/a1.txt'), 'one\n');
    });
    after(() => rig.end());

    it('lists the requests, the files that the setting names, without links, and units', async () => {
        const { data } = await rig.get('/logs/sources', 'op');
        expect(data.map(({ id }: { id: string }) => id)).to.equal([
            'access',
            'file:/var/log/app.log',
            'file:/var/log/web/a1.txt',
            'unit:cron.service',
            'unit:web.service'
        ]);
        expect((await rig.get('/logs/sources')).code).to.equal(40300);
        expect((await rig.get(`/logs/lines?${file('app.log')}`)).code).to.equal(40300);
    });

    it('reads the newest requests, with no more of an address than is kept', async () => {
        const { accessLog } = rig.host;
        accessLog.add({ hostId: 1, path: '/a', status: 200, ip: '192.0.2.77' });
        accessLog.add({ hostId: 1, path: '/gone', status: 404, agent: 'curl/8' });
        accessLog.add({ hostId: 2, method: 'POST', path: '/b', status: 502, bytes: 9 });
        await until(async () => (await textsOf('source=access')).length === 3, 'the requests to be read');
        const { data } = await read('source=access');
        expect(data.map(({ text, level }: { text: string; level: string }) => `${level}: ${text}`)).to.equal([
            'error: POST /b 502',
            'warning: GET /gone 404',
            'info: GET /a 200'
        ]);
        expect(data[2].fields).to.equal({
            ...{ hostId: 1, status: 200, bytes: 0, ms: 1, agent: null },
            address: '192.0.2.0/24'
        });
        expect(await textsOf('source=access&level=warning&q=gone')).to.equal(['GET /gone 404']);

        const first = await read('source=access&limit=2');
        const next = nextOf(first.headers.get('link'));
        expect(await textsOf(`source=access&limit=2&cursor=${next}`)).to.equal(['GET /a 200']);
        expect((await read(`source=access&limit=2&cursor=${next}`)).headers.get('link')).to.be.null();
    });

    it('follows the requests', async () => {
        const events = rig.host.as(people.op).events('/logs/follow?source=access&level=error');
        const next = events.next();
        const visiting = setInterval(() => {
            rig.host.accessLog.add({ path: '/fine' });
            rig.host.accessLog.add({ path: '/bad', status: 500 });
        }, 20);
        const { value } = await next.finally(() => clearInterval(visiting));
        expect((value as { data: { text: string } }).data.text).to.equal('GET /bad 500');
        await events.return(undefined);
    });

    it('has no engine log where the panel shows none to the caller', async () => {
        expect((await read('source=engine')).code).to.equal(40400);
    });

    it('follows a file, through a cut and another file of that name, and goes on where a client left', async () => {
        const path = join(folder, 'live.log');
        writeFileSync(path, 'old\n');
        const as = rig.host.as(people.op);
        const leaving = new AbortController();
        const follow = (query: string, lastEventId?: string) =>
            as.events(`/logs/follow?${file('live.log')}${query}`, {
                signal: leaving.signal,
                ...(lastEventId === undefined ? {} : { lastEventId })
            });
        const events = follow('');
        const next = async (of: typeof events): Promise<{ text: string; id: string | undefined }> => {
            const { value } = await of.next();
            const { id, data } = value as { id?: string; data: { text: string } };
            return { text: data.text, id };
        };
        // The stream begins at the end of the file that it finds: what comes is written only then.
        const first = next(events);
        const writing = setInterval(() => appendFileSync(path, 'error: one\n'), 50);
        const { text, id } = await first.finally(() => clearInterval(writing));
        expect(text).to.equal('error: one');
        await events.return(undefined);

        appendFileSync(path, 'half');
        writeFileSync(`${path}.new`, 'of another file\n');
        const again = follow('&q=l', id);
        appendFileSync(path, ' a line\nnot this\n');
        expect((await next(again)).text).to.equal('half a line');
        renameSync(`${path}.new`, path);
        appendFileSync(path, 'still\n');
        expect([(await next(again)).text, (await next(again)).text]).to.equal(['of another file', 'still']);
        writeFileSync(path, 'cut to less\n');
        expect((await next(again)).text).to.equal('cut to less');
        leaving.abort();
        await again.return(undefined).catch(() => undefined);
        const other = as.events(`/logs/follow?${file('other.txt')}`);
        const { value: refused } = await other.next();
        expect(refused).to.include({ event: 'error' });
        expect(JSON.stringify(refused)).to.include('40400');
        expect((await rig.get(`/logs/follow?${file('live.log')}`)).code).to.equal(40300);
    });

    it('reads lines, the newest first, with their times and levels', async () => {
        const { data } = await read(file('app.log'));
        expect(data.map(({ level }: { level: string }) => level)).to.equal([
            null,
            'warning',
            null,
            'warning',
            null,
            'error',
            'info'
        ]);
        expect(data[1]).to.equal({
            at: '2026-03-01T10:00:00.000Z',
            level: 'warning',
            text: 'from JSON',
            fields: { user: 'ada' }
        });
        expect([data[2].at, data[5].at]).to.equal(['2026-03-01T10:00:00.000Z', '2026-03-01T10:00:01.000Z']);
        expect(await textsOf(`${file('app.log')}&q=DISK`)).to.equal([
            '2026-03-01T10:00:01Z ERROR The Disk is full'
        ]);
        expect(await textsOf(`${file('app.log')}&level=error`)).to.have.length(1);
        expect(await textsOf(`${file('app.log')}&from=2026-03-01T10:00:01Z`)).to.have.length(1);
    });

    it('reads pages that lose no line, also while the file grows', async () => {
        const lines = Array.from(
            { length: 90_000 },
            (_none, index) => `line ${index} ${'x'.repeat(index % 97)}`
        );
        writeFileSync(join(folder, 'long.log'), `${lines.join('\n')}\n`);
        const found: string[] = [];
        let cursor: string | null = null;
        for (let page = 0; page === 0 || cursor !== ''; page += 1) {
            const answer = await read(
                `${file('long.log')}&limit=1000${cursor === null ? '' : `&cursor=${cursor}`}`
            );
            found.push(...answer.data.map(({ text }: { text: string }) => text));
            cursor = nextOf(answer.headers.get('link'));
            appendFileSync(join(folder, 'long.log'), 'later\n');
        }
        expect(found.length).to.equal(lines.length);
        expect(found.reverse().join('\n') === lines.join('\n')).to.be.true();
        expect(await textsOf(`${file('long.log')}&q=line%204321%20`)).to.equal([lines[4321] ?? '']);
    });

    it('cuts long lines, and holds no more of them in memory', async () => {
        const long = `begin ${'y'.repeat(5_000_000)}`;
        writeFileSync(join(folder, 'cut.log'), `first\n${long}\nlast\n`);
        const { data } = await read(file('cut.log'));
        expect(data.map(({ text }: { text: string }) => text.length)).to.equal([4, 16_384, 5]);
        expect(data[1].fields).to.equal({ cut: true });
        expect(data[1].text.startsWith('begin y')).to.be.true();
        expect(await textsOf(`${file('cut.log')}&q=first`)).to.equal(['first']);
    });

    it('opens nothing else', async () => {
        for (const name of ['other.txt', 'link.log', '../secret', 'web/../app.log', 'none.log', '']) {
            const { status, text } = await read(file(name));
            expect(status, name).to.be.above(399);
            expect(text).not.to.contain('the secret');
        }
        for (const name of ['a b', '--help x', 'x y=z']) {
            expect((await read(`source=unit:${encodeURIComponent(name)}`)).code, name).to.equal(40400);
        }
        expect((await read('source=/etc/passwd')).code).to.equal(40001);
        expect((await read(`${file('app.log')}&q=${encodeURIComponent('a\nb')}`)).code).to.equal(40001);
        expect(
            (await read(`source=unit:web.service&cursor=${Buffer.from('after:--x').toString('base64url')}`))
                .code
        ).to.equal(40001);
    });

    it('reads the journal of a unit, which is named after the options', async () => {
        const { data, headers } = await read('source=unit:web.service&limit=2&level=error');
        expect(data[0]).to.equal({
            at: '2026-03-01T11:00:00.000Z',
            level: 'error',
            text: 'Line 3',
            fields: { program: 'web', pid: 77 }
        });
        expect(data[1].text).to.equal('a byte \ufffd');
        await read(`source=unit:web.service&cursor=${nextOf(headers.get('link'))}`);
        const args = rig.host.programs.calls.at(-1)?.args ?? [];
        expect(args).to.include('--after-cursor=s=a;i=2');
        expect(args.slice(args.indexOf('--'))).to.equal(['--', '_SYSTEMD_UNIT=web.service']);
        expect(await textsOf('source=unit:web.service&q=LINE 1')).to.equal(['Line 1']);
        rig.host.programs.answer('journalctl', { code: 1, stderr: 'corrupt' });
        expect((await read('source=unit:web.service')).code).to.equal(50372);
    });
});
