/**
 * Kills a panel at random moments, again and again, and compares its state with everything that it acknowledged.
 * Run: `npm run crash -- [rounds] [seed] [nemesis]`. The same seed gives the same choices, but not the same moments.
 */
import { createHarness } from './harness.ts';
import { nemeses, type NemesisName } from './nemesis.ts';
import { createRandom } from './random.ts';

const rounds = Number(process.argv[2] ?? 50);
const seed = Number(process.argv[3] ?? Math.floor(Math.random() * 1e9));
const only = process.argv[4] as NemesisName | undefined;
if (!(rounds > 0) || !Number.isSafeInteger(seed) || (only !== undefined && !Object.hasOwn(nemeses, only))) {
    console.error(`npm run crash -- [rounds] [seed] [nemesis]\nnemeses: ${Object.keys(nemeses).join(', ')}`);
    process.exit(2);
}
console.log(`${rounds} rounds, seed ${seed}`);
const harness = await createHarness(createRandom(seed));
const sums = { acknowledged: 0, unknown: 0, acted: 0, visits: 0, cut: 0, names: 0, violations: 0 };
const readyTimes: number[] = [];
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
        interrupted = true;
    });
}
try {
    for (let n = 1; n <= rounds && !interrupted; n += 1) {
        const round = await harness.round(only);
        for (const key of ['acknowledged', 'unknown', 'acted', 'visits', 'cut', 'names'] as const) {
            sums[key] += round[key];
        }
        sums.violations += round.violations.length;
        if (round.ready !== null) {
            readyTimes.push(round.ready);
        }
        console.log(
            `${String(n).padStart(4)} ${round.nemesis.padEnd(56)} ${String(round.acknowledged).padStart(4)} acknowledged, ${round.unknown} unknown (${round.acted} made), ready ${round.ready === null ? '-' : Math.round(round.ready)} ms, ${round.names} names, ${round.visits} visits (${round.cut} cut, longest gap ${Math.round(round.longestGap)} ms)`
        );
        for (const violation of round.violations) {
            console.log(`     VIOLATION ${violation}`);
        }
        if (round.violations.length > 0) {
            console.log(
                harness.panel.output
                    .split('\n')
                    .slice(-15)
                    .map((line) => `     | ${line.slice(0, 600)}`)
                    .join('\n')
            );
        }
    }
} finally {
    await harness.close();
}
readyTimes.sort((a, b) => a - b);
console.log(
    `${sums.acknowledged} changes acknowledged, ${sums.unknown} without an answer (${sums.acted} of them made), ${sums.names} names served as their rows say, ${sums.visits} visits of sites, ${sums.cut} cut; ready again after ${Math.round(readyTimes[readyTimes.length >> 1] ?? 0)} ms (median), ${Math.round(readyTimes.at(-1) ?? 0)} ms (longest)`
);
console.log(`${sums.violations} violations`);
process.exitCode = sums.violations === 0 ? 0 : 1;
