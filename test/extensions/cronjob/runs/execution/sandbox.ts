/** Sandboxes: what a program in one sees and can change, and what it cannot get out of. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { errors } from '@portico/sdk';

import { itUnless } from '../../../../support/skip.ts';
import { createCronjobRig, type CronjobRig, notRoot, processesWith } from '../../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('a task in a sandbox', { timeout: 60_000 }, () => {
    let cron: CronjobRig;
    let outside: string;
    const sandbox = {};

    before(async () => {
        cron = await createCronjobRig();
        // Not below /tmp, which is empty in a sandbox anyway.
        outside = mkdtempSync('/var/lib/portico-cronjob-test-');
        await chmod(outside, 0o777);
        writeFileSync(join(outside, 'seen'), 'seen\n');
    });
    after(async () => {
        await cron.close();
        rmSync(outside, { recursive: true, force: true });
    });

    const output = async (task: object): Promise<string> => {
        const run = await cron.finish(await cron.task({ sandbox, ...task }));
        return run.output as string;
    };
    const shell = (script: string, task: object = {}): Promise<string> =>
        output({ command: ['/bin/sh', '-c', script], ...task });

    for (const user of notRoot === undefined ? [undefined, 'nobody'] : [undefined]) {
        const as = user === undefined ? {} : { user };
        const who = user ?? "the panel's own account";

        it(`sees the system read-only, an empty home and /tmp, and no process, as ${who}`, async () => {
            const found = await shell(
                `exec 2>/dev/null; cat ${outside}/seen; ls -A /tmp "$HOME" /run /home /root 2>/dev/null | grep -v : | tr -d '\\n'; echo; ` +
                    `echo x > ${outside}/new; echo x > /etc/portico-test; echo x > /tmp/mine && cat /tmp/mine; ps -e -o comm= | sort -u | tr '\\n' ' '`,
                as
            );
            const [seen, empty, ...rest] = found.split('\n');
            expect([seen, empty, rest[0]]).to.equal(['seen', '', 'x']);
            const running = rest.at(-1)?.trim().split(' ') ?? [];
            expect(running).to.include('bwrap');
            expect(running.filter((name) => !['bwrap', 'ps', 'sh', 'sort', 'tr'].includes(name))).to.equal(
                []
            );
            expect(() => readFileSync(join(outside, 'new'))).to.throw();
        });

        it(`has no rights and gets none, as ${who}`, async () => {
            const found = await shell(
                'grep -E "^(CapEff|CapPrm|CapBnd|NoNewPrivs)" /proc/self/status | tr -d "\\t\\n"; ' +
                    'mount -t tmpfs none /mnt 2>/dev/null && echo mounted; mount -o remount,rw / 2>/dev/null && echo remounted; umount /tmp 2>/dev/null && echo unmounted; ' +
                    'mknod /tmp/disk b 8 0 2>/dev/null && echo device; chroot / true 2>/dev/null && echo chroot; kill -0 -1 2>/dev/null; ' +
                    'nsenter -t 1 -m true 2>/dev/null && ls /proc/1/root/run',
                as
            );
            expect(found.trim()).to.equal(
                'CapPrm:0000000000000000CapEff:0000000000000000CapBnd:0000000000000000NoNewPrivs:1'
            );
        });

        it(`does not see the folders of the panel, as ${who}`, async () => {
            const found = await shell(
                `ls -A ${cron.folder} 2>&1 | head -3; cat ${cron.folder}/data.db 2>&1 | wc -c`,
                as
            );
            expect(found).to.not.contain('data.db-wal');
            expect(Number(found.trim().split('\n').at(-1))).to.be.below(200);
        });

        it(`runs scripts, as ${who}`, async () => {
            expect(
                await output({
                    script: '#!/bin/sh\nprintf "%s %s" "$1" "$CRONJOB_PARAM_A"; pwd\n',
                    ...as,
                    parameters: [{ name: 'A', default: 'here' }]
                })
            ).to.match(/^ here\//);
        });
    }

    it('has no network, not even that of this machine, unless it is given', async () => {
        const server = createServer((socket) => socket.end('reached\n'));
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
        const { port } = server.address() as AddressInfo;
        // A program of the system: Node may lie where a sandbox does not see it, as below /tmp.
        const connect = `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3'`;
        const env = {};
        try {
            expect(await shell(connect, { env })).to.match(/Connection refused|Network is unreachable/);
            expect(await shell(connect, { env, sandbox: { network: true } })).to.equal('reached\n');
            expect(await shell('cat /proc/net/dev | grep -c :')).to.equal('1\n');
        } finally {
            server.close();
        }
    });

    it('writes to the folders that it is given, and to none of the panel, by no way', async () => {
        expect(
            await shell(`echo new > ${outside}/new && cat ${outside}/new`, {
                sandbox: { writable: [outside] }
            })
        ).to.equal('new\n');
        expect(readFileSync(join(outside, 'new'), 'utf8')).to.equal('new\n');
        const refused = async (folder: string): Promise<number> =>
            (
                await cron.ask('POST', '/tasks', {
                    name: 'x',
                    schedule: '@yearly',
                    command: ['true'],
                    sandbox: { writable: [folder] }
                })
            ).code as number;
        for (const folder of ['/', 'relative', cron.folder, `${cron.folder}/x`, `${outside}/..`]) {
            expect([folder, await refused(folder)]).to.equal([folder, 40001]);
        }
        // A folder that became a link into the panel afterwards.
        const link = join(outside, 'link');
        await mkdir(link);
        const id = await cron.task({ command: ['touch', `${link}/x`], sandbox: { writable: [link] } });
        rmSync(link, { recursive: true });
        symlinkSync(cron.folder, link);
        expect(await cron.finish(id)).to.include({ state: 'failed', reason: 'VALIDATION_FAILED' });
    });

    it('is for programs, and only they', async () => {
        const answer = await cron.ask('POST', '/tasks', {
            name: 'x',
            schedule: '@yearly',
            request: { url: 'http://a.test' },
            sandbox
        });
        expect([answer.code, answer.data.errors[0].path]).to.equal([40001, 'sandbox']);
    });

    it('ends whole, with its usage, its time limit and its exit code', async () => {
        const id = await cron.task({
            command: ['sh', '-c', 'setsid sleep 600 & sleep 600'],
            env: { TELLTALE: outside },
            timeoutSeconds: 1,
            sandbox
        });
        expect(await cron.finish(id)).to.include({ state: 'timeout', reason: 'TIMEOUT' });
        expect(processesWith(outside)).to.equal([]);
        const failing = await cron.task({ command: ['sh', '-c', 'exit 7'], sandbox });
        expect(await cron.finish(failing)).to.include({ state: 'failed', exitCode: 7 });
    });

    it('is what new tasks get where the setting says so', async () => {
        const other = await createCronjobRig({ settings: { sandbox: 'default' } });
        try {
            const id = await other.task({ command: ['sh', '-c', 'touch /etc/portico-test'] });
            expect(await other.finish(id)).to.include({ state: 'failed' });
            const plain = await other.task({ command: ['true'], sandbox: null });
            expect((await other.ask('GET', `/tasks/${plain}`)).data.sandbox).to.be.null();
            const request = await other.task({ request: { url: 'http://a.test' } });
            expect((await other.ask('GET', `/tasks/${request}`)).data.sandbox).to.be.null();
        } finally {
            await other.close();
        }
    });

    it('is refused without bubblewrap, and the health check says how it is installed', async () => {
        cron.host.faults.fail('exec', errors.toolMissing('bwrap', 'apt-get install bubblewrap'));
        const answer = await cron.ask('POST', '/tasks', {
            name: 'x',
            schedule: '@yearly',
            command: ['true'],
            sandbox
        });
        const health = await cron.host.health();
        cron.host.faults.clear('exec');
        expect(answer.code).to.equal(50302);
        expect(health.find(({ name }) => name === 'sandbox')).to.include({
            state: 'degraded',
            remedy: { text: 'apt-get install bubblewrap' }
        });
    });

    itUnless(notRoot, it)('cannot read what its account could read outside: keys in a home', async () => {
        expect(await shell('ls -A /root | wc -l')).to.equal('0\n');
    });
});
