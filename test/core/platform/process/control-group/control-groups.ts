import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    type ControlGroup,
    GroupUnavailable
} from '../../../../../core/src/platform/process/control-group/control-group.ts';
import { ControlGroups } from '../../../../../core/src/platform/process/control-group/control-groups.ts';
import {
    findHierarchies,
    type Hierarchy
} from '../../../../../core/src/platform/process/control-group/hierarchy.ts';
import { groupsMissing } from '../../../../support/machine/control-groups.ts';
import { itUnless } from '../../../../support/skip.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;
const itWithGroups = itUnless(groupsMissing(), it);

let root: string;
/** Folders of the machine's groups that these tests made. */
const ours = (): string[] =>
    findHierarchies()
        .flatMap(({ folders }) => Object.values(folders))
        .flatMap((folder) => readdirSync(folder))
        .filter((name) => name.startsWith(`portico-${process.pid}-`));

beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'portico-groups-'));
});
afterEach(() => {
    rmSync(root, { recursive: true });
    expect(ours()).to.equal([]);
});

/** Runs a shell in a group from its first instruction on. */
async function shellIn(
    group: ControlGroup,
    script: string
): Promise<{ code: number | null; signal: string | null }> {
    const child = spawn('sh', ['-c', `read _; ${script}`], { stdio: ['pipe', 'ignore', 'ignore'] });
    await group.add(child.pid ?? 0);
    child.stdin.end('\n');
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
    return { code, signal };
}

describe('ControlGroups', () => {
    itWithGroups('limits the memory of all processes together, and says that it ran out', async () => {
        const group = await new ControlGroups().create({ memoryBytes: 48 * 1024 * 1024 });
        try {
            const eat = 'node -e "const a=[]; for(;;) a.push(Buffer.alloc(1048576, 1))"';
            expect(group.ranOutOfMemory()).to.be.false();
            // The one that eats is a grandchild, and the shell lives on: the limit is that of the whole tree.
            expect(await shellIn(group, `(${eat}); test $? = 137`)).to.equal({ code: 0, signal: null });
            expect(group.ranOutOfMemory()).to.be.true();
            const peak = group.usage()?.memoryPeakBytes ?? 0;
            expect(peak).to.be.above(24 * 1024 * 1024);
            expect(peak).to.be.at.most(48 * 1024 * 1024);
        } finally {
            expect(await group.remove()).to.be.true();
        }
        expect(group.usage()?.memoryPeakBytes ?? 0).to.be.above(0);
    });

    itWithGroups('limits processor time and processes, and measures what was used', async () => {
        const group = await new ControlGroups().create({ cpuPercent: 20, processes: 3 });
        try {
            // A shell that cannot fork ends with 2.
            expect((await shellIn(group, 'sleep 9 & sleep 9 & sleep 9 & true')).code).to.equal(2);
            await group.kill();
            expect(group.pids()).to.equal([]);
            const fast = await new ControlGroups().create({ cpuPercent: 20 });
            try {
                const before = performance.now();
                const spin = 'i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done';
                expect((await shellIn(fast, spin)).code).to.equal(0);
                const { cpuSeconds = 0 } = fast.usage() ?? {};
                expect(cpuSeconds).to.be.above(0.05);
                // At a fifth of a processor it took five times as long; the kernel gives the first period in advance.
                expect(performance.now() - before).to.be.above((cpuSeconds - 0.05) * 5_000);
            } finally {
                await fast.remove();
            }
        } finally {
            await group.remove();
        }
    });

    itWithGroups('ends processes that left their session and cleared their environment', async () => {
        const group = await new ControlGroups().create({});
        await shellIn(group, 'env -i setsid -f sleep 600');
        expect(await group.remove()).to.be.false();
        const pids = group.pids();
        expect(pids.length).to.be.above(0);
        await group.kill();
        expect(await group.remove()).to.be.true();
        expect(pids.filter((pid) => existsSync(`/proc/${pid}/exe`))).to.equal([]);
    });

    itWithGroups('ends what a killed process left behind, and nothing of a process that runs', async () => {
        const [hierarchy] = findHierarchies();
        const places = [...new Set(Object.values(hierarchy?.folders ?? {}))];
        const left = `portico-${process.pid}-1-1`;
        const kept = await new ControlGroups().create({});
        const sleeper = spawn('sleep', ['600'], { stdio: 'ignore' });
        for (const place of places) {
            mkdirSync(join(place, left));
            writeFileSync(join(place, left, 'cgroup.procs'), String(sleeper.pid));
        }
        const ended = once(sleeper, 'exit');
        const next = await new ControlGroups().create({});
        expect((await ended)[1]).to.equal('SIGKILL');
        expect(places.filter((place) => existsSync(join(place, left)))).to.equal([]);
        expect(kept.usage()).to.not.be.null();
        await Promise.all([kept.remove(), next.remove()]);
    });

    it('writes the files of version 2, and asks the group above for its controllers', async () => {
        const tree = tree2();
        const group = await new ControlGroups(() => [tree]).create(
            { memoryBytes: 1_048_576, cpuPercent: 150, processes: 7 },
            'svc'
        );
        const read = (file: string): string => readFileSync(join(root, 'svc', file), 'utf8');
        expect(readFileSync(join(root, 'cgroup.subtree_control'), 'utf8')).to.equal('+memory +cpu +pids ');
        expect(['memory.max', 'memory.swap.max', 'cpu.max', 'pids.max'].map(read)).to.equal([
            '1048576',
            '0',
            '150000 100000',
            '7'
        ]);
        await group.add(4711);
        expect(read('cgroup.procs')).to.equal('4711');
        expect(group.usage()).to.be.null();
        writeFileSync(join(root, 'svc/cpu.stat'), 'usage_usec 2500000\nuser_usec 1\n');
        writeFileSync(join(root, 'svc/memory.current'), '4096\n');
        expect(group.usage()).to.equal({ cpuSeconds: 2.5, memoryPeakBytes: 4096 });
        writeFileSync(join(root, 'svc/memory.current'), '1024\n');
        expect(group.usage()?.memoryPeakBytes).to.equal(4096);
        writeFileSync(join(root, 'svc/memory.peak'), '9000\n');
        expect(group.usage()?.memoryPeakBytes).to.equal(9000);
        writeFileSync(join(root, 'svc/memory.events'), 'low 0\noom 3\noom_kill 0\n');
        expect(group.ranOutOfMemory()).to.be.false();
        writeFileSync(join(root, 'svc/memory.events'), 'low 0\noom 3\noom_kill 1\n');
        expect(group.ranOutOfMemory()).to.be.true();
    });

    it('goes on to the next place, and says when none is left', async () => {
        const absent: Hierarchy = { version: 2, folders: { memory: join(root, 'absent') } };
        const group = await new ControlGroups(() => [absent, tree2()]).create({}, 'second');
        expect(existsSync(join(root, 'second'))).to.be.true();
        await expect(new ControlGroups(() => [absent]).create({})).to.reject(GroupUnavailable);
        await expect(new ControlGroups(() => []).create({})).to.reject(GroupUnavailable);
        // Version 1 without a controller that is needed.
        mkdirSync(join(root, 'v1'));
        const partial: Hierarchy = { version: 1, folders: { memory: join(root, 'v1') } };
        await expect(new ControlGroups(() => [partial]).create({ processes: 3 }, 'x')).to.reject(
            GroupUnavailable
        );
        expect(readdirSync(join(root, 'v1'))).to.equal([]);
        expect(await group.remove()).to.be.true();
    });

    it('takes no group that another process made', async () => {
        const tree = tree2();
        mkdirSync(join(root, 'taken'));
        await expect(new ControlGroups(() => [tree]).create({}, 'taken')).to.reject(/EEXIST/);
        expect(existsSync(join(root, 'taken'))).to.be.true();
    });
});

