/**
 * A machine in which systemd is the first process: a container of kernel namespaces over the files of this machine, which it cannot change. What is
 * below its data folder and its folder of units stays over a reboot.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { until } from '../until.ts';

const namespaces = ['--mount', '--net', '--uts', '--ipc', '--pid', '--cgroup', '--fork'];

/** Why no such machine can be started here; undefined where one can. */
export const noSystemd: string | undefined =
    process.getuid?.() !== 0
        ? 'only root can start a container'
        : ['/lib/systemd/systemd', '/usr/bin/unshare', '/usr/bin/nsenter'].find(
                (path) => !existsSync(path)
            ) !== undefined
          ? 'systemd is not installed (apt-get install systemd)'
          : refusal();

const repository = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Makes the root of the machine and becomes its systemd. Only the journal is started beside what a test adds: units of this machine could change the
 * kernel's settings, which the container shares.
 * Arguments: folder for the root, the data folder, the folder of units, and the repository, which may lie on a file system that the root does not show.
 */
const bootScript = `set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
root=$1/root
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
for each in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
    IFS=: read -r name major minor <<END
$each
END
    mknod -m 666 "$root/dev/$name" c "$major" "$minor"
done
ln -s /proc/self/fd "$root/dev/fd"
for each in run tmp; do mount -t tmpfs -o mode=1777 tmpfs "$root/$each"; done
chmod 755 "$root/run"
mkdir -p "$root$4"
mount --bind -o ro "$4" "$root$4"
mkdir -p "$root/var/lib/portico"
mount --bind "$2" "$root/var/lib/portico"
mount --bind "$3" "$root/etc/systemd/system"
tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
cat /proc/sys/kernel/random/uuid >"$root/run/boot-id"
mount --bind "$root/run/boot-id" "$root/proc/sys/kernel/random/boot_id"
for each in "$root"/lib/systemd/system/*.wants; do rm -rf "$each"; done
mkdir "$root/lib/systemd/system/sockets.target.wants" "$root/lib/systemd/system/sysinit.target.wants"
ln -s ../systemd-journald.socket "$root/lib/systemd/system/sockets.target.wants/"
ln -s ../systemd-journald.service "$root/lib/systemd/system/sysinit.target.wants/"
cd "$root"
mkdir before
pivot_root . before
umount -l before
hostname machine
exec env -i PATH="$PATH" container=docker /lib/systemd/systemd --unit=multi-user.target --log-level=warning`;

/** A real systemd in a container. */
export class SystemdMachine {
    readonly #folder = mkdtempSync(join(tmpdir(), 'portico-systemd-'));
    readonly #panels = new Set<MachinePanel>();
    #group = '';
    #outer: ChildProcess | null = null;
    /** A panel that has loaded and was not asked for yet. */
    #spare: MachinePanel | null = null;
    /** As this machine sees the container's first process. */
    #pid = 0;
    #boots = 0;

