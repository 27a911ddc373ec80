// Runs one check or one test file in a process of its own and says how it went: { name, tests, problems, output, ms }.
// `tests` are { title, state, ms }; `problems` are failures that belong to no test (a leak, a time limit, a dead process).

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { end, leftBehind } from './processes.mjs';
import { openScratch } from './scratch.mjs';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const BIN = join(ROOT, 'node_modules', '.bin');
const SCRIPTS = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts;

const CHECK_MINUTES = 10;
const MERCY_MS = 5_000; // how long a process that was told to stop may take to be gone

const alive = new Set();

const scratch = openScratch();
// Holds what the processes of this run have compiled, with types removed: reading it halves the CPU time that a panel needs to start.
const compileCache = mkdtempSync(join(scratch, 'c'));

/** Ends everything that is still running, for when the run itself is interrupted. */
export function stopAll() {
    for (const child of alive) {
        kill(child);
    }
}

/** Runs a script of the root's package.json; it passes when it exits with 0. */
export async function runCheck(name) {
    const { code, output, ms, late } = await run('sh', ['-c', SCRIPTS[name]], environment(), CHECK_MINUTES);
    const problems = late ? [`did not end within ${CHECK_MINUTES} minutes`] : [];
    return {
        name,
        tests: [{ title: name, state: code === 0 ? 'passed' : 'failed', ms }],
        problems,
        output,
        ms
    };
}

/** Runs one test file with lab; it passes when each test does and nothing is left behind. */
export async function runFile(file, { limitMinutes }) {
    const folder = mkdtempSync(join(scratch, 't')); // short: a unix socket's path ends at 108 bytes
    chmodSync(folder, 0o1777); // as /tmp itself: an engine that runs as another user must get through
    const journalFolder = mkdtempSync(join(scratch, 'journal-'));
    const journal = join(journalFolder, 'journal');
    const mark = `PORTICO_TEST_FILE=${folder}`;
    const problems = [];
    try {
        const result = await run(
            join(BIN, 'node'),
            [
                '--conditions=portico-source',
                '--disable-warning=ExperimentalWarning',
                // A heap that need not grow first is collected less often while a panel starts: a twentieth of the processor time.
                '--min-semi-space-size=16',
                join(ROOT, 'node_modules/@hapi/lab/bin/lab'),
                '-r',
                'console',
                '-o',
                'stdout',
                '-r',
                './tools/lab-journal.cjs',
                '-o',
                '/dev/null',
                file
            ],
            environment({ TMPDIR: folder, PORTICO_TEST_FILE: folder, PORTICO_TEST_JOURNAL: journal }),
            limitMinutes
        );

        const lines = readJournal(journal);
        const tests = outcomes(lines.filter((line) => line.kind === 'test'));
        const last = lines.find((line) => line.kind === 'end');
        problems.push(
            ...verdict(result, tests, last, limitMinutes),
            ...(await processesLeft(mark, folder, result.late))
        );
        // After a failure the clean-up may not have run: only a file that passes must leave nothing.
        if (problems.length === 0 && tests.every((test) => test.state !== 'failed')) {
            problems.push(...filesLeft(folder));
        }
        return { name: file, tests, problems, output: result.output, ms: result.ms };
    } finally {
        try {
            rmSync(folder, { recursive: true, force: true });
        } catch (error) {
            // For instance a mount that the test left there: this file fails, and the run goes on.
            problems.push(`leaves a temporary folder that cannot be removed: ${error.message}`);
        }
        rmSync(journalFolder, { recursive: true, force: true });
    }
}

// When a clean-up fails, lab reports a test that has passed a second time, as failed.
function outcomes(tests) {
    const failed = new Set(tests.filter((test) => test.state === 'failed').map((test) => test.title));
    return tests.filter((test) => test.state !== 'passed' || !failed.has(test.title));
}

function verdict({ code, late }, tests, last, limitMinutes) {
    if (late) {
        return [`did not end within ${limitMinutes} minutes`];
    }
    if (last === undefined) {
        return [`ended before its last test (exit code ${code})`];
    }
    if (last.leaks.length > 0) {
        return [`leaves these on the global object: ${last.leaks.join(', ')}`];
    }
    if (tests.length === 0) {
        return ['has no test'];
    }
    if (code !== 0 && !tests.some((test) => test.state === 'failed')) {
        return [last.errors.length > 0 ? last.errors.join('; ') : `exit code ${code}`];
    }
    return [];
}

// A process that is still ending is not a leak; one that stays is.
async function processesLeft(mark, folder, late) {
    const until = Date.now() + (late ? 0 : MERCY_MS);
    let processes = leftBehind({ mark, folder });
    while (processes.length > 0 && Date.now() < until) {
        await sleep(100);
        processes = leftBehind({ mark, folder });
    }
    end(processes);
    return processes.map(({ pid, command }) => `leaves a process behind: ${command.slice(0, 200)} (${pid})`);
}

function filesLeft(folder) {
    const files = readdirSync(folder);
    return files.length > 0 ? [`leaves files in the temporary folder: ${files.slice(0, 5).join(', ')}`] : [];
}

// The variables of npm and of a developer's own panel would change what is tested. PORTICO_GOLDEN and
// PORTICO_TEST_PICTURES are for the tests themselves.
function environment(extra = {}) {
    const kept = Object.entries(process.env).filter(
        ([name]) => !/^(npm_|portico_(?!(golden|test_pictures)$))/i.test(name)
    );
    const path = [BIN, ...(process.env.PATH ?? '').split(':').filter((folder) => folder !== BIN)].join(':');
    return {
        ...Object.fromEntries(kept),
        PATH: path,
        NODE_ENV: 'test',
        NODE_COMPILE_CACHE: compileCache,
        ...extra
    };
}

function run(command, args, env, limitMinutes) {
    const begun = Date.now();
    return new Promise((resolve) => {
        // A group of its own, so that the time limit ends what the file started too.
        const child = spawn(command, args, {
            cwd: ROOT,
            env,
            detached: true,
            stdio: ['ignore', 'pipe', 'pipe']
        });
        alive.add(child);
        const chunks = [];
        child.stdout.on('data', (chunk) => chunks.push(chunk));
        child.stderr.on('data', (chunk) => chunks.push(chunk));
        const closed = once(child, 'close').catch(() => {});
        let late = false;
        const limit = setTimeout(() => {
            late = true;
            kill(child);
        }, limitMinutes * 60_000);
        const finish = async (code) => {
            clearTimeout(limit);
            // A process left behind may hold the pipes open; what counts is that the file's own has ended.
            await Promise.race([closed, sleep(1_000, undefined, { ref: false })]);
            alive.delete(child);
            child.stdout.destroy();
            child.stderr.destroy();
            resolve({
                code,
                late,
                ms: Date.now() - begun,
                output: Buffer.concat(chunks).toString().trimEnd()
            });
        };
        child.once('error', (error) => {
            chunks.push(Buffer.from(error.message));
            void finish(1);
        });
        child.once('exit', (code, signal) => finish(code ?? signal));
    });
}

function kill(child) {
    try {
        process.kill(-child.pid, 'SIGKILL');
    } catch (error) {
        if (error.code !== 'ESRCH') {
            throw error;
        }
    }
}

function readJournal(path) {
    try {
        return readFileSync(path, 'utf8')
            .split('\n')
            .filter(Boolean)
            .map((line) => JSON.parse(line));
    } catch (error) {
        if (error.code === 'ENOENT') {
            return [];
        }
        throw error;
    }
}