describe('findHierarchies', () => {
    function processWith(cgroup: string, mountinfo: string): string {
        writeFileSync(join(root, 'cgroup'), cgroup);
        writeFileSync(join(root, 'mountinfo'), mountinfo);
        return root;
    }

    it('finds version 2 below the own group first, then above it', () => {
        const at = join(root, 'fs');
        mkdirSync(join(at, 'system.slice/portico.service'), { recursive: true });
        const proc = processWith(
            '0::/system.slice/portico.service\n',
            `30 23 0:26 / ${at} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n`
        );
        expect(findHierarchies(proc).map(({ version, folders }) => [version, folders.memory])).to.equal([
            [2, join(at, 'system.slice/portico.service')],
            [2, join(at, 'system.slice')],
            [2, at]
        ]);
    });

    it('finds version 1 where it holds the controllers, also where a container sees a part of the tree', () => {
        for (const name of ['memory', 'cpu,cpuacct', 'pids']) {
            mkdirSync(join(root, 'fs', name), { recursive: true });
        }
        mkdirSync(join(root, 'fs/memory/inner'));
        const line = (names: string): string =>
            `40 39 0:35 /docker/abc ${join(root, 'fs', names)} rw - cgroup cgroup rw,${names}\n`;
        const proc = processWith(
            '4:memory:/docker/abc/inner\n3:cpu,cpuacct:/docker/abc\n0::/docker/abc\n',
            `${['memory', 'cpu,cpuacct', 'pids'].map(line).join('')}41 39 0:38 / ${root} rw - cgroup2 cgroup2 rw\n`
        );
        expect(findHierarchies(proc)).to.equal([
            {
                version: 1,
                folders: {
                    memory: join(root, 'fs/memory/inner'),
                    cpu: join(root, 'fs/cpu,cpuacct'),
                    cpuacct: join(root, 'fs/cpu,cpuacct'),
                    pids: join(root, 'fs/pids')
                }
            }
        ]);
    });

    it('finds nothing on a machine without control groups', () => {
        expect(findHierarchies(processWith('', '22 1 0:1 / / rw - ext4 /dev/sda rw\n'))).to.equal([]);
        expect(findHierarchies(join(root, 'absent'))).to.equal([]);
    });
});

/** A folder that looks like a group of version 2. */
function tree2(): Hierarchy {
    writeFileSync(join(root, 'cgroup.subtree_control'), '');
    return { version: 2, folders: { memory: root, cpu: root, cpuacct: root, pids: root } };
}