    /** Starts the machine. */
    async boot(): Promise<void> {
        this.#boots += 1;
        this.#group = join(cgroupRoot() ?? '', `portico-systemd-${process.pid}-${this.#boots}`);
        const root = join(this.#folder, `root${this.#boots}`);
        for (const folder of [this.#group, root, this.dataDir, this.#units]) {
            mkdirSync(folder, { recursive: true });
        }
        const enter = `echo $$ >"$1/cgroup.procs"; shift; exec "$@"`;
        const outer = spawn(
            '/bin/sh',
            [
                ...['-c', enter, 'sh', this.#group],
                ...['unshare', ...namespaces, '--kill-child'],
                ...['/bin/sh', '-c', bootScript, 'sh', root, this.dataDir, this.#units, repository]
            ],
            { stdio: ['ignore', 'pipe', 'pipe'] }
        );
        this.#outer = outer;
        let said = '';
        outer.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
        outer.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
        await until(async () => {
            if (outer.exitCode !== null) {
                throw new Error(`systemd did not start:\n${said}`);
            }
            this.#pid = childOf(outer.pid ?? 0);
            return (
                this.#pid !== 0 && /running|degraded/.test(await this.run('systemctl', ['is-system-running']))
            );
        }, 'systemd runs');
    }

    /** Ends the machine at once, as a power cut does. */
    async cut(): Promise<void> {
        this.#killPanels();
        const outer = this.#outer;
        if (outer !== null && outer.exitCode === null && outer.signalCode === null) {
            const ended = new Promise((resolve) => outer.once('exit', resolve));
            process.kill(this.#pid === 0 ? (outer.pid ?? 0) : this.#pid, 'SIGKILL');
            await ended;
        }
        this.#outer = null;
        this.#pid = 0;
        await until(() => removeGroup(this.#group), 'the container ended');
    }

    /** Shuts the machine down as an admin does, and starts it again. */
    async reboot(): Promise<void> {
        this.#killPanels();
        const ended = new Promise((resolve) => this.#outer?.once('exit', resolve));
        await this.run('systemctl', ['poweroff', '--no-block']).catch(() => undefined);
        await ended;
        await this.cut();
        await this.boot();
    }

    /** Ends the machine, and removes every trace of it. */
    async close(): Promise<void> {
        await this.cut();
        rmSync(this.#folder, { recursive: true, force: true });
    }

    /** Path of the data folder on this machine; in the container it is `/var/lib/portico`. */
    get dataDir(): string {
        return join(this.#folder, 'data');
    }

    /** Names of the files of units. */
    units(): readonly string[] {
        return readdirSync(this.#units).filter((name) => name.endsWith('.service'));
    }

    /** Path of a unit's file on this machine. */
    unitPath(name: string): string {
        return join(this.#units, name);
    }

    /** Runs a program in the machine and resolves with its output, whatever its exit code is. */
    async run(file: string, args: readonly string[]): Promise<string> {
        const { stdout } = await promisify(execFile)('nsenter', [...this.#entering(), file, ...args]).catch(
            (error: { readonly stdout?: string }) => ({ stdout: error.stdout ?? '' })
        );
        return stdout;
    }

    /** Runs a program in the machine and resolves with all that it gave. */
    exec(
        file: string,
        args: readonly string[]
    ): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
        return new Promise((resolve) => {
            execFile('nsenter', [...this.#entering(), file, ...args], (error, stdout, stderr) => {
                resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
            });
        });
    }

    /** Starts the services of a panel there. @param services - as `PORTICO_SERVICES` */
    panel(services: 'auto' | 'supervisor' = 'auto'): MachinePanel {
        const spare = services === 'auto' ? this.#spare : null;
        this.#spare = spare === null ? this.#spare : null;
        return spare ?? this.#start(services);
    }

    /** Loads the next panel while the test goes on: that takes a second, in which a test of kills would only wait. It does nothing until it is called. */
    prepare(): void {
        this.#spare ??= this.#start('auto');
    }

    #killPanels(): void {
        this.#panels.forEach((panel) => panel.kill());
        this.#panels.clear();
        this.#spare = null;
    }

    #start(services: 'auto' | 'supervisor'): MachinePanel {
        const panel = new MachinePanel(
            spawn(
                'nsenter',
                [
                    ...this.#entering(),
                    join(repository, 'node_modules/.bin/node'),
                    '--conditions=portico-source',
                    '--disable-warning=ExperimentalWarning',
                    join(repository, 'test/support/machine/services-process.ts'),
                    services
                ],
                { stdio: ['pipe', 'pipe', 'inherit'] }
            )
        );
        this.#panels.add(panel);
        return panel;
    }

    get #units(): string {
        return join(this.#folder, 'units');
    }

    #entering(): readonly string[] {
        return ['--target', String(this.#pid), '--all', '--root', '--wd=/', '--'];
    }
}

/** The services of a panel in another process. */
export class MachinePanel {
    readonly #child: ChildProcess;
    readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
    #last = 0;

    constructor(child: ChildProcess) {
        this.#child = child;
        createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
            const { id, result, error } = JSON.parse(line) as {
                id: number;
                result?: unknown;
                error?: string;
            };
            const waiting = this.#waiting.get(id);
            this.#waiting.delete(id);
            if (error === undefined) {
                waiting?.resolve(result);
            } else {
                waiting?.reject(new Error(error));
            }
        });
    }

    /** Calls a function of the process (`services-process.ts`). */
    call<T = unknown>(method: string, ...args: readonly unknown[]): Promise<T> {
        const waiting = Promise.withResolvers<unknown>();
        this.#last += 1;
        this.#waiting.set(this.#last, waiting);
        this.#child.stdin?.write(`${JSON.stringify({ id: this.#last, method, args })}\n`);
        return waiting.promise as Promise<T>;
    }

    /** Ends the process as `kill -9` does. */
    kill(): void {
        const { pid, exitCode, signalCode } = this.#child;
        if (pid !== undefined && exitCode === null && signalCode === null) {
            process.kill(childOf(pid) || pid, 'SIGKILL'); // nsenter waits for its child, and ends after it
        }
        this.#waiting.clear();
    }
}

/** Why this machine allows no such container; undefined where it does. */
function refusal(): string | undefined {
    const root = cgroupRoot();
    if (root === null) {
        return 'this machine has no control groups of version 2';
    }
    try {
        const probe = join(root, `portico-probe-${process.pid}`);
        mkdirSync(probe);
        rmdirSync(probe);
        execFileSync('unshare', [...namespaces, 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { stdio: 'pipe' });
        return undefined;
    } catch (error) {
        return `this machine allows no container: ${(error as Error).message.trim()}`;
    }
}

/** Where control groups of version 2 are; null without them. */
function cgroupRoot(): string | null {
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
    return / (\/\S+) \S+ .*- cgroup2 /.exec(mounts)?.[1] ?? null;
}

function childOf(pid: number): number {
    try {
        return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);
    } catch {
        return 0;
    }
}

/** Removes a control group with those below it. False while a process is in one. */
function removeGroup(group: string): boolean {
    if (!existsSync(group)) {
        return true;
    }
    try {
        execFileSync('find', [group, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';'], {
            stdio: 'ignore'
        });
        return !existsSync(group) || (rmdirSync(group), true);
    } catch {
        return false;
    }
}
