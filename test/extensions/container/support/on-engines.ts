/** Tests that run on every engine at once: most of their time is waiting. */
import type { script } from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { type EngineKind, engineKinds, lackOf } from '../engines.ts';
import { ContainerRig } from './rig.ts';

type Lab = ReturnType<typeof script>;
/** A test of one engine. */
export type EngineTest = (rig: ContainerRig) => Promise<void>;

const limitMs = 120_000;

/**
 * Registers a group of tests that run on Docker and on Podman at the same time, each with a rig of its own for the group. An engine that
 * is missing is skipped with its reason.
 */
export function describeOnEngines(
    lab: Lab,
    title: string,
    register: (real: (title: string, test: EngineTest) => void) => void,
    {
        settings = {},
        kinds = engineKinds
    }: { readonly settings?: object; readonly kinds?: readonly EngineKind[] } = {}
): void {
    const there = kinds.filter((kind) => lackOf(kind) === undefined);
    const rigs = new Map<EngineKind, ContainerRig>();
    const { after, before, describe, it } = lab;
    describe(title, { timeout: limitMs }, () => {
        before({ timeout: limitMs }, async () => {
            await each(there, async (kind) => void rigs.set(kind, await ContainerRig.start(settings, kind)));
        });
        after({ timeout: limitMs }, async () => {
            await each([...rigs.keys()], async (kind) => rigs.get(kind)?.close());
        });
        register((name, test) => {
            for (const kind of kinds.filter((each) => !there.includes(each))) {
                itUnless(lackOf(kind), it)(`${name} on ${kind}`, () => undefined);
            }
            if (there.length > 0) {
                it(name, { skip: false }, () => each(there, (kind) => test(rigs.get(kind) as ContainerRig)));
            }
        });
    });
}

/** Does the same for each engine at once; a failure names the engine. */
async function each(kinds: readonly EngineKind[], work: (kind: EngineKind) => Promise<void>): Promise<void> {
    const outcomes = await Promise.allSettled(kinds.map(work));
    for (const [index, outcome] of outcomes.entries()) {
        if (outcome.status === 'rejected') {
            const error = outcome.reason as Error;
            error.message = `${kinds[index]}: ${error.message}`;
            throw error;
        }
    }
}
