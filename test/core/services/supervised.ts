import { spawn } from 'node:child_process';
import {
    cpSync,
    existsSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    statSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    identify,
    isAlive,
    type ProcessIdentity
} from '../../../core/src/platform/process/process-identity.ts';
import { ServiceNotReloadable, ServiceUnknown, StorageFull } from '../../../core/src/services/port.ts';
import type { SupervisedServices } from '../../../core/src/services/supervised.ts';
import { OutputLog } from '../../../core/src/services/supervisor/service/output-log.ts';
import { Run } from '../../../core/src/services/supervisor/service/run.ts';
import { Store } from '../../../core/src/services/supervisor/store.ts';
import { groupsMissing } from '../../support/machine/control-groups.ts';
import { outputOf, ServicesRig, shell, statusOf } from '../../support/machine/services.ts';
import { mountSmallDisk, noSmallDisk } from '../../support/machine/small-disk.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;
const itWithGroups = itUnless(groupsMissing(), it);
const itAsRoot = itUnless(
    process.getuid?.() === 0 ? undefined : 'only root can run programs as another account',
    it
);
const itWithDisk = itUnless(noSmallDisk, it);

const owner = 'web-1';
const idle = 'while :; do sleep 60 & wait $!; done';

let rig: ServicesRig;

beforeEach(() => {
    rig = new ServicesRig();
});

afterEach(() => rig.close());

/** Another panel takes over, as after a restart. */
const restartPanel = async (): Promise<void> => {
    await rig.services.close();
    rig.services = rig.panel();
    await rig.services.open();
};

const pidOf = async (name: string): Promise<number> => (await statusOf(rig.services, name)).pid ?? 0;
const textOf = async (name: string): Promise<string[]> =>
    (await outputOf(rig.services, name)).map(({ text }) => text);
const identityOf = async (name: string): Promise<ProcessIdentity> =>
    identify(await pidOf(name)) as ProcessIdentity;

