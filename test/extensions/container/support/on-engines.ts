/** Tests that run on every engine at once: most of their time is waiting. */
import type { script } from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { type EngineKind, engineKinds, lackOf } from '../engines.ts';
import { ContainerRig } from './rig.ts';

type Lab = ReturnType<typeof script>;
/** A test of one engine. */
export type EngineTest<Rig = ContainerRig> = (rig: Rig) => Promise<void>;
type Register<Rig> = (real: (title: string, test: EngineTest<Rig>) => void) => void;

/** What a group of tests has of its own on each engine. */
export interface EngineRigs<Rig> {
    readonly start: (kind: EngineKind) => Promise<Rig>;
    /** Why the tests cannot run here on any engine. */
    readonly lacks?: string | undefined;
    readonly kinds?: readonly EngineKind[];
    /** For each test, in milliseconds. */
    readonly limitMs?: number;
}

/** Registers a group of tests of the plugin in the kit, as {@link describeWithEngines}. */
export function describeOnEngines(
    lab: Lab,
    title: string,
    register: Register<ContainerRig>,
    { settings = {}, kinds }: { readonly settings?: object; readonly kinds?: readonly EngineKind[] } = {}
): void {
    const start = (kind: EngineKind): Promise<ContainerRig> => ContainerRig.start(settings, kind);
    describeWithEngines(lab, title, register, { start, ...(kinds === undefined ? {} : { kinds }) });
}

/**
 * Registers a group of tests that run on Docker and on Podman at the same time, each with a rig of its own for the group. An engine that
 * is missing is skipped with its reason.
 */
export function describeWithEngines<Rig extends { close(): Promise<void> }>(
    lab: Lab,
    title: string,
    register: Register<Rig>,
    { start, lacks, kinds = engineKinds, limitMs = 240_000 }: EngineRigs<Rig>
): void {
    const lackFor = (kind: EngineKind): string | undefined => lacks ?? lackOf(kind);
    const there = kinds.filter((kind) => lackFor(kind) === undefined);
    const rigs = new Map<EngineKind, Rig>();
    const { after, before, describe, it } = lab;
    describe(title, { timeout: limitMs }, () => {
        before({ timeout: limitMs }, async () => {
            await each(there, async (kind) => void rigs.set(kind, await start(kind)));
        });
        after({ timeout: limitMs }, async () => {
            await each([...rigs.keys()], async (kind) => rigs.get(kind)?.close());
        });
        register((name, test) => {
            for (const kind of kinds.filter((each) => !there.includes(each))) {
                itUnless(lackFor(kind), it)(`${name} on ${kind}`, () => undefined);
            }
            if (there.length > 0) {
                it(name, { skip: false }, () => each(there, (kind) => test(rigs.get(kind) as Rig)));
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
