import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createLog } from '../../../../../core/src/platform/log/log.ts';
import { type LogReading, PluginLogs } from '../../../../../core/src/plugins/manager/logs/plugin-logs.ts';

export const lab = Lab.script();
const { beforeEach, describe, it } = lab;

describe('PluginLogs', () => {
    let logs: PluginLogs;
    let log: ReturnType<typeof createLog>;

    beforeEach(() => {
        log = createLog({ level: 'debug', write: () => undefined });
        logs = new PluginLogs(log);
    });
    const read = (more: Partial<LogReading> = {}) =>
        logs.read('hello', {
            lines: 100,
            level: 'debug',
            follow: false,
            after: null,
            signal: new AbortController().signal,
            ...more
        });
    const messages = async (more: Partial<LogReading> = {}): Promise<string[]> =>
        (await Array.fromAsync(read(more))).map(({ message }) => message);

    it('keeps what is said by a plugin and of it, and nothing else, with secrets masked', async () => {
        const own = log.child({ plugin: 'hello', version: '1.0.0' });
        log.hide('a very secret word');
        own.info('It said a very secret word', { count: 1, password: 'x' });
        log.warn('It did not start', { plugin: 'hello' });
        log.info('Not of it', { plugin: 'other' });
        log.info('Of none', { text: '"plugin":"hello"' });
        const lines = await Array.fromAsync(read());
        expect(lines.map(({ message, level }) => [level, message])).to.equal([
            ['info', 'It said [redacted]'],
            ['warn', 'It did not start']
        ]);
        expect(lines[0]?.fields).to.equal({ count: 1, password: '[redacted]' });
        expect(Date.parse(lines[0]?.at ?? '')).to.be.above(0);
        expect(await messages({ level: 'warn' })).to.equal(['It did not start']);
        expect(await messages({ lines: 1 })).to.equal(['It did not start']);
        expect(await messages({ lines: 0 })).to.equal([]);
    });

    it('keeps at most 1,000 lines and 512 KiB of a plugin', async () => {
        const own = log.child({ plugin: 'hello' });
        for (let count = 0; count < 1_200; count += 1) {
            own.debug(`line ${count}`);
        }
        log.child({ plugin: 'quiet' }).info('still here');
        const all = await messages({ lines: 1_000 });
        expect([all.length, all[0], all.at(-1)]).to.equal([1_000, 'line 200', 'line 1199']);
        own.info('long', { text: 'x'.repeat(400_000) });
        own.info('longer', { text: 'x'.repeat(400_000) });
        const rest = await Array.fromAsync(read());
        expect(rest.map(({ message, fields }) => [message, fields])).to.equal([['longer', {}]]);
        expect(
            (
                await Array.fromAsync(
                    logs.read('quiet', {
                        lines: 1,
                        level: 'debug',
                        follow: false,
                        after: null,
                        signal: AbortSignal.abort()
                    })
                )
            ).length
        ).to.equal(1);
    });

    it('follows each further line once, goes on after the one that the reader has, and ends with its reader', async () => {
        const own = log.child({ plugin: 'hello' });
        own.info('one');
        own.info('two');
        const [first] = await Array.fromAsync(read());
        expect(await messages({ after: first?.number ?? 0 })).to.equal(['two']);
        const controller = new AbortController();
        const following = read({ follow: true, lines: 1, signal: controller.signal });
        expect((await following.next()).value?.message).to.equal('two');
        const next = following.next();
        log.info('no line of it', { plugin: 'other' });
        own.info('three');
        expect((await next).value?.message).to.equal('three');
        const last = following.next();
        controller.abort();
        expect((await last).done).to.be.true();
    });
});