describe('SupervisedServices', { timeout: 60_000 }, () => {
    it('starts a program, keeps its output, and leaves it alone when the same command is put again', async () => {
        const command = shell(`echo out; echo err >&2; printf %s "$PORTICO_GO"; ${idle}`);
        const { state, pid, exits, lastExit } = await rig.services.put(owner, 'web', command);
        expect({ state, exits, lastExit }).to.equal({ state: 'running', exits: 0, lastExit: null });
        await until(async () => (await outputOf(rig.services, 'web')).length === 2);
        const lines = await outputOf(rig.services, 'web');
        expect(lines.map(({ stream, text }) => [stream, text]).sort()).to.equal([
            ['stderr', 'err'],
            ['stdout', 'out']
        ]);
        expect(Math.abs((lines[0]?.at ?? 0) - Date.now())).to.be.below(10_000);
        expect((await rig.services.put(owner, 'web', command)).pid).to.equal(pid);
        const changed = await rig.services.put(owner, 'web', { ...command, stopSeconds: 1 });
        expect(changed.pid).to.not.equal(pid);
        expect(isAlive({ pid: pid ?? 0, ticks: identify(pid ?? 0)?.ticks ?? -1 })).to.be.false();
    });

    it('stays stopped until it is started, and forgets a service that is removed', async () => {
        const command = shell(idle);
        await rig.services.put(owner, 'web', command);
        const stopped = await rig.services.stop(owner, 'web');
        expect(stopped).to.include({ state: 'stopped', pid: null, exits: 0 });
        expect(stopped.lastExit?.signal).to.equal('SIGTERM');
        expect((await rig.services.put(owner, 'web', command)).state).to.equal('stopped');
        await restartPanel();
        expect((await statusOf(rig.services, 'web')).state).to.equal('stopped');
        expect((await rig.services.start(owner, 'web')).state).to.equal('running');
        const pid = await pidOf('web');
        expect((await rig.services.restart(owner, 'web')).pid).to.not.equal(pid);
        await rig.services.remove(owner, 'web');
        await rig.services.remove(owner, 'web');
        expect(await rig.services.list(owner)).to.equal([]);
        await expect(rig.services.start(owner, 'web')).to.reject(ServiceUnknown);
    });

    it('goes on with the same process when panel, supervisor and watchdog are killed, and keeps what it writes meanwhile', async () => {
        await rig.services.put(owner, 'web', shell('i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done'));
        const before = await identityOf('web');
        const [supervisor, watchdog] = [await rig.supervisor(), await rig.watchdog()];
        await until(async () => (await textOf('web')).length > 0);
        await rig.services.close();
        process.kill(watchdog.pid, 'SIGKILL');
        process.kill(supervisor.pid, 'SIGKILL');
        await until(() => !isAlive(supervisor));
        await wait(300); // it writes while there is no supervisor
        await restartPanel();
        expect(await identityOf('web')).to.equal(before);
        expect((await rig.supervisor()).pid).to.not.equal(supervisor.pid);
        const count = (await textOf('web')).length;
        await until(async () => (await textOf('web')).length > count + 5);
        const numbers = (await textOf('web')).map(Number);
        expect(numbers[0]).to.equal(1);
        // The killed supervisor may have read some lines that it had not written yet: one gap, there and nowhere else.
        const gaps = numbers.filter((each, index) => index > 0 && each !== (numbers[index - 1] ?? 0) + 1);
        expect(gaps.length).to.be.at.most(1);
        expect(await statusOf(rig.services, 'web')).to.include({ exits: 0, lastExit: null });
    });

    it('brings the supervisor and a dead program back while no panel runs', async () => {
        await rig.services.put(owner, 'web', shell(idle));
        const [before, supervisor] = [await identityOf('web'), await rig.supervisor()];
        await rig.services.close();
        process.kill(supervisor.pid, 'SIGKILL');
        process.kill(before.pid, 'SIGKILL');
        await until(async () => (await rig.supervisor()).pid !== supervisor.pid);
        rig.services = rig.panel();
        await until(async () => (await statusOf(rig.services, 'web')).state === 'running');
        const { exits, lastExit } = await statusOf(rig.services, 'web');
        expect(await pidOf('web')).to.not.equal(before.pid);
        expect(exits).to.equal(1);
        expect(lastExit).to.include({ code: null, signal: null });
    });

    it('is back within two seconds when its program is killed, and waits longer when it keeps failing', async () => {
        await rig.services.put(owner, 'web', shell(idle));
        const before = await pidOf('web');
        process.kill(before, 'SIGKILL');
        await until(async () => ![before, 0].includes(await pidOf('web')));
        const { startedAt, lastExit, exits } = await statusOf(rig.services, 'web');
        expect(exits).to.equal(1);
        expect(lastExit?.signal).to.equal('SIGKILL');
        expect((startedAt ?? 0) - (lastExit?.at ?? 0)).to.be.below(2_000);

        await rig.services.put(owner, 'bad', shell('exit 3'));
        await until(async () => (await statusOf(rig.services, 'bad')).failures >= 3);
        const bad = await statusOf(rig.services, 'bad');
        expect(bad.state).to.equal('failed');
        expect(bad.lastExit?.code).to.equal(3);
    });

    it('follows its policy, also after the supervisor was replaced', async () => {
        const once = join(rig.folder, 'once');
        await rig.services.put(owner, 'once', shell(`echo ran >> ${once}`, { restart: 'once' }));
        await rig.services.put(owner, 'never', shell('exit 1', { restart: 'never' }));
        await rig.services.put(owner, 'clean', shell('exit 0', { restart: 'on-failure' }));
        await rig.services.put(owner, 'broken', shell('exit 1', { restart: 'on-failure' }));
        const states = async (): Promise<unknown> =>
            Object.fromEntries((await rig.services.list(owner)).map(({ name, state }) => [name, state]));
        const ended = { once: 'stopped', never: 'failed', clean: 'stopped' };
        await until(async () => (await statusOf(rig.services, 'broken')).exits > 1);
        expect(await states()).to.include(ended);
        const supervisor = await rig.supervisor();
        process.kill(supervisor.pid, 'SIGKILL');
        await until(async () => (await rig.supervisor()).pid !== supervisor.pid);
        await wait(200);
        expect(await states()).to.include(ended);
        expect(readFileSync(once, 'utf8')).to.equal('ran\n');
        expect((await rig.services.start(owner, 'once')).state).to.equal('running');
        await until(async () => readFileSync(once, 'utf8') === 'ran\nran\n');
    });

    it('starts after a reboot what should run then, and takes no process of the new boot for its own', async () => {
        await rig.services.put(owner, 'always', shell(idle));
        await rig.services.put(owner, 'never', shell(idle, { restart: 'never' }));
        await rig.services.put(owner, 'ended', shell('exit 0', { restart: 'never' }));
        await rig.services.put(owner, 'once', shell('exit 0', { restart: 'once' }));
        await rig.services.put(owner, 'stopped', shell(idle));
        await rig.services.stop(owner, 'stopped');
        const exitsOf = async (name: string): Promise<number> => (await statusOf(rig.services, name)).exits;
        await until(async () => (await exitsOf('ended')) + (await exitsOf('once')) === 2);
        const [always, supervisor, watchdog] = [
            await identityOf('always'),
            await rig.supervisor(),
            await rig.watchdog()
        ];
        await rig.services.close();
        [watchdog, supervisor].forEach(({ pid }) => process.kill(pid, 'SIGKILL'));
        await until(() => !isAlive(supervisor));
        // A reboot ends every process and gives the machine another id. One process is left here: it stands for one of the new boot.
        const units = join(rig.folder, 'services/units');
        const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
        for (const id of readdirSync(units)) {
            const file = join(units, id, 'state.json');
            const state = readFileSync(file, 'utf8');
            writeFileSync(file, state.replaceAll(boot, boot.replace(/./g, '0')));
        }
        const pidsOf = (text: string): number[] =>
            [...text.matchAll(/"pid":(\d+)/g)].map((each) => Number(each[1]));
        const [never = 0] = pidsOf(readFileSync(join(units, 'web-1.never/state.json'), 'utf8'));
        process.kill(never, 'SIGKILL');
        rig.services = rig.panel();
        await rig.services.open();
        await until(async () => (await statusOf(rig.services, 'always')).state === 'running');
        expect(await pidOf('always')).to.not.equal(always.pid);
        expect((await statusOf(rig.services, 'always')).exits).to.equal(0);
        await until(async () => (await exitsOf('ended')) === 2);
        expect((await statusOf(rig.services, 'never')).state).to.equal('running');
        expect(await exitsOf('once')).to.equal(1);
        expect((await statusOf(rig.services, 'stopped')).state).to.equal('stopped');
    });

    it('takes over from a supervisor of another version, older or newer, and its services go on', async () => {
        const command = shell(idle);
        let pid: number | null = null;
        for (const version of [1, 99]) {
            // One panel at a time has the folder: this one would start its own supervisor again.
            await rig.services.close();
            const other = await versionOf(version);
            pid ??= (await other.put(owner, 'web', command)).pid;
            expect((await other.put(owner, 'web', command)).pid).to.equal(pid);
            const [supervisor, watchdog] = [await rig.supervisor(), await rig.watchdog()];
            expect((await rig.hello()).version).to.equal(version);
            await other.close();
            await restartPanel();
            expect(await statusOf(rig.services, 'web')).to.include({ state: 'running', pid, exits: 0 });
            expect((await rig.hello()).version).to.not.equal(version);
            await until(() => !isAlive(supervisor) && !isAlive(watchdog));
        }
    });

    it('gives its services to another owner, and they go on', async () => {
        await rig.services.put(owner, 'web', shell(`while read -r line; do :; done; ${idle}`));
        await rig.services.put(owner, 'bad', shell('sleep 0.2; exit 3'));
        await rig.services.put('web-2', 'web', shell(idle));
        const [pid, replaced] = [await pidOf('web'), (await statusOf(rig.services, 'web', 'web-2')).pid ?? 0];
        await rig.services.adopt(owner, 'web-2');
        await rig.services.adopt(owner, 'web-2');
        expect(await rig.services.list(owner)).to.equal([]);
        expect(identify(replaced)).to.be.null();
        expect((await statusOf(rig.services, 'web', 'web-2')).pid).to.equal(pid);
        const exits = async (): Promise<number> => (await statusOf(rig.services, 'bad', 'web-2')).exits;
        const before = await exits();
        await until(async () => (await exits()) > before);
        expect((await statusOf(rig.services, 'bad', 'web-2')).lastExit?.code).to.equal(3);
        process.kill((await rig.supervisor()).pid, 'SIGKILL');
        await until(async () => (await statusOf(rig.services, 'web', 'web-2')).pid === pid);
        await rig.services.stop('web-2', 'web');
        expect(identify(pid)).to.be.null();
    });

    it('gives private files to each run alone, in its working folder', async () => {
        const account = process.getuid?.() === 0 ? { name: 'nobody', uid: 65534, gid: 65534 } : null;
        const script = `pwd; stat -c '%a %u' secret; cat secret; echo; ${idle}`;
        await rig.services.put(owner, 'web', shell(script, { account, privateFiles: { secret: 'first' } }));
        await until(async () => (await textOf('web')).length === 3);
        const [folder = '', ...rest] = await textOf('web');
        expect(rest).to.equal([`600 ${account?.uid ?? process.getuid?.()}`, 'first']);
        process.kill(await pidOf('web'), 'SIGKILL');
        await until(async () => (await textOf('web')).length === 6);
        expect((await textOf('web')).slice(3)).to.equal([folder, ...rest]);
        await rig.services.put(owner, 'web', shell(script, { account, privateFiles: { secret: 'second' } }));
        await until(async () => (await textOf('web')).at(-1) === 'second');
        await rig.services.stop(owner, 'web');
        expect(existsSync(folder)).to.be.false();
        await rig.services.start(owner, 'web');
        expect(existsSync(folder)).to.be.true();
        await rig.services.remove(owner, 'web');
        expect(existsSync(folder)).to.be.false();
    });

    it('signals no process that got the pid of a program', async () => {
        await rig.services.put(owner, 'web', shell(idle));
        const program = await identityOf('web');
        const supervisor = await rig.supervisor();
        const stranger = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
        const strangerPid = stranger.pid ?? 0;
        try {
            const watchdog = await rig.watchdog();
            await rig.services.close();
            process.kill(watchdog.pid, 'SIGKILL');
            process.kill(supervisor.pid, 'SIGKILL');
            await until(() => !isAlive(supervisor));
            process.kill(program.pid, 'SIGKILL');
            // What the supervisor wrote down, as if the kernel had given the pid to the stranger meanwhile.
            const file = join(rig.folder, 'services/units/web-1.web/state.json');
            const state = readFileSync(file, 'utf8').replace(`"pid":${program.pid}`, `"pid":${strangerPid}`);
            writeFileSync(file, state);
            await restartPanel();
            await until(async () => (await statusOf(rig.services, 'web')).state === 'running');
            expect(await pidOf('web')).to.not.equal(strangerPid);
            await rig.services.stop(owner, 'web');
            await rig.services.remove(owner, 'web');
            expect(identify(strangerPid)).to.not.be.null();
        } finally {
            stranger.kill('SIGKILL');
        }
    });

    itWithGroups('ends what its program started, however it hides', async () => {
        const file = join(rig.folder, 'pids');
        await rig.services.put(
            owner,
            'web',
            shell(`env -i setsid sleep 61 >/dev/null 2>&1 & echo $! > ${file}; ${idle}`)
        );
        await until(() => existsSync(file) && readFileSync(file, 'utf8') !== '');
        const hidden = identify(Number(readFileSync(file, 'utf8'))) as ProcessIdentity;
        expect(hidden).to.not.be.null();
        const supervisor = await rig.supervisor();
        process.kill(supervisor.pid, 'SIGKILL');
        process.kill(await pidOf('web').catch(() => 0), 'SIGKILL');
        await until(() => !isAlive(hidden));
    });

    itWithGroups('holds the program and its descendants to their limits', async () => {
        const eat = 'const a = []; for (;;) a.push(Buffer.alloc(1048576, 1));';
        await rig.services.put(owner, 'eater', {
            ...shell(''),
            path: process.execPath,
            args: ['-e', eat],
            restart: 'never',
            limits: { memoryBytes: 96 * 1024 * 1024 }
        });
        await until(async () => (await statusOf(rig.services, 'eater')).lastExit !== null);
        expect((await statusOf(rig.services, 'eater')).lastExit).to.include({
            signal: 'SIGKILL',
            limit: 'memory'
        });
    });

    itAsRoot('runs as its account, which can open its own output', async () => {
        const account = { name: 'nobody', uid: 65534, gid: 65534 };
        await rig.services.put(
            owner,
            'web',
            shell(`id -u; id -G; echo again > /dev/stdout; ls -l /proc/self/fd; ${idle}`, { account })
        );
        await until(async () => (await textOf('web')).length >= 8);
        const [uid, groups, again, ...descriptors] = await textOf('web');
        expect([uid, groups, again]).to.equal(['65534', '65534', 'again']);
        expect(descriptors.filter((line) => /socket:|lock|spec|control/.test(line))).to.equal([]);
    });

    it('sends its reload signal to the program alone', async () => {
        const script = `trap 'echo reloaded' HUP; echo ready; ${idle}`;
        await rig.services.put(owner, 'web', shell(script, { reloadSignal: 'SIGHUP' }));
        await rig.services.put(owner, 'deaf', shell(idle));
        await until(async () => (await textOf('web')).includes('ready'));
        const pid = await pidOf('web');
        expect((await rig.services.reload(owner, 'web')).pid).to.equal(pid);
        await until(async () => (await textOf('web')).includes('reloaded'));
        await expect(rig.services.reload(owner, 'deaf')).to.reject(ServiceNotReloadable);
    });

    it('kills a program that does not end when it is asked to', async () => {
        await rig.services.put(
            owner,
            'web',
            shell(`trap '' TERM; echo ready; ${idle}`, { stopSeconds: 0.2 })
        );
        await until(async () => (await textOf('web')).includes('ready'));
        expect((await rig.services.stop(owner, 'web')).lastExit?.signal).to.equal('SIGKILL');
    });

    it('says why a program cannot be started', async () => {
        const status = await rig.services.put(owner, 'web', shell(idle, { cwd: '/nowhere/at/all' }));
        expect(status).to.include({ state: 'failed', failures: 1, exits: 0 });
        await until(async () => (await textOf('web')).some((text) => /could not be started/.test(text)));
    });

    it('refuses names that lead elsewhere', async () => {
        await rig.services.put(owner, 'web', shell(idle));
        for (const name of ['../web-2.web', 'a/b', '', 'A', '.', 'web-1.web']) {
            await expect(rig.services.put(owner, name, shell('exit 0'))).to.reject(/is no name/);
            await expect(rig.services.stop(owner, name)).to.reject();
            await expect(rig.services.remove(owner, name)).to.reject(/is no name/);
        }
        await expect(rig.services.stop('web', 'web')).to.reject(ServiceUnknown);
        expect(await rig.services.list('web')).to.equal([]);
        expect((await statusOf(rig.services, 'web')).state).to.equal('running');
    });

    it('keeps no more output than its limit, and never stops the program for it', async () => {
        await rig.services.put(
            owner,
            'web',
            shell('head -c 40000000 /dev/zero | tr "\\0" "x" | fold -w 99; echo; echo done', {
                restart: 'never'
            })
        );
        await until(async () => (await statusOf(rig.services, 'web')).lastExit !== null);
        // The end of a program can be known before the last of its output was read.
        await until(async () => (await textOf('web')).at(-1) === 'done');
        const log = join(rig.folder, 'services/units/web-1.web/output.log');
        const bytes = (statSync(log, { throwIfNoEntry: false })?.size ?? 0) + statSync(`${log}.1`).size;
        expect(bytes).to.be.between(3 * 1024 * 1024, 10 * 1024 * 1024);
    });

    it('follows the output across the supervisor, until the service is removed', async () => {
        await rig.services.put(owner, 'web', shell('i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done'));
        const seen: number[] = [];
        const following = (async () => {
            const options = { tail: 100, follow: true, signal: new AbortController().signal };
            for await (const { text } of rig.services.output(owner, 'web', options)) {
                seen.push(Number(text));
            }
        })();
        await until(() => seen.length > 5);
        process.kill((await rig.supervisor()).pid, 'SIGKILL');
        const count = seen.length;
        await until(() => seen.length > count + 10);
        await rig.services.remove(owner, 'web');
        await following;
        expect(seen).to.equal(seen.map((_each, index) => (seen[0] ?? 0) + index));
    });

    itWithDisk('refuses a new service on a full disk, and goes on with the others', async () => {
        const disk = mountSmallDisk(join(rig.folder, 'services'), 512 * 1024);
        try {
            await rig.services.put(
                owner,
                'web',
                shell('while :; do printf "%01000d\\n" 7; sleep 0.01; done')
            );
            await until(async () => (await textOf('web')).length > 3);
            disk.fill();
            await expect(rig.services.put(owner, 'other', shell(idle))).to.reject(StorageFull);
            expect((await rig.services.list(owner)).map(({ name }) => name)).to.equal(['web']);
            await expect(rig.services.put(owner, 'web', shell('exit 0'))).to.reject(StorageFull);
            const pid = await pidOf('web');
            process.kill(pid, 'SIGKILL');
            await until(async () => ![pid, 0].includes(await pidOf('web')));
            expect((await rig.services.stop(owner, 'web')).state).to.equal('stopped');
            disk.free();
            const { startedAt } = await rig.services.start(owner, 'web');
            await until(async () =>
                (await outputOf(rig.services, 'web')).some(({ at }) => at >= (startedAt ?? Infinity))
            );
        } finally {
            disk.free();
            await rig.end();
            disk.close();
        }
    });
});

