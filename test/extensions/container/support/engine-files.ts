/** The files that an engine of a test, and the registry beside it, read: their settings, and the image that they begin with. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Writes what docker-registry reads, and gives the path. @param more - sections of its settings beside the storage, as YAML */
export function writeRegistry(root: string, address: string, more = ''): string {
    const file = join(root, `registry-${address.split(':')[1]}.yml`);
    writeFileSync(
        file,
        `version: 0.1\nlog: { level: error }\nstorage: { filesystem: { rootdirectory: ${root}/registry }, delete: { enabled: true } }\nhttp: { addr: ${address} }\n${more}`
    );
    return file;
}

/** Writes what dockerd reads, and gives its command. */
export function writeDocker(root: string): readonly string[] {
    writeFileSync(
        join(root, 'daemon.json'),
        JSON.stringify({
            'data-root': join(root, 'data'),
            'exec-root': join(root, 'exec'),
            pidfile: join(root, 'pid'),
            hosts: [`unix://${join(root, 'engine.sock')}`],
            bip: '10.200.0.1/24',
            dns: ['127.0.0.1'],
            'shutdown-timeout': 1
        })
    );
    return ['dockerd', '--config-file', join(root, 'daemon.json')];
}

/** Writes what Podman reads, and gives the command of its service. */
export function writePodman(root: string, registries: readonly string[]): readonly string[] {
    writeFileSync(
        join(root, 'containers.conf'),
        [
            '[containers]\ndefault_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]',
            `[engine]\nevents_logger = "file"\ncgroup_manager = "cgroupfs"\nruntime = "runc"`,
            `[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "${root}/networks"\n`
        ].join('\n')
    );
    writeFileSync(
        join(root, 'registries.conf'),
        ['unqualified-search-registries = ["docker.io"]']
            .concat(registries.map((at) => `[[registry]]\nlocation = "${at}"\ninsecure = true`))
            .join('\n')
    );
    const folders = ['root', 'runroot', 'tmpdir'].flatMap((name) => [`--${name}`, join(root, name)]);
    return ['podman', ...folders, 'system', 'service', '--time=0', `unix://${join(root, 'engine.sock')}`];
}

/** A root file system of busybox as a tar archive, with what a busybox that is not static needs. */
export function busyboxTar(folder: string, mark: string): Buffer {
    const root = mkdtempSync(join(folder, 'root-'));
    for (const each of ['bin', 'tmp', 'etc', 'data']) {
        mkdirSync(join(root, each));
    }
    const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim();
    const applets = [
        'sh',
        'sleep',
        'echo',
        'cat',
        'ls',
        'true',
        'false',
        'id',
        'touch',
        'test',
        'printf',
        'stty',
        'env',
        'seq',
        'kill',
        'mkdir',
        'ps'
    ];
    cpSync(busybox, join(root, 'bin', 'busybox'), { dereference: true });
    applets.forEach((applet) => symlinkSync('busybox', join(root, 'bin', applet)));
    const libraries = execFileSync('sh', ['-c', `ldd ${busybox} 2>/dev/null || true`], { encoding: 'utf8' });
    for (const [library] of libraries.matchAll(/\/\S+\.so\S*/g)) {
        mkdirSync(join(root, library, '..'), { recursive: true });
        cpSync(library, join(root, library), { dereference: true });
    }
    writeFileSync(join(root, 'etc', 'mark'), `${mark}\n`);
    const tar = execFileSync('tar', ['-C', root, '-cf', '-', '.'], { maxBuffer: 1 << 28 });
    rmSync(root, { recursive: true, force: true });
    return tar;
}
