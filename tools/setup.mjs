// Brings what a fresh clone lacks: the dependencies, Node 24, and the programs of the system for what is about to run.
// Runs on Node 20 and without any dependency, because it is what installs them. It says nothing when nothing is missing.
//
//     node tools/setup.mjs [start|test|bench]

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
    accessSync,
    constants,
    existsSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    renameSync,
    rmSync,
    writeFileSync
} from 'node:fs';
import { delimiter, dirname, isAbsolute, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

import { SYSTEM_PACKAGES } from './packages.mjs';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

const say = (message) => process.stderr.write(`setup: ${message}\n`);

// npm runs scripts with its own settings in the environment; a nested npm must read them afresh.
function cleanEnvironment() {
    const entries = Object.entries(process.env).filter(
        ([name]) => !/^npm_(config|lifecycle|package)_/i.test(name)
    );
    return Object.fromEntries(entries);
}

// What a command prints is shown only when it fails: a set-up that works is quiet.
function run(command, args, { env = cleanEnvironment() } = {}) {
    const result = spawnSync(command, args, {
        cwd: ROOT,
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
        encoding: 'utf8',
        maxBuffer: 1 << 26
    });
    const output =
        `${result.stdout ?? ''}${result.stderr ?? ''}${result.error ? result.error.message : ''}`.trim();
    return { ok: result.status === 0, output };
}

function demand(what, command, args) {
    const { ok, output } = run(command, args);
    if (!ok) {
        say(`${what} failed: ${command} ${args.join(' ')}`);
        process.stderr.write(`${output}\n`);
        process.exit(1);
    }
}

/** Installs the dependencies unless those of the lock file are there, and Node 24 with them. */
export function ensureDependencies() {
    const stamp = join(ROOT, 'node_modules', '.portico-lock');
    const lock = readFileSync(join(ROOT, 'package-lock.json'), 'utf8');
    const wanted = `${createHash('sha256').update(lock).digest('hex')} ${process.platform}-${process.arch}\n`;
    if (read(stamp) !== wanted) {
        if (!isInstalled(JSON.parse(lock).packages)) {
            say('installing the dependencies (npm ci)');
            rmSync(stamp, { force: true });
            demand('npm ci', 'npm', [
                'ci',
                '--include=dev',
                '--ignore-scripts',
                '--no-audit',
                '--no-fund',
                '--loglevel=error'
            ]);
        }
        writeFileSync(stamp, wanted);
    }

    const version = JSON.parse(lock).packages['node_modules/node'].version;
    if (!bringsNode(version)) {
        say(`installing Node ${version}`);
        demand('installing Node', 'npm', ['rebuild', 'node', '--ignore-scripts=false', '--loglevel=error']);
        if (!bringsNode(version)) {
            say(`node_modules/.bin/node is not Node ${version}; remove node_modules and start again`);
            process.exit(1);
        }
    }
}

// The binary is not run to ask for its version: that would cost every start 40 ms.
function bringsNode(version) {
    const installed = read(join(ROOT, 'node_modules', 'node', 'package.json'));
    return (
        installed !== undefined &&
        JSON.parse(installed).version === version &&
        isExecutable(join(ROOT, 'node_modules', '.bin', 'node'))
    );
}

// npm keeps its own list of what it installed. Where npm was run by hand, this saves installing everything again.
function isInstalled(wanted) {
    const list = read(join(ROOT, 'node_modules', '.package-lock.json'));
    if (list === undefined) {
        return false;
    }
    const present = JSON.parse(list).packages;
    const links = (path) => wanted[path].link && existsSync(join(ROOT, path));
    const same = (path) =>
        present[path]?.version === wanted[path].version && existsSync(join(ROOT, path, 'package.json'));
    return (
        Object.keys(wanted)
            .filter((path) => path.includes('node_modules/') && !wanted[path].optional)
            .every((path) => links(path) || same(path)) &&
        Object.keys(present).every((path) => wanted[path] !== undefined || present[path].extraneous)
    );
}

/** Builds the panel's pages, and those that extensions bring. */
export function ensurePages() {
    const extensions = join(ROOT, 'extensions');
    const names = readdirSync(extensions).filter((name) =>
        existsSync(join(extensions, name, 'web', 'vite.config.ts'))
    );
    for (const name of names) {
        const folder = join(extensions, name);
        const target = join(folder, name === 'webui' ? 'pages' : 'assets');
        // A panel that starts meanwhile must not read half of them: they are made apart, and put in place at once.
        const apart = `${target}.${process.pid}`;
        ensureBuilt(`the pages of ${name}`, {
            target,
            apart,
            sources: [
                join(folder, 'web'),
                join(ROOT, 'sdk', 'page-kit', 'src'),
                join(ROOT, 'sdk', 'src', 'page')
            ].flatMap(filesBelow),
            args: [
                '--conditions=portico-source',
                '--disable-warning=ExperimentalWarning',
                join(ROOT, 'node_modules', 'vite', 'bin', 'vite.js'),
                'build',
                '--logLevel=error',
                `--outDir=${apart}`,
                '--emptyOutDir',
                join(folder, 'web')
            ]
        });
    }
}

/** Puts the panel into a few files, which load in half the time of its modules. */
export function ensureBundle() {
    const tool = join(ROOT, 'tools', 'bundle.mjs');
    ensureBuilt('the bundle of the panel', {
        target: join(ROOT, 'core', '.bundle'),
        sources: [
            tool,
            ...['core', 'registry', 'sdk'].flatMap((name) => filesBelow(join(ROOT, name, 'src')))
        ],
        args: [tool]
    });
}

// Runs Node 24 with `args`, unless `target` was made of the very same sources. What is made `apart` replaces the target when it is whole.
function ensureBuilt(what, { target, sources, args, apart }) {
    const stamp = join(target, '.built');
    const hash = createHash('sha256');
    for (const path of [...sources, join(ROOT, 'package-lock.json')]) {
        hash.update(`${relative(ROOT, path)}\0`).update(readFileSync(path));
    }
    const wanted = `${hash.digest('hex')}\n`;
    if (read(stamp) !== wanted) {
        say(`building ${what}`);
        demand(`building ${what}`, join(ROOT, 'node_modules', '.bin', 'node'), args);
        if (apart !== undefined) {
            rmSync(target, { recursive: true, force: true });
            renameSync(apart, target);
        }
        writeFileSync(stamp, wanted);
    }
}

function filesBelow(folder) {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
        .sort();
}

/**
 * Installs the programs that `purpose` needs, through apt-get where this process may; says what to run where it may not.
 * Never fails: the panel starts without its engine and reports it as missing, and a test says what it misses.
 */
export function ensurePackages(
    purpose,
    { getuid = () => process.getuid?.(), systemd = '/run/systemd/system', root = '/' } = {}
) {
    const wanted =
        { start: ['start'], test: ['start', 'test'], bench: ['start', 'test', 'bench'] }[purpose] ?? [];
    const missing = SYSTEM_PACKAGES.filter(
        (entry) =>
            wanted.includes(entry.for) &&
            !(entry.variable && process.env[entry.variable]) &&
            find(entry.command) === undefined
    );
    if (missing.length === 0) {
        return;
    }

    const names = missing.map((entry) => entry.package);
    const what = missing.map((entry) => `${entry.command} (${entry.what})`).join(', ');
    if (find('apt-get') === undefined) {
        say(`not installed: ${what}. Install it with this system's package manager${hint(missing)}`);
        return;
    }
    if (getuid() !== 0) {
        say(
            `not installed: ${what}. Run: sudo apt-get install --no-install-recommends ${names.join(' ')}${hint(missing)}`
        );
        return;
    }

    say(`installing ${what} with apt-get`);
    missing.forEach(({ files = {} }) => writeMissing(files, root));
    const running = existsSync(systemd);
    const fresh = missing.filter(
        (entry) => entry.unit && running && !run('systemctl', ['cat', entry.unit]).ok
    );
    const failure = aptInstall(names);
    if (failure !== undefined) {
        say(`apt-get could not install ${names.join(' ')}${hint(missing)}\n${failure}`);
        return;
    }
    for (const { unit } of fresh) {
        const { ok } = run('systemctl', ['disable', '--now', unit]);
        say(
            ok
                ? `stopped and disabled ${unit}, which the package had started: Portico runs its own`
                : `could not disable ${unit}; it may hold port 80`
        );
    }
}

function writeMissing(files, root) {
    for (const [path, text] of Object.entries(files)) {
        const file = join(root, path);
        if (!existsSync(file)) {
            mkdirSync(dirname(file), { recursive: true });
            writeFileSync(file, text);
        }
    }
}

// The package lists of a fresh machine are empty and those of an old one name files that are gone: refreshed when needed only.
function aptInstall(names) {
    const env = { ...cleanEnvironment(), DEBIAN_FRONTEND: 'noninteractive' };
    const wait = ['-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3'];
    const install = [...wait, 'install', '-y', '-q', '--no-install-recommends', ...names];
    if (run('apt-get', install, { env }).ok) {
        return undefined;
    }
    const update = run('apt-get', [...wait, 'update', '-q'], { env });
    const second = run('apt-get', install, { env });
    return second.ok ? undefined : [update.ok ? '' : update.output, second.output].filter(Boolean).join('\n');
}

function hint(missing) {
    const variables = missing
        .filter((entry) => entry.variable)
        .map((entry) => `, or set ${entry.variable} to the binary of ${entry.command}`);
    return variables.join('');
}

function find(command) {
    if (isAbsolute(command)) {
        return existsSync(command) ? command : undefined;
    }
    return (process.env.PATH ?? '')
        .split(delimiter)
        .filter(Boolean)
        .map((folder) => join(folder, command))
        .find(isExecutable);
}

function isExecutable(path) {
    try {
        accessSync(path, constants.X_OK);
        return true;
    } catch {
        return false;
    }
}

function read(path) {
    try {
        return readFileSync(path, 'utf8');
    } catch {
        return undefined;
    }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    ensureDependencies();
    ensurePages();
    ensureBundle();
    ensurePackages(process.argv[2]);
}