/** Services of a panel of another version: the same code with another version of the protocol. */
async function versionOf(version: number): Promise<SupervisedServices> {
    const to = join(rig.folder, `version${version}`);
    for (const each of ['services', 'platform']) {
        const from = fileURLToPath(new URL(`../../../core/src/${each}`, import.meta.url));
        cpSync(from, join(to, each), { recursive: true });
    }
    writeFileSync(join(to, 'package.json'), '{"type":"module"}');
    const protocol = join(to, 'services/supervisor/socket/protocol.ts');
    const text = readFileSync(protocol, 'utf8');
    writeFileSync(protocol, text.replace(/protocolVersion = \d+/, `protocolVersion = ${version}`));
    const { SupervisedServices: Other } = (await import(join(to, 'services/supervised.ts'))) as {
        readonly SupervisedServices: typeof SupervisedServices;
    };
    return new Other({ folder: join(rig.folder, 'services'), log: { warn: () => undefined } });
}

describe('OutputLog', { timeout: 20_000 }, () => {
    itWithDisk('says how many lines a full disk cost', async () => {
        const folder = mkdtempSync(join(tmpdir(), 'portico-output-'));
        const disk = mountSmallDisk(folder, 256 * 1024);
        try {
            const log = new OutputLog(join(folder, 'output.log'), 1024 * 1024);
            const write = async (text: string): Promise<void> => {
                log.add('stdout', Buffer.from(`${text.padEnd(8_000, '.')}\n`));
                await log.flush();
            };
            await write('first');
            disk.fill();
            await write('second');
            await write('third');
            disk.free();
            await write('fourth');
            const text = readFileSync(join(folder, 'output.log'), 'utf8');
            expect(text).to.match(/stdout first/);
            expect(text).to.not.match(/third/);
            expect(text).to.match(
                /^\d+ stderr \[portico\] 2 lines are missing here: .*\n+\d+ stdout fourth/m
            );
        } finally {
            disk.close();
            rmSync(folder, { recursive: true });
        }
    });
});

describe('Run.start', { timeout: 20_000 }, () => {
    it('starts no program that could not be written down', async () => {
        const folder = mkdtempSync(join(tmpdir(), 'portico-run-'));
        try {
            const store = new Store(join(folder, 'web'));
            const spec = { mark: 'mark', command: shell(`touch ${folder}/ran`) };
            store.create(spec);
            const log = new OutputLog(store.outputFile, 1_000);
            const start = Run.start({ spec, store, log }, () => {
                throw new Error('the disk is gone');
            });
            await expect(start).to.reject('the disk is gone');
            expect(existsSync(join(folder, 'ran'))).to.be.false();
        } finally {
            rmSync(folder, { recursive: true });
        }
    });
});
