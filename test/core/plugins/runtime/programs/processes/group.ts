import { existsSync, readdirSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Child, type Context, definePlugin, isFailure } from '@portico/sdk';

import { ControlGroup } from '../../../../../../core/src/platform/process/control-group/control-group.ts';
import { ControlGroups } from '../../../../../../core/src/platform/process/control-group/control-groups.ts';
import { findHierarchies } from '../../../../../../core/src/platform/process/control-group/hierarchy.ts';
import type {
    Capabilities,
    Generation
} from '../../../../../../core/src/plugins/runtime/generation/generation.ts';
import { MachinePrograms } from '../../../../../../core/src/plugins/runtime/programs/machine.ts';
import { systemAlarm } from '../../../../../../core/src/plugins/runtime/schedules.ts';
import { groupsMissing } from '../../../../../support/machine/control-groups.ts';
import { createPluginRig, type PluginRig, type RigOptions } from '../../../../../support/plugins/host.ts';
import { itUnless } from '../../../../../support/skip.ts';
import { until } from '../../../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, describe, it } = lab;
const itWithGroups = itUnless(groupsMissing(), it);
const itAsRoot = itUnless(
    process.getuid?.() === 0 ? groupsMissing() : 'only root can run programs as another account',
    it
);

const memoryBytes = 48 * 1024 * 1024;
const eat = 'const a = []; for (;;) a.push(Buffer.alloc(1048576, 1));';

let rig: PluginRig;
let generation: Generation;

async function contextWith(capabilities: Capabilities, options?: RigOptions): Promise<Context> {
    rig = await createPluginRig(options);
    let found!: Context;
    generation = await rig.run(
        definePlugin({
            setup(ctx) {
                found = ctx;
            }
        }),
        { capabilities }
    );
    return found;
}

/** The control groups that this process made and that are still there. */
const groups = (): string[] =>
    findHierarchies()
        .flatMap(({ folders }) => Object.values(folders))
        .flatMap((folder) => readdirSync(folder))
        .filter((name) => name.startsWith(`portico-${process.pid}-`));

const textOf = (child: Child): Promise<string> => new Response(child.stdout).text();

describe('limits.group', () => {
    afterEach(async () => {
        await rig.close();
        expect(groups()).to.equal([]);
    });

    itWithGroups('ends what needs too much memory, says so, and keeps what was used', async () => {
        const ctx = await contextWith({ exec: ['node', 'sh'] });
        const child = await ctx.spawn('node', ['-e', eat], { limits: { group: { memoryBytes } } });
        expect(await child.exited).to.equal({
            code: null,
            signal: 'SIGKILL',
            timedOut: false,
            limit: 'memory'
        });
        await until(() => groups().length === 0);
        const usage = await child.usage();
        expect(usage?.memoryPeakBytes ?? 0).to.be.between(memoryBytes / 2, memoryBytes + 1);
        expect(usage?.cpuSeconds ?? 0).to.be.above(0);
        // The limit is that of the whole tree: the shell lives on, and its exit says what happened to a descendant.
        const told = await ctx.exec('sh', ['-c', `node -e '${eat}'; echo code $?`], {
            limits: { group: { memoryBytes } }
        });
        expect([told.stdout, told.code, told.limit]).to.equal(['code 137\n', 0, 'memory']);
        const enough = await ctx.exec('sh', ['-c', 'exit 3'], { limits: { group: { memoryBytes } } });
        expect(enough).to.include({ code: 3, signal: null });
        expect(enough.limit).to.be.undefined();
    });

    itAsRoot('holds for another account and in a terminal, from the first instruction', async () => {
        const ctx = await contextWith({ exec: ['sh'], users: ['nobody'] });
        const script = 'id -un; cat /proc/self/cgroup; test -t 0 && echo terminal; env';
        const child = await ctx.spawn('sh', ['-c', script], {
            user: 'nobody',
            cwd: '/',
            pty: { columns: 80, rows: 24 },
            limits: { openFiles: 64, group: { processes: 8, cpuPercent: 50 } }
        });
        const text = await textOf(child);
        expect(text)
            .to.match(/^nobody\r?$/m)
            .and.to.match(/^terminal\r?$/m);
        expect(text).to.match(new RegExp(`:memory:.*/portico-${process.pid}-|0::.*/portico-${process.pid}-`));
        expect(text).to.not.include('PORTICO_GO');
        expect((await child.exited).code).to.equal(0);
    });

    itWithGroups('ends with its generation what cleared its environment and left its session', async () => {
        const ctx = await contextWith({ exec: ['sh'] });
        const child = await ctx.spawn(
            'sh',
            ['-c', 'env -i setsid -f sleep 600; exec env -i setsid sleep 601'],
            {
                limits: { group: {} }
            }
        );
        void textOf(child);
        const [folder = ''] = findHierarchies().flatMap(({ folders }) => Object.values(folders));
        const name = groups()[0] ?? '';
        const [hierarchy] = findHierarchies();
        const group = ControlGroup.of(hierarchy ?? { version: 1, folders: {} }, name);
        expect(existsSync(`${folder}/${name}`)).to.be.true();
        let pids: readonly number[] = [];
        for (let tries = 0; tries < 500 && pids.length < 2; tries += 1) {
            pids = group.pids();
            await wait(10);
        }
        expect(pids.length).to.be.at.least(2);
        await generation.close('test');
        expect(pids.filter((pid) => existsSync(`/proc/${pid}/exe`))).to.equal([]);
    });

    it('is refused where no group is writable, and an empty one then only does not measure', async () => {
        const programs = new MachinePrograms(new ControlGroups(() => []));
        const ctx = await contextWith(
            { exec: ['touch'] },
            { ports: { machine: { programs, alarm: systemAlarm, root: '' } } }
        );
        const file = `${rig.root}/ran`;
        const refused = await ctx
            .exec('touch', [file], { limits: { group: { processes: 5 } } })
            .catch((e: unknown) => e);
        expect(isFailure(refused) ? [refused.code, refused.data?.['tool']] : refused).to.equal([
            50302,
            'control groups'
        ]);
        expect(existsSync(file)).to.be.false();
        const child = await ctx.spawn('touch', [file], { limits: { group: {} } });
        expect((await child.exited).code).to.equal(0);
        expect(await child.usage()).to.be.null();
        expect(existsSync(file)).to.be.true();
    });

    it('has limits that mean something', async () => {
        const ctx = await contextWith({ exec: ['true'] });
        for (const group of [
            { memoryBytes: 1024 },
            { memoryBytes: 1e9 + 0.5 },
            { cpuPercent: 0 },
            { processes: -1 },
            { processes: '5' },
            { disk: 5 },
            { constructor: 5 }
        ]) {
            await expect(ctx.exec('true', [], { limits: { group: group as never } })).to.reject(TypeError); // wrong on purpose
        }
        const child = await ctx.spawn('true', []);
        expect(await child.exited).to.equal({ code: 0, signal: null, timedOut: false });
        expect(await child.usage()).to.be.null();
    });
});
