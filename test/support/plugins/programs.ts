/** What a plugin does with programs and services, told so that it is the same wherever its code runs. */
import type { Context, ExecOptions } from '@portico/sdk';

/** Uses each member of `ctx.services`, and returns the results that are the same in every run. */
export async function useServices(services: Context['services']): Promise<unknown> {
    const told = (work: Promise<unknown>): Promise<unknown> =>
        work.catch((error: { code?: number; message: string }) => [error.code, error.message]);
    const command = {
        file: 'sh',
        args: ['-c', "trap 'echo again' HUP; echo one; echo two; while :; do sleep 60 & wait $!; done"],
        env: { COLOUR: 'red' },
        reloadSignal: 'SIGHUP' as const
    };
    const made = await services.put('ticker', command);
    const texts: string[] = [];
    for await (const { text, stream, at } of services.output('ticker', { follow: true })) {
        texts.push(`${stream} ${text} ${at instanceof Date}`);
        if (texts.length === 2) {
            await services.reload('ticker');
        } else if (texts.length === 3) {
            break;
        }
    }
    const [listed] = await services.list();
    const stopped = await services.stop('ticker');
    const refusals = [
        await told(services.reload('ticker')),
        await told(services.put('../other', command)),
        await told(services.put('other', { ...command, env: { PATH: '/tmp' } })),
        await told(services.put('other', { ...command, file: 'perl' })),
        await told(services.put('other', { ...command, user: 'nobody' })),
        await told(services.put('other', { ...command, privateFiles: { 'a/b': '' } })),
        await told(services.put('other', { ...command, cwd: '/', privateFiles: { a: '' } })),
        await told(services.put('other', { ...command, restart: 'sometimes' as never })), // the supervisor refuses it
        await told(services.start('no-such')),
        await told(services.output('no-such')[Symbol.asyncIterator]().next())
    ];
    await services.put('reader', {
        file: 'sh',
        args: ['-c', 'cat secret; exec sleep 60'],
        privateFiles: { secret: 'a secret\n' }
    });
    for await (const { text } of services.output('reader', { follow: true })) {
        texts.push(text);
        break;
    }
    await services.remove('reader');
    await services.remove('ticker');
    return {
        made: [made.name, made.state, made.startedAt instanceof Date, made.pid === listed?.pid, made.exits],
        texts,
        stopped: [stopped.state, stopped.pid, stopped.lastExit?.signal, stopped.lastExit?.at instanceof Date],
        refusals,
        left: await services.list()
    };
}

/** Uses what programs got beside their arguments, and returns the results that are the same in every run. */
export async function usePrograms(ctx: Context): Promise<unknown> {
    const told = (work: Promise<unknown>): Promise<unknown> =>
        work.catch((error: { code?: number; message: string }) => [error.code, error.message]);
    const run = async (script: string, options: ExecOptions): Promise<unknown> =>
        told(ctx.exec('sh', ['-c', script], options).then(({ code, stdout }) => [code, stdout]));
    await using child = await ctx.spawn('sh', ['-c', 'sleep 0.1; read -r line; exit 3'], {
        limits: { group: { processes: 50 } }
    });
    const running = await child.usage();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode('on\n'));
    const { code } = await child.exited;
    const ended = await child.usage();
    return {
        files: await run('cat secret; stat -c %a secret; ls -A', { privateFiles: { secret: 'a secret\n' } }),
        isolated: await run('grep -c : /proc/net/dev; grep CapBnd /proc/self/status', {
            isolate: { network: false }
        }),
        usage: [running !== null, code, (ended?.cpuSeconds ?? -1) >= 0, (ended?.memoryPeakBytes ?? 0) > 4096],
        refusals: [
            await run('true', { cwd: '/', privateFiles: { secret: '' } }),
            await run('true', { privateFiles: { '../secret': '' } }),
            await run('true', { isolate: { network: true } as never }), // refused when it runs
            await run('true', { limits: { group: { memoryBytes: 1 } } })
        ]
    };
}
