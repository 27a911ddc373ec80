import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { ServiceCommand, ServiceLine, ServiceStatus } from '../../../../core/src/services/port.ts';
import { shell } from '../../../support/machine/services.ts';
import { type MachinePanel, noSystemd, SystemdMachine } from '../../../support/machine/systemd.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const itWithSystemd = itUnless(noSystemd, it);

const limitMs = 60_000;
const owner = 'web-1';
const idle = 'while :; do sleep 60 & wait $!; done';

let machine: SystemdMachine;
let panel: MachinePanel;

const put = (name: string, command: ServiceCommand): Promise<ServiceStatus> =>
    panel.call('put', owner, name, command);
const change = (method: 'start' | 'stop' | 'restart' | 'reload', name: string): Promise<ServiceStatus> =>
    panel.call(method, owner, name);
const remove = (name: string): Promise<unknown> => panel.call('remove', owner, name);
const statusOf = async (name: string, of = owner): Promise<ServiceStatus> =>
    (await panel.call<ServiceStatus[]>('list', of)).find((each) => each.name === name) as ServiceStatus;
const linesOf = (name: string): Promise<ServiceLine[]> => panel.call('lines', owner, name);
const textOf = async (name: string): Promise<string[]> => (await linesOf(name)).map(({ text }) => text);
const unitOf = (name: string): string =>
    machine.units().find((unit) => unit.includes(`-${name}-`)) ?? `no unit of ${name}`;
const shown = async (name: string, property: string): Promise<string> =>
    (await machine.run('systemctl', ['show', '--value', `--property=${property}`, unitOf(name)])).trim();
const inMachine = (script: string): Promise<string> => machine.run('/bin/sh', ['-c', script]);
const folderOf = (name: string, of = owner): string =>
    join(machine.dataDir, 'services', 'units', `${of}.${name}`);

/** The line of a unit that says where its service is kept. */
const folderLine = (text: string): string => `[Unit]\n${/^RequiresMountsFor=.*$/m.exec(text)?.[0]}\n`;

/** The panel is killed, and another one takes over. */
const replacePanel = async (services: 'auto' | 'supervisor' = 'auto'): Promise<void> => {
    panel.kill();
    panel = machine.panel(services);
    machine.prepare();
    await panel.call('open');
};

