/** What other plugins may ask of this one. Each acts in its own name, on what it made itself, under the same policy as people. Types only. */
import type { Call } from '@portico/sdk';

import type { BuildEvent } from './builds/builds.ts';
import type { ExecOutcome } from './containers/exec.ts';
import type { StackAction } from './stacks/changes.ts';
import type { viewOf } from './stacks/planner.ts';
import type { Digests } from './stacks/source.ts';
import type { StackView } from './stacks/view.ts';
import type { Snapshot } from './volumes/snapshots.ts';

/** A stack, as GET `/stacks/{name}` shows it. */
export type ContainerStack = StackView;
/** What a compose file would come to, as POST `/compose/plan` shows it. */
export type ContainerPlan = ReturnType<typeof viewOf>;

/** The engine that runs the containers. */
export interface ContainerEngine {
    readonly kind: 'docker' | 'podman';
    readonly version: string;
    /** As Go names it: `amd64`, `arm64`. */
    readonly arch: string;
}

/** What a stack should be. */
export interface ApplyInput {
    /** Small letters, digits, `_` and `-`; it never changes. */
    readonly name: string;
    readonly compose: string;
    /** Lines of `NAME=value`; default: none. No other variable is known to the file. */
    readonly env?: string;
    readonly description?: string;
    /** By service: the digest of the registry's image, or the id of one that was built. Default: the tag says which. */
    readonly digests?: Digests;
    /** Default true. */
    readonly start?: boolean;
    /** How long services may take to come up, 1 to 900; default 60. */
    readonly waitSeconds?: number;
    /** Default `rollback`: what ran before runs again, whole. */
    readonly onFailure?: 'rollback' | 'keep';
    /** That of a plan, which the person who is acted for has seen. Needs an actor with `write`. */
    readonly consent?: string;
}

/** A line of a log. */
export interface ContainerLogLine {
    readonly at: string;
    readonly stream: 'stdout' | 'stderr';
    readonly text: string;
    readonly service: string;
}

/**
 * The contract of the plugin `container`. A stack belongs to the plugin that made it: that plugin alone changes it (40950), people run, stop
 * and read it. The owner decides who may ask; only consent to more exposure needs a person with this plugin's permission `write`. One change
 * of a stack at a time; a second is 40901. Each method fails with 50302 where there is no engine, and 50350 when it gives no answer.
 */
export interface ContainerContract {
    /** The engine. */
    engine(input: Record<never, never>, call: Call): Promise<ContainerEngine>;
    /** What a compose file would come to; changes nothing. Faults of the file are in the plan. */
    plan(input: Pick<ApplyInput, 'name' | 'compose' | 'env' | 'digests'>, call: Call): Promise<ContainerPlan>;
    /**
     * Makes a stack what it should be, and waits until it is: makes it where there is none, else changes what differs.
     *
     * @throws STACK_OWNED 40950, SPEC_CONSENT_REQUIRED 40951, COMPOSE_INVALID 42250, COMPOSE_UNSUPPORTED 42251, DEPLOY_FAILED 42252,
     * POLICY_REFUSED 42253, ENGINE_REFUSED 42254, REGISTRY_FAILED 50250, IN_USE 40901
     */
    apply(input: ApplyInput, call: Call): Promise<ContainerStack>;
    /** A stack of the plugin's own; null when there is none of that name. */
    stack(input: { readonly name: string }, call: Call): Promise<ContainerStack | null>;
    /** `up`, `down`, `start`, `stop`, `restart` or `redeploy`, to its end. `services`: default all; `up` and `redeploy` also carry out what those depend on. `pull`: `up` and `redeploy` take newer images. @throws VALIDATION_FAILED 40001 for a service that the stack has not */
    control(
        input: {
            readonly stack: string;
            readonly action: StackAction;
            readonly services?: readonly string[];
            readonly pull?: boolean;
        },
        call: Call
    ): Promise<ContainerStack>;
    /**
     * Deploys a revision that is kept: compose text, variables and images together. The revision before the one that runs needs no consent again:
     * a plugin can take its last change back when no person is there.
     */
    rollback(
        input: {
            readonly stack: string;
            readonly revision: number;
            readonly waitSeconds?: number;
            readonly consent?: string;
        },
        call: Call
    ): Promise<ContainerStack>;
    /** Removes a stack with its containers, networks and snapshots, and with `volumes` its volumes. What is gone already is no error. */
    remove(
        input: { readonly stack: string; readonly volumes?: boolean },
        call: Call
    ): Promise<{ removed: boolean }>;
    /** The newest `tail` lines (default 200) of a stack or one of its services, and with `follow` those that come. */
    logs(
        input: {
            readonly stack: string;
            readonly service?: string;
            readonly tail?: number;
            readonly follow?: boolean;
        },
        call: Call
    ): AsyncIterable<ContainerLogLine>;
    /** Runs a command in the first running container of a service. `timeoutSeconds`: 1 to 300, default 30. @throws IN_USE 40901 when none runs */
    exec(
        input: {
            readonly stack: string;
            readonly service: string;
            readonly command: readonly string[];
            readonly user?: string;
            readonly env?: Readonly<Record<string, string>>;
            readonly timeoutSeconds?: number;
        },
        call: Call
    ): Promise<ExecOutcome>;
    /** Begins a build of an image, which is this plugin's. It is forgotten when an hour passes without a piece of its context. */
    buildBegin(
        input: {
            readonly tag: string;
            /** Path in the context; default `Dockerfile`. */
            readonly dockerfile?: string;
            readonly target?: string;
            /** They are in no log: their values are masked in what the build prints. */
            readonly args?: Readonly<Record<string, string>>;
            readonly noCache?: boolean;
            /** Whether its commands have a network; default true. */
            readonly network?: boolean;
            /** The most that one of its commands takes. */
            readonly memoryBytes?: number;
            readonly cpus?: number;
        },
        call: Call
    ): Promise<{ id: string }>;
    /** Adds a piece of the context: a tar archive, which may be compressed, at most 2 GiB in all. */
    buildWrite(
        input: { readonly id: string; readonly chunk: Uint8Array },
        call: Call
    ): Promise<{ bytes: number }>;
    /** Runs a build once: its text, its progress, and at the end the id of the image. @throws ENGINE_REFUSED 42254 with what failed */
    build(input: { readonly id: string }, call: Call): AsyncIterable<BuildEvent>;
    /** Removes an image that this plugin built. What is gone already is no error. @throws IN_USE 40901, STACK_OWNED 40950 */
    removeImage(input: { readonly image: string }, call: Call): Promise<{ removed: boolean }>;
    /** Brings an image before anything is touched, by its tag or by `@sha256:…`. `missing`: only where the engine has none of that name. @throws REGISTRY_FAILED 50250 */
    pull(
        input: { readonly image: string; readonly missing?: boolean },
        call: Call
    ): Promise<{ id: string; digest: string | null }>;
    /**
     * Keeps the content of the volumes of a stack: all, or those of `volumes`, by their keys in the compose file. Stop it before where a moment
     * in between would be no good state.
     */
    snapshot(
        input: { readonly stack: string; readonly volumes?: readonly string[] },
        call: Call
    ): Promise<Snapshot>;
    /** Brings volumes back as they were. Containers that have them are stopped meanwhile, and those that ran run again. @throws NOT_FOUND 40400 */
    restore(
        input: { readonly stack: string; readonly snapshot: string },
        call: Call
    ): Promise<ContainerStack>;
    /** What is gone already is no error. */
    dropSnapshot(
        input: { readonly stack: string; readonly snapshot: string },
        call: Call
    ): Promise<{ dropped: boolean }>;
}
