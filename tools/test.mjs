// The check command: types, layers, format, lint, dead code, then every test file in a process of its own.
//
//     npm test                              everything
//     npm test -- test/core/envelope.ts     these files or folders only
//     npm run check -- --quick              without the tests
//     npm test -- --again test/core         these, and what fails runs once more
//
// Three run at a time, since many wait for a program, a container or a browser; a fourth one starts while the processors are idle.
// PORTICO_TEST_JOBS sets another number, without one more. PORTICO_TEST_MINUTES says how long a file may take (10).
// A skipped test must give its reason in its title, `(skipped: …)`; with CI set, it counts as failed.
// In a run of everything, and with --again, a few test files that failed run once more, alone, after all others (docs/adr/0041). The summary names what passes only then.
// The last line is `N passed, N failed`, with `, N skipped` where there are any.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { cpus } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { runCheck, runFile, stopAll } from './run.mjs';

const CHECKS = ['types', 'layers', 'format', 'lint', 'dead'];
const NOT_TESTS = new Set(['node_modules', 'support', 'fixtures', 'golden', 'types', 'bench']);
const LIMIT_MINUTES = Number(process.env.PORTICO_TEST_MINUTES) || 10;
const WIDTH = Number(process.env.PORTICO_TEST_JOBS) || undefined;
const USUAL_WIDTH = 3;
// One file more runs when the processors were idle for this share of the time since the last look.
const IDLE_SHARE = 0.2;
const LOOK_MS = 2_000;
const SLOWEST = 5;
// More failed files than this are no accident of a busy machine, and none of them runs again.
const MOST_SECOND_RUNS = 4;
// The files that take longest run first, so that no core waits for the last one. A file that is missing here only runs later.
const FIRST = [
    'test/extensions/hundred/agents-and-apps.ts',
    'test/extensions/hundred/system.ts',
    'test/extensions/deploy/story.ts',
    'test/extensions/deploy/images.ts',
    'test/extensions/webui/pages.ts',
    'test/extensions/database/index.ts',
    'test/extensions/backup/targets.ts',
    'test/core/cli/plugin/offline.ts',
    'test/api/plugins/upgrade.ts',
    'test/extensions/filemanager/page.ts',
    'test/extensions/deploy/forges/merge-requests.ts',
    'test/extensions/appstore/changes.ts',
    'test/extensions/container/faults/killed.ts',
    'test/extensions/database/killed.ts',
    'test/extensions/deploy/killed.ts',
    'test/extensions/webui/plugins/frames.ts',
    'test/extensions/stories/app.ts',
    'test/tools/pack.ts',
    'test/extensions/webui/hosts.ts',
    'test/core/cli/offline/offline.ts',
    'test/extensions/container/faults/faults.ts',
    'test/extensions/appstore/installed.ts',
    'test/registry/install/hostile.ts',
    'test/api/openapi.ts',
    'test/extensions/database/point-in-time/point-in-time.ts'
];
const REASON = '(skipped: ';

const args = process.argv.slice(2);
const quick = args.includes('--quick');
const named = args.filter((arg) => !arg.startsWith('--'));
const strict = Boolean(process.env.CI) && process.env.CI !== 'false';

for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
        stopAll();
        process.exit(1);
    });
}

const files = quick ? [] : discover(named.length > 0 ? named : ['test']);
const jobs = [
    ...(named.length > 0 ? [] : CHECKS.map((name) => () => runCheck(name))),
    ...files.map((file) => () => runFile(file, { limitMinutes: LIMIT_MINUTES }))
];
const begun = processorTimes();
const first = await runAll(jobs, WIDTH ?? USUAL_WIDTH, { oneMore: WIDTH === undefined });
const results = named.length > 0 && !args.includes('--again') ? first : await runAgain(first);
process.exitCode = report(results);

function discover(roots) {
    const found = roots.flatMap((root) => {
        const path = resolve(root);
        if (!existsSync(path)) {
            process.stderr.write(`There is no ${root}\n`);
            process.exit(1);
        }
        return statSync(path).isDirectory() ? walk(path).filter(isTest) : [path];
    });
    const names = found.map((path) => relative(process.cwd(), path)).sort();
    return [
        ...FIRST.filter((name) => names.includes(name)),
        ...names.filter((name) => !FIRST.includes(name))
    ];
}

function walk(folder) {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
        if (entry.isDirectory()) {
            return NOT_TESTS.has(entry.name) ? [] : walk(join(folder, entry.name));
        }
        return entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts') ? [join(folder, entry.name)] : [];
    });
}