describe('SystemdServices', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (noSystemd === undefined) {
            machine = new SystemdMachine();
            await machine.boot();
            panel = machine.panel();
            machine.prepare();
            await panel.call('open');
        }
    });

    after({ timeout: limitMs }, () => machine?.close());

    itWithSystemd(
        'is chosen where systemd is the first process, and runs a program as its unit',
        async () => {
            expect(await panel.call('kind')).to.equal('SystemdServices');
            const secret = `it's "$HOME" %n \\ \`id\` {}\nnext\tline`;
            const hard = ['%n', '$HOME', '${HOME}', `a'b"c\\d`, 'new\nline', '', ';', '  ', '–é'];
            const script = `env -0 | tr '\\n\\0' '~\\n' | grep -v ^PWD= | sort; id -u; id -G; pwd; for each; do echo "<$each>"; done; echo err >&2; ${idle}`;
            const command = shell(script, {
                args: ['-c', script, 'sh', ...hard],
                cwd: '/var',
                env: { PATH: '/usr/bin:/bin', SECRET: secret },
                account: { name: 'nobody', uid: 65534, gid: 65534 },
                limits: { memoryBytes: 64 * 1024 * 1024, cpuPercent: 50, processes: 40 }
            });
            const { state, pid, exits, lastExit } = await put('web', command);
            expect({ state, exits, lastExit }).to.equal({ state: 'running', exits: 0, lastExit: null });
            await until(async () => (await linesOf('web')).some(({ stream }) => stream === 'stderr'));
            const lines = await linesOf('web');
            expect(lines.filter(({ stream }) => stream === 'stderr').map(({ text }) => text)).to.equal([
                'err'
            ]);
            expect(Math.abs((lines[0]?.at ?? 0) - Date.now())).to.be.below(10_000);
            const out = lines.filter(({ stream }) => stream === 'stdout').map(({ text }) => text);
            expect(out.filter((text) => !text.startsWith('PORTICO_SERVICE='))).to.equal([
                'HOME=/var',
                'PATH=/usr/bin:/bin',
                `SECRET=${secret.replace('\n', '~')}`,
                ...['65534', '65534', '/var'],
                ...hard.flatMap((each) => `<${each}>`.split('\n'))
            ]);

            // What every account of the machine may read says nothing of the environment.
            const seen = [
                readFileSync(machine.unitPath(unitOf('web')), 'utf8'),
                await machine.run('systemctl', ['show', unitOf('web')]),
                await inMachine(`cat /proc/[0-9]*/cmdline | tr '\\0' ' '`)
            ];
            expect(seen.filter((text) => text.includes('next\tline') || text.includes("it's"))).to.equal([]);
            expect(await inMachine(`readlink /proc/${pid}/fd/* | wc -l`)).to.equal('3\n');
            expect(await shown('web', 'MemoryMax')).to.equal(String(64 * 1024 * 1024));
            expect(await shown('web', 'CPUQuotaPerSecUSec')).to.equal('500ms');
            expect(await shown('web', 'TasksMax')).to.equal('40');

            expect((await put('web', command)).pid).to.equal(pid);
            const changed = await put('web', { ...command, stopSeconds: 3 });
            expect([changed.pid === pid, changed.exits, changed.lastExit?.signal]).to.equal([
                false,
                0,
                'SIGTERM'
            ]);
            await remove('web');
        }
    );

    itWithSystemd('goes on without the panel, and is started again by its policy meanwhile', async () => {
        const ran = join('/var/lib/portico', 'ran');
        await put('always', shell(idle));
        await put('once', shell(`echo ran >> ${ran}`, { restart: 'once' }));
        await put('never', shell('exit 1', { restart: 'never' }));
        await put('clean', shell('exit 0', { restart: 'on-failure' }));
        await put('broken', shell('exit 3', { restart: 'on-failure' }));
        const { pid } = await statusOf('always');
        panel.kill();
        await inMachine(`kill -KILL ${pid}`);
        const main = async (): Promise<string> => shown('always', 'MainPID');
        await until(async () => !['0', String(pid)].includes(await main()));
        await replacePanel();
        const again = await statusOf('always');
        expect(again).to.include({ state: 'running', pid: Number(await main()), exits: 1 });
        expect(again.lastExit?.signal).to.equal('SIGKILL');
        expect((again.startedAt ?? Infinity) - (again.lastExit?.at ?? 0)).to.be.below(2_000);

        await until(async () => (await statusOf('broken')).failures >= 3);
        const states = Object.fromEntries(
            (await panel.call<ServiceStatus[]>('list', owner)).map(({ name, state }) => [name, state])
        );
        expect(states).to.equal({
            always: 'running',
            broken: 'failed',
            clean: 'stopped',
            never: 'failed',
            once: 'stopped'
        });
        expect((await statusOf('broken')).lastExit).to.include({ code: 3, signal: null });
        expect(await inMachine(`cat ${ran}`)).to.equal('ran\n');
        await change('start', 'once');
        await until(async () => (await inMachine(`cat ${ran}`)) === 'ran\nran\n');
        await Promise.all(['broken', 'clean'].map((name) => remove(name)));
    });

    itWithSystemd('gives private files to each run alone', async () => {
        const script = `pwd; stat -c '%a %u' secret . ; cat secret ..x; touch new 2>/dev/null || echo; ${idle}`;
        const account = { name: 'nobody', uid: 65534, gid: 65534 };
        await put(
            'files',
            shell(script, { account, privateFiles: { secret: 'a % $HOME secret', '..x': ' two' } })
        );
        await until(async () => (await textOf('files')).length >= 4);
        const [folder = '', ...rest] = await textOf('files');
        expect(folder).to.match(/^\/run\/portico-service-/);
        expect(rest).to.equal(['600 65534', '711 0', 'a % $HOME secret two']);
        const { pid } = await statusOf('files');
        await inMachine(`kill -KILL ${pid}`);
        await until(async () => (await textOf('files')).length >= 8);
        expect((await textOf('files')).slice(4)).to.equal([folder, ...rest]);
        await change('stop', 'files');
        expect(await inMachine('ls -d /run/portico-service-* 2>/dev/null')).to.equal('');
        await remove('files');
    });

    itWithSystemd('starts after a reboot what ran, and nothing else', async () => {
        await put('stopped', shell(idle));
        await change('stop', 'stopped');
        await put('never', shell(idle, { restart: 'never' }));
        const boot = await shown('always', 'ExecMainStartTimestampMonotonic');
        await machine.reboot();
        // No panel has been started.
        expect(await shown('always', 'ActiveState')).to.equal('active');
        expect(await shown('always', 'ExecMainStartTimestampMonotonic')).to.not.equal(boot);
        expect(await shown('never', 'ActiveState')).to.equal('active');
        expect(await shown('stopped', 'ActiveState')).to.equal('inactive');
        expect(await shown('once', 'ActiveState')).to.equal('inactive');
        expect(await inMachine('cat /var/lib/portico/ran')).to.equal('ran\nran\n');
        panel = machine.panel();
        expect(await statusOf('always')).to.include({ state: 'running', exits: 1 });
        expect((await statusOf('stopped')).state).to.equal('stopped');
        await Promise.all(['stopped', 'never', 'once'].map((name) => remove(name)));
    });

    itWithSystemd('stops, starts, reloads and forgets a service, with everything of it', async () => {
        const script = `trap 'echo reloaded' HUP; echo ready; setsid sleep 1234 & ${idle}`;
        await put('web', shell(script, { reloadSignal: 'SIGHUP' }));
        await until(async () => (await textOf('web')).includes('ready'));
        const following = panel.call('follow', owner, 'web');
        const { pid } = await change('reload', 'web');
        await until(async () => (await panel.call<{ lines: ServiceLine[] }>('followed')).lines.length === 2);
        expect(pid).to.equal((await statusOf('web')).pid);
        const stopped = await change('stop', 'web');
        expect(stopped).to.include({ state: 'stopped', pid: null, exits: 0 });
        expect(await inMachine('pgrep -f "[s]leep 1234"')).to.equal('');
        await expect(change('reload', 'web')).to.reject(/does not run/);
        expect((await change('start', 'web')).state).to.equal('running');
        const before = (await statusOf('web')).pid;
        expect((await change('restart', 'web')).pid).to.not.equal(before);
        await remove('web');
        await remove('web');
        await following;
        expect(machine.units().filter((unit) => unit.includes('-web-'))).to.equal([]);
        expect(existsSync(folderOf('web'))).to.be.false();
        await expect(change('start', 'web')).to.reject(/no service/);
        await expect(put('../x', shell(idle))).to.reject(/no name/);
    });

    itWithSystemd('finishes what a killed panel had begun, and ends units that no service has', async () => {
        const unit = unitOf('always');
        const { pid } = await statusOf('always');
        panel.kill();
        const text = readFileSync(machine.unitPath(unit), 'utf8');
        const sleeps = '[Service]\nExecStart=/bin/sleep 4321\n';
        const strays = {
            // Of no service; of this one before the data folder was moved; and of another panel whose folder was copied from here.
            [unit.replace(/-always-.*/, '-stray-000000000000.service')]: sleeps,
            [unit.replace(/^portico-[^-]*/, 'portico-00000000')]:
                `${sleeps}${folderLine(text).replace('portico/', 'gone/')}`,
            [unit.replace(/^portico-[^-]*/, 'portico-11111111')]: folderLine(text)
        };
        for (const [name, content] of Object.entries(strays)) {
            writeFileSync(machine.unitPath(name), content);
        }
        await machine.run('systemctl', ['daemon-reload']);
        await machine.run('systemctl', ['start', ...Object.keys(strays)]);
        expect(await inMachine('pgrep -f "[s]leep 4321" | wc -l')).to.equal('2\n');
        await replacePanel();
        const others = Object.keys(strays).filter((name) => name.includes('11111111'));
        expect(machine.units().toSorted()).to.equal([...others, unit].toSorted());
        others.forEach((name) => rmSync(machine.unitPath(name)));
        expect(await inMachine('pgrep -f "[s]leep 4321"')).to.equal('');
        expect((await statusOf('always')).pid).to.equal(pid);

        panel.kill();
        await machine.run('systemctl', ['stop', unit]);
        rmSync(machine.unitPath(unit));
        await machine.run('systemctl', ['daemon-reload']);
        await replacePanel();
        await until(async () => (await statusOf('always')).state === 'running');
        expect(machine.units()).to.equal([unit]);
    });

    itWithSystemd('gives its services to another owner without ending them', async () => {
        // Its folder moves the moment after its start, and again.
        const { pid, exits } = await change('restart', 'always');
        await panel.call('adopt', owner, 'web-3');
        await panel.call('adopt', 'web-3', 'web-2');
        expect(await panel.call('list', owner)).to.equal([]);
        const adopted = await statusOf('always', 'web-2');
        expect([adopted.pid, adopted.exits]).to.equal([pid, exits]);
        await inMachine(`kill -KILL ${pid}`);
        await until(async () => ![null, pid].includes((await statusOf('always', 'web-2')).pid));
        // It was killed twice, and once stopped by another hand than the panel's.
        expect((await statusOf('always', 'web-2')).exits).to.equal(3);
        await panel.call('adopt', 'web-2', owner);
    });

    itWithSystemd('passes its services to the supervisor and takes them back, each once', async () => {
        const count = `echo $$ >> /var/lib/portico/pids; ${idle}`;
        await put('counted', shell(count));
        await put('stopped', shell(`touch /var/lib/portico/wrong; ${idle}`));
        await change('stop', 'stopped');
        await inMachine('rm /var/lib/portico/wrong');
        const alive = async (): Promise<string[]> =>
            (
                await inMachine(
                    'for each in $(cat /var/lib/portico/pids); do [ ! -d /proc/$each ] || echo $each; done'
                )
            )
                .split('\n')
                .filter(Boolean);

        await replacePanel('supervisor');
        expect(await panel.call('kind')).to.equal('SupervisedServices');
        await until(async () => (await statusOf('counted')).state === 'running');
        expect(machine.units()).to.equal([]);
        await until(async () => (await alive()).length > 0); // the program runs a moment before it has written its number
        expect(await alive()).to.equal([String((await statusOf('counted')).pid)]);
        expect((await statusOf('stopped')).state).to.equal('stopped');

        await replacePanel('auto');
        const taken = await statusOf('counted');
        expect(taken).to.include({ state: 'running', exits: 0 });
        await until(async () => (await alive()).length > 0);
        expect(await alive()).to.equal([String(taken.pid)]);
        expect(await shown('counted', 'MainPID')).to.equal(String(taken.pid));
        expect((await statusOf('stopped')).state).to.equal('stopped');
        expect(readdirSync(machine.dataDir)).to.not.include('wrong');
    });

    itWithSystemd('is one run of the old or the new command, whenever the panel is killed', async () => {
        const command = (round: number): ServiceCommand =>
            shell(`echo $$ ${round} >> /var/lib/portico/rounds; ${idle}`, { stopSeconds: 2 });
        const alive = async (): Promise<string[]> =>
            (
                await inMachine(
                    'while read -r pid round; do [ ! -d /proc/$pid ] || echo $round; done </var/lib/portico/rounds'
                )
            )
                .split('\n')
                .filter(Boolean);
        await put('killed', command(0));
        for (let round = 1; round <= 5; round += 1) {
            void put('killed', command(round)).catch(() => undefined);
            await wait(round * 45);
            await replacePanel();
            await until(async () => (await statusOf('killed')).state === 'running');
            await until(async () => (await alive()).length === 1);
            const [found = ''] = await alive();
            expect([round - 1, round]).to.include(Number(found));
            await put('killed', command(round));
            await until(async () => (await alive()).join() === String(round));
            expect(machine.units().filter((unit) => unit.includes('-killed-'))).to.have.length(1);
        }
        await remove('killed');
    });

    itWithSystemd('refuses a service on a full disk, and goes on with the others', async () => {
        panel.kill();
        await inMachine('mount -t tmpfs -o size=192k,mode=700 tmpfs /var/lib/portico');
        panel = machine.panel();
        await put('web', shell(idle));
        const { pid } = await statusOf('web');
        const unit = readFileSync(machine.unitPath(unitOf('web')), 'utf8');
        await inMachine('cat /dev/zero >/var/lib/portico/filler');
        await expect(put('other', shell(idle))).to.reject(/StorageFull|no space/);
        await expect(put('web', shell('exit 0'))).to.reject(/StorageFull|no space/);
        expect((await panel.call<ServiceStatus[]>('list', owner)).map(({ name }) => name)).to.equal(['web']);
        expect(readFileSync(machine.unitPath(unitOf('web')), 'utf8')).to.equal(unit);
        await inMachine(`kill -KILL ${pid}`);
        await until(async () => ![null, pid].includes((await statusOf('web')).pid));
        expect((await statusOf('web')).exits).to.equal(1);
        expect((await change('stop', 'web')).state).to.equal('stopped');
        expect((await change('start', 'web')).state).to.equal('running');
        await remove('web');
    });
});
