import { once } from 'node:events';
import {
    chmodSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    rmSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Context, definePlugin, type SpawnOptions } from '@portico/sdk';

import type { Generation } from '../../../../../core/src/plugins/runtime/generation/generation.ts';
import { MachinePrograms } from '../../../../../core/src/plugins/runtime/programs/machine.ts';
import { PrivateFiles } from '../../../../../core/src/plugins/runtime/programs/private-files.ts';
import { systemAlarm } from '../../../../../core/src/plugins/runtime/schedules.ts';
import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';
import { itUnless } from '../../../../support/skip.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;
const itAsRoot = itUnless(
    process.getuid?.() === 0 ? undefined : 'only root can run programs as another account',
    it
);

let rig: PluginRig;
let base: string;
let ctx: Context;
let generation: Generation;

beforeEach(async () => {
    base = mkdtempSync(join(tmpdir(), 'portico-base-'));
    const programs = new MachinePrograms(undefined, new PrivateFiles(base));
    rig = await createPluginRig({ ports: { machine: { programs, alarm: systemAlarm, root: '' } } });
    generation = await rig.run(
        definePlugin({
            setup(context) {
                ctx = context;
            }
        }),
        { capabilities: { exec: ['sh', 'cat', 'node', 'absent', 'id'], users: ['nobody'] } }
    );
});
afterEach(async () => {
    await rig.close();
    rmSync(base, { recursive: true });
});

describe('privateFiles', () => {
    it('lie in the working folder, for the account alone, and are gone with the program', async () => {
        const { stdout, code } = await ctx.exec('sh', ['-c', 'pwd; stat -c %a . .pgpass; cat .pgpass key'], {
            privateFiles: { '.pgpass': 'secret-1\n', key: 'secret-2' }
        });
        const [folder = '', ...rest] = stdout.split('\n');
        expect(code).to.equal(0);
        expect(folder.startsWith(`${base}/portico-files-`)).to.be.true();
        expect(rest).to.equal(['700', '600', 'secret-1', 'secret-2']);
        expect(readdirSync(base)).to.equal([]);
        // Neither in the argument list, nor on record.
        await generation.close('test');
        expect(JSON.stringify([rig.http.recorded, rig.http.lines])).to.not.include('secret-');
    });

    itAsRoot('belong to the account that the program runs as, which cannot change their folder', async () => {
        const open = mkdtempSync(join('/run', 'portico-test-'));
        try {
            const files = new PrivateFiles(open);
            chmodSync(open, 0o755);
            const started = await new MachinePrograms(undefined, files).start({
                plugin: 'probe',
                file: 'sh',
                args: [
                    '-c',
                    'id -un; cat key; stat -c %U:%a key .; echo x > new; mv key other; rm -f key; cat key; echo end; sleep 600'
                ],
                options: { user: 'nobody', privateFiles: { key: 'secret\n' } },
                folder: '/'
            });
            let text = '';
            for await (const chunk of started.stdout) {
                text += String(chunk);
                if (text.endsWith('end\n')) {
                    break;
                }
            }
            expect(text).to.equal('nobody\nsecret\nnobody:600\nroot:711\nsecret\nend\n');
            const [folder = ''] = readdirSync(open);
            expect(statSync(join(open, folder)).uid).to.equal(0);
            await started.discard();
            expect(readdirSync(open)).to.equal([]);
        } finally {
            rmSync(open, { recursive: true });
        }
    });

    it('leave nothing of a program that does not start', async () => {
        const privateFiles = { key: 'secret' };
        const options: readonly SpawnOptions[] = [
            { privateFiles, user: 'nobody-at-all' },
            { privateFiles, signal: AbortSignal.abort() },
            { privateFiles, cwd: '/' },
            { privateFiles: { '../key': 'x' } },
            { privateFiles: { 'a/b': 'x' } },
            { privateFiles: { '..': 'x' } },
            { privateFiles: { '': 'x' } },
            { privateFiles: { key: 5 as never } }, // wrong on purpose
            { privateFiles: { key: 'x'.repeat(1024 * 1024 + 1) } },
            { privateFiles: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`f${n}`, 'x'])) }
        ];
        for (const each of options) {
            await expect(ctx.exec('cat', ['key'], each)).to.reject();
        }
        await expect(ctx.exec('absent', [], { privateFiles })).to.reject();
        expect(readdirSync(base)).to.equal([]);
    });

    it('of a panel that was killed are removed at the next start, and nothing else is', async () => {
        const other = mkdtempSync(join(tmpdir(), 'portico-other-'));
        try {
            writeFileSync(join(other, 'kept'), '');
            mkdirSync(join(base, `portico-files-${process.pid}-1-abcdef`));
            writeFileSync(join(base, `portico-files-${process.pid}-1-abcdef`, 'key'), 'secret');
            symlinkSync(other, join(base, `portico-files-${process.pid}-2-abcdef`));
            mkdirSync(join(base, 'portico-filesystem'));
            await new PrivateFiles(base).sweep();
            expect(readdirSync(base).sort()).to.equal([
                `portico-files-${process.pid}-2-abcdef`,
                'portico-filesystem'
            ]);
            expect(existsSync(join(other, 'kept'))).to.be.true();
        } finally {
            rmSync(other, { recursive: true });
        }
    });
});

describe('isolate', () => {
    it('leaves a program no network, and no right of the kernel', async () => {
        const server = createServer((socket) => socket.end('reached')).listen(0, '127.0.0.1');
        await once(server, 'listening');
        const { port } = server.address() as AddressInfo;
        const reach = `require('net').connect(${port}, '127.0.0.1').on('data', (d) => console.log(String(d))).on('error', (e) => console.log(e.code))`;
        try {
            expect((await ctx.exec('node', ['-e', reach])).stdout).to.equal('reached\n');
            const cut = await ctx.exec('node', ['-e', reach], { isolate: { network: false } });
            expect(cut.stdout).to.match(/^E(NETUNREACH|ADDRNOTAVAIL)\n$/);
        } finally {
            server.close();
        }
        const { stdout } = await ctx.exec(
            'sh',
            ['-c', 'grep -E "^(CapEff|CapPrm|CapAmb|NoNewPrivs)" /proc/self/status'],
            {
                isolate: { network: false },
                limits: { openFiles: 50 }
            }
        );
        expect(stdout.split(/\s+/).filter(Boolean)).to.equal([
            'CapPrm:',
            '0000000000000000',
            'CapEff:',
            '0000000000000000',
            'CapAmb:',
            '0000000000000000',
            'NoNewPrivs:',
            '1'
        ]);
        await expect(ctx.exec('id', [], { isolate: { network: true as never } })).to.reject(TypeError); // wrong on purpose
    });

    itAsRoot('runs as the account, without any other group, in a terminal too', async () => {
        const { stdout } = await ctx.exec('id', [], {
            isolate: { network: false },
            user: 'nobody',
            cwd: '/'
        });
        expect(stdout).to.match(/^uid=\d+\(nobody\) gid=\d+\((\w+)\) groups=\d+\(\1\)$/m);
        const child = await ctx.spawn('sh', ['-c', 'id -un; tty; exit 5'], {
            isolate: { network: false },
            user: 'nobody',
            cwd: '/',
            pty: { columns: 80, rows: 24 }
        });
        const text = await new Response(child.stdout).text();
        expect(text)
            .to.match(/^nobody\r$/m)
            .and.to.match(/^\/dev\/pts\/\d+\r$/m);
        expect((await child.exited).code).to.equal(5);
    });
});