// One that makes a lab script but forgets to export it would never run: it is taken for a test too, and fails.
function isTest(path) {
    return /\bscript\(/.test(readFileSync(path, 'utf8'));
}

async function runAll(queue, width, { oneMore = false } = {}) {
    const done = [];
    const waiting = [...queue];
    const runNext = async () => {
        const result = await waiting.shift()();
        done.push(result);
        announce(result);
    };
    const runToTheEnd = async () => {
        while (waiting.length > 0) {
            await runNext();
        }
    };
    const runWhileIdle = async () => {
        while (waiting.length > 0) {
            if ((await idleShare()) > IDLE_SHARE && waiting.length > 0) {
                await runNext();
            }
        }
    };
    await Promise.all([
        ...Array.from({ length: Math.min(width, waiting.length) }, runToTheEnd),
        ...(oneMore ? [runWhileIdle()] : [])
    ]);
    return done;
}

async function idleShare() {
    const before = processorTimes();
    await sleep(LOOK_MS);
    return idleSince(before);
}

// The share of the time of all processors since then in which they had nothing to do.
function idleSince(before) {
    const after = processorTimes();
    return (after.idle - before.idle) / (after.all - before.all);
}

function processorTimes() {
    const times = cpus().map((cpu) => cpu.times);
    const sum = (number) => times.reduce((total, each) => total + number(each), 0);
    return {
        idle: sum(({ idle }) => idle),
        all: sum((each) => Object.values(each).reduce((total, ms) => total + ms, 0))
    };
}

// Replaces the results of failed test files by those of a second run. The failures of the first run stay as `earlier`.
async function runAgain(all) {
    const failed = all.filter((result) => files.includes(result.name) && failures(result).length > 0);
    if (failed.length > MOST_SECOND_RUNS) {
        return all;
    }
    const again = await runAll(
        failed.map(
            ({ name }) =>
                () =>
                    runFile(name, { limitMinutes: LIMIT_MINUTES })
        ),
        1
    );
    return all.map((result) => {
        const second = again.find(({ name }) => name === result.name);
        return second === undefined ? result : { ...second, earlier: failures(result) };
    });
}

// What counts as failed. A skipped test must say why in its title; without a reason it may have been forgotten.
function failures(result) {
    const skipped = titles(result, 'skipped').filter((title) => strict || !title.includes(REASON));
    return [
        ...titles(result, 'failed'),
        ...skipped.map((title) => (title.includes(REASON) ? title : `${title} (skipped without a reason)`)),
        ...result.problems
    ];
}

function titles(result, state) {
    return result.tests.filter((test) => test.state === state).map((test) => test.title);
}

function announce(result) {
    const failed = failures(result);
    const seconds = `${(result.ms / 1000).toFixed(1)} s`;
    if (failed.length === 0) {
        print(
            `ok    ${result.name}  ${result.tests.length === 1 ? '' : `${result.tests.length} tests, `}${seconds}`
        );
        return;
    }
    print(`FAIL  ${result.name}  ${seconds}`);
    print(result.output.replaceAll(/^/gm, '    '));
    result.problems.forEach((problem) => print(`    ${result.name} ${problem}`));
}

function report(all) {
    const sum = (number) => all.reduce((total, result) => total + number(result), 0);
    const passed = sum((result) => titles(result, 'passed').length);
    const failed = sum((result) => failures(result).length);
    const skipped = sum(
        (result) => titles(result, 'skipped').filter((title) => !strict && title.includes(REASON)).length
    );

    const slow = all.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST);
    if (all.length > SLOWEST) {
        print(
            `\nProcessors idle for ${Math.round(idleSince(begun) * 100)} % of the time. Slowest: ${slow.map((result) => `${result.name} ${(result.ms / 1000).toFixed(1)} s`).join(', ')}`
        );
    }
    list(
        'Skipped',
        all.flatMap((result) => titles(result, 'skipped').map((title) => `${result.name}: ${title}`))
    );
    list(
        'Failed at first, passed when run again alone (each is a defect to be found)',
        all
            .filter((result) => result.earlier !== undefined && failures(result).length === 0)
            .flatMap((result) => result.earlier.map((title) => `${result.name}: ${title}`))
    );
    list(
        'Failed',
        all.flatMap((result) => failures(result).map((title) => `${result.name}: ${title}`))
    );
    print(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
    return failed > 0 ? 1 : 0;
}

function list(heading, lines) {
    if (lines.length > 0) {
        print(`\n${heading}:\n${lines.map((line) => `    ${line}`).join('\n')}\n`);
    }
}

function print(text) {
    process.stdout.write(`${text}\n`);
}
