import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { TestSocket } from '@portico/testing';

import { until } from '../../../support/until.ts';
import { createFilesRig, type FilesRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('open and recorded terminals of filemanager', () => {
    let files: FilesRig;
    let last: { exitCode?: number | null; error?: { code: number } } | null = null;

    before(async () => {
        files = await createFilesRig({ settings: { terminalRecording: 'on' } });
    });

    after(() => files.close());

    const open = async (): Promise<{ socket: TestSocket; shown(): string; closed: Promise<unknown> }> => {
        const { data } = await files.post('/terminals', { columns: 90, rows: 30 });
        const socket = await files.as('admin').socket(data.path as string);
        let text = '';
        const closed = (async () => {
            for await (const message of socket) {
                if (typeof message === 'string') {
                    last = JSON.parse(message) as typeof last;
                } else {
                    text += Buffer.from(message).toString();
                }
            }
            return (await socket.closed).code;
        })();
        return { socket, shown: () => text, closed };
    };
    const say = async (terminal: Awaited<ReturnType<typeof open>>, line: string, expected: string) => {
        terminal.socket.send(Buffer.from(`${line}\n`));
        await until(() => terminal.shown().includes(expected), expected);
    };
    const list = async (path: string) => (await files.get(path)).data as Record<string, unknown>[];
    const cast = async (id: unknown): Promise<unknown[]> => {
        const { text } = await files.as('admin').get(`/recordings/${id}`);
        return text
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as unknown);
    };

    it('lists a terminal, ends it, and keeps what it showed as asciicast', async () => {
        const terminal = await open();
        await say(terminal, 'printf "%s-%s ä\\n" one two', 'one-two ä');
        terminal.socket.send(JSON.stringify({ columns: 100, rows: 40 }));
        await say(terminal, 'stty size', '40 100');
        const [listed] = await list('/terminals');
        expect(listed).to.include({ id: 1, username: 'admin', recording: 1 });
        expect(Number(listed?.['bytes'])).to.be.above(10);
        expect((await files.remove('/recordings/1', {})).code).to.equal(40901);
        expect((await list('/recordings'))[0]).to.include({ id: 1, username: 'admin', endedAt: null });

        expect((await files.remove('/terminals/1', {})).code).to.equal(0);
        await terminal.closed;
        expect(await list('/terminals')).to.equal([]);
        expect((await files.remove('/terminals/1', {})).code).to.equal(40400);
        await until(async () => (await list('/recordings'))[0]?.['endedAt'] !== null, 'the end');

        const [head, ...events] = await cast(1);
        expect(head).to.include({ version: 2, width: 90, height: 30 });
        const shown = (events as [number, string, string][]).filter(([, kind]) => kind === 'o');
        expect(shown.map(([, , text]) => text).join('')).to.include('one-two ä');
        expect((events as [number, string, string][]).filter(([, kind]) => kind === 'r')[0]?.[2]).to.equal(
            '100x40'
        );
        const times = (events as [number, string, string][]).map(([at]) => at);
        expect(times).to.equal([...times].sort((a, b) => a - b));
        const stopped = files.host.audit.filter(({ action }) => action === 'stop');
        expect(stopped.some(({ before }) => JSON.stringify(before) === '{"username":"admin"}')).to.be.true();
    });

    it('records nothing that a shell does not show', async () => {
        const terminal = await open();
        await say(
            terminal,
            'stty -echo; printf "rea%s" dy; read word; stty echo; echo got-${#word}',
            'ready'
        );
        await say(terminal, 'hidden-secret', 'got-13');
        terminal.socket.send(Buffer.from('exit 0\n'));
        await terminal.closed;
        expect(JSON.stringify(await cast(2))).not.to.include('hidden-secret');
    });

    it('is only for who has the permission', async () => {
        const asked = await Promise.all([
            files.get('/recordings', {}, { role: 'operator' }),
            files.get('/recordings/1', {}, { role: 'operator' }),
            files.remove('/recordings/1', {}, { role: 'operator' }),
            files.get('/terminals', {}, { role: 'operator' }),
            files.remove('/terminals/1', {}, { role: 'operator' })
        ]);
        expect(asked.map(({ code }) => code)).to.equal([40300, 40300, 40300, 40300, 40300]);
        expect((await files.get('/recordings/9')).code).to.equal(40400);
    });

    it('opens no terminal, and ends one, that cannot be recorded', async () => {
        const folder = join(files.host.dataDir, 'recordings');
        renameSync(folder, `${folder}.kept`);
        writeFileSync(folder, 'no folder');
        const refused = await open();
        await refused.closed;
        expect(last?.error?.code).to.equal(40900);
        expect([await list('/terminals'), (await list('/recordings')).length]).to.equal([[], 2]);
        rmSync(folder);
        renameSync(`${folder}.kept`, folder);
    });

    it('ends a terminal whose recording would be larger than one may be, or than all together may be', async () => {
        const settings = { roots: [], terminalRecording: 'on' };
        await files.host.setSettings({ ...settings, recordingBytes: 8_192 });
        const endless = await open();
        endless.socket.send(Buffer.from('while :; do echo flood; done\n'));
        await endless.closed;
        expect(last?.error?.code).to.equal(50751);
        await until(async () => (await list('/recordings'))[0]?.['endedAt'] !== null, 'the end');
        const [{ id, bytes }] = (await list('/recordings')) as [{ id: number; bytes: number }];
        expect(bytes).to.be.within(100, 8_192);
        expect(statSync(join(files.host.dataDir, 'recordings', `${id}.cast`)).size).to.equal(bytes);

        // All that is stored counts, also after a restart.
        await files.host.setSettings({ ...settings, recordingBytes: 2 ** 28, recordingsBytes: 4_096 });
        const sum = async (): Promise<number> =>
            (await list('/recordings')).reduce((all, each) => all + Number(each['bytes']), 0);
        writeFileSync(join(files.host.dataDir, 'recordings', `${id}.cast`), 'x'.repeat(8_000));
        await files.host.db.write((em) =>
            em.execute('update recordings set ended = null where id = ?', [id])
        );
        await files.host.restart();
        expect(await sum()).to.be.above(4_096);
        const refused = await open();
        await refused.closed;
        expect([last?.error?.code, (await list('/recordings'))[0]?.['id']]).to.equal([50751, id]);
        expect((await files.remove(`/recordings/${id}`, {})).code).to.equal(0);
        const again = await open();
        await say(again, 'printf "%s-%s\\n" room again', 'room-again');
        again.socket.send(Buffer.from('exit 0\n'));
        await again.closed;
        await files.host.setSettings({ ...settings, recordingsBytes: 2 ** 30 });
    });

    it('says when a recording ended that a crash cut off, and removes old ones', async () => {
        await files.host.db.write((em) =>
            em.execute(
                "insert into recordings (username, started, ended, bytes) values ('admin', 1, null, 0)"
            )
        );
        const [{ id }] = (await list('/recordings')) as [{ id: number }];
        writeFileSync(join(files.host.dataDir, 'recordings', `${id}.cast`), '{"version":2}\n');
        await files.host.restart();
        const [found] = await list('/recordings');
        expect([found?.['endedAt'], found?.['bytes']]).to.satisfy(
            ([ended, bytes]: unknown[]) => ended !== null && bytes === 14
        );
        await files.host.db.write((em) =>
            em.execute('update recordings set ended = ended - ?', [91 * 86_400_000])
        );
        await files.host.schedules.run('expire');
        expect(await list('/recordings')).to.equal([]);
        expect(readdirSync(join(files.host.dataDir, 'recordings'))).to.equal([]);
    });
});
