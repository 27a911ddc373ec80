/** What the kernel has: applies the draft as a trial, confirms it or takes it back, and puts it again after a boot. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { isFailure, Mutex } from '@portico/sdk';

import type { Bans } from '../bans/bans.ts';
import type { Draft } from '../draft/draft.ts';
import type { Model } from '../draft/model.ts';
import { fail } from '../errors.ts';
import type { Nft } from '../kernel/nft.ts';
import type { Contents } from '../lists/contents.ts';
import type { Machine } from '../machine.ts';
import { listConnections } from '../reach/sockets.ts';
import { banSets } from '../ruleset/bans.ts';
import {
    absent,
    changeTable,
    type CommandDocument,
    type Present,
    removeTable,
    revertCommands,
    wholeTable
} from '../ruleset/commands.ts';
import { compile, isActive } from '../ruleset/compile.ts';
import type { LiveConnection, Ruleset } from '../ruleset/ruleset.ts';
import type { Ctx } from '../settings.ts';
import { Deadline } from './deadline.ts';
import type { Guard } from './guard.ts';
import type { Outcome, StateStore, Trial } from './state.ts';

/** What the firewall works with. */
export interface FirewallOptions {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly nft: Nft;
    readonly draft: Draft;
    readonly contents: Contents;
    readonly bans: Bans;
    readonly guard: Guard;
    readonly store: StateStore;
    /** Runs after the applied ruleset became another one. */
    onConfirm(): Promise<void>;
}

/** Who applies, and for how long it may be tried. */
export interface ApplyOptions {
    readonly confirmSeconds: number;
    readonly by: string | null;
    /** Says which connections would be refused; such rules are refused unless `acceptLockOut`. */
    readonly lockOut: (model: Model) => Promise<readonly unknown[]>;
    readonly acceptLockOut: boolean;
}

/** A trial as answers have it. */
export interface TrialView {
    readonly trialId: string;
    readonly until: string;
}

const longestLockOutSeconds = 120;
const isBanObject = (name: string): boolean =>
    name.startsWith('bans') || Object.values(banSets).includes(name);

/** The one firewall of the machine. */
export class Firewall {
    readonly #options: FirewallOptions;
    readonly #mutex = new Mutex();
    readonly #deadline: Deadline;

    constructor(options: FirewallOptions) {
        this.#options = options;
        this.#deadline = new Deadline(options, (trial) =>
            this.#mutex.run(async () => {
                if ((await options.store.read()).trial?.id === trial.id) {
                    await this.#finishRevert(trial, 'expired');
                }
            })
        );
    }

    /** The ruleset of a model, with the elements of now. */
    async compile(model: Model, live: readonly LiveConnection[] = []): Promise<Ruleset> {
        const { ctx, contents, machine } = this.#options;
        const elements = await contents.elements(model.sets);
        return compile(model, { now: machine.now(), logDropped: ctx.settings.logDropped, elements, live });
    }

    /** Asks `nft` whether it would take the draft. @throws NFT_REJECTED 42250 */
    async check(model: Model): Promise<void> {
        const { nft } = this.#options;
        await nft.check(withoutElements(await this.compile(model), await nft.present()));
    }

    /** Gives the draft to the kernel, for a trial. @throws TRIAL_PENDING 40952, WOULD_LOCK_OUT 40950, NFT_REJECTED 42250 */
    apply(options: ApplyOptions): Promise<TrialView> {
        return this.#mutex.run(async () => {
            const { store, draft, nft } = this.#options;
            const { trial, applied } = await store.read();
            refusePending(trial);
            const [model, version] = [await draft.model(), await draft.version()];
            const lockOut = await options.lockOut(model);
            if (lockOut.length > 0 && !options.acceptLockOut) {
                throw fail.WOULD_LOCK_OUT({ connections: lockOut });
            }
            const seconds =
                lockOut.length > 0
                    ? Math.min(options.confirmSeconds, longestLockOutSeconds)
                    : options.confirmSeconds;
            const present = await nft.present();
            const next = await this.compile(model, await this.#connections(present));
            const before = applied === null ? null : await this.compile(applied.model);
            await nft.check(withoutElements(next, present));
            const back = await this.#revertCommands(present, before, next);
            const change =
                present === null
                    ? wholeTable([next, await this.#options.bans.ruleset()], false)
                    : changeTable(present, next, {
                          isFinal: false,
                          keepsElements: () => true,
                          isForeign: isBanObject
                      });
            return this.#try({ seconds, by: options.by, version, model }, back, change);
        });
    }

    /** Takes the own table away, for a trial. @throws TRIAL_PENDING 40952 */
    off({ confirmSeconds, by }: Pick<ApplyOptions, 'confirmSeconds' | 'by'>): Promise<TrialView> {
        return this.#mutex.run(async () => {
            const { store, bans, nft } = this.#options;
            const { trial, applied } = await store.read();
            refusePending(trial);
            const rulesets =
                applied === null ? [] : [await this.compile(applied.model, await this.#connections(null))];
            const back =
                (await nft.present()) === null
                    ? removeTable
                    : wholeTable([...rulesets, await bans.ruleset()]);
            return this.#try({ seconds: confirmSeconds, by, version: null, model: null }, back, removeTable);
        });
    }

    /** Keeps what is on trial. @throws NO_TRIAL 40953 */
    confirm(id: string): Promise<void> {
        return this.#mutex.run(async () => {
            const { store, guard } = this.#options;
            const { trial } = await store.read();
            if (trial?.id !== id) {
                throw fail.NO_TRIAL();
            }
            if (!(await guard.claim(id))) {
                await this.#finishRevert(trial, 'expired');
                throw fail.NO_TRIAL();
            }
            await this.#finishConfirm(trial);
        });
    }

    /** Gives back the ruleset of before. @throws NO_TRIAL 40953 */
    revert(id: string): Promise<void> {
        return this.#mutex.run(async () => {
            const { trial } = await this.#options.store.read();
            if (trial?.id !== id) {
                throw fail.NO_TRIAL();
            }
            await this.#finishRevert(trial, 'reverted');
        });
    }

    /** Goes on where the panel ended: a trial, or the ruleset after a boot. */
    start(): Promise<void> {
        return this.#mutex.run(async () => {
            const { ctx, store, guard, nft, machine } = this.#options;
            await nft.sweep();
            const { trial } = await store.read();
            if (trial !== null) {
                const mark = await guard.mark(trial.id);
                if (mark === 'confirmed') {
                    await this.#finishConfirm(trial);
                } else if (mark === 'pending' && trial.until > machine.now()) {
                    await guard.rearm(trial.id, (trial.until - machine.now()) / 1000);
                    this.#deadline.wait(trial);
                } else {
                    await this.#finishRevert(trial, 'expired').catch((error: unknown) => {
                        ctx.log.error('A trial could not be taken back; it is tried again', { error });
                        this.#deadline.wait(trial);
                    });
                }
            }
            await this.#restore();
        });
    }

    /** Ends the trial that runs: a plugin that is disabled keeps no promise. */
    async stop(): Promise<void> {
        const { ctx } = this.#options;
        this.#deadline.clear();
        await this.#mutex.run(async () => {
            const { trial } = await this.#options.store.read();
            if (trial !== null) {
                await this.#finishRevert(trial, 'reverted').catch((error: unknown) => {
                    ctx.log.error('A trial could not be taken back; its guard does it when its time is up', {
                        error
                    });
                });
            }
        });
    }

    /** Takes rules that have expired out of the kernel. */
    async expire(since: number): Promise<void> {
        await this.#mutex.run(async () => {
            const { store, machine, nft } = this.#options;
            const { applied, trial } = await store.read();
            const model = trial?.model ?? applied?.model;
            const now = machine.now();
            if (model === undefined || (trial !== null && trial.model === null)) {
                return;
            }
            const present = model.rules.some((rule) => isActive(rule, since) !== isActive(rule, now))
                ? await nft.present()
                : null;
            if (present !== null) {
                const options = { isFinal: false, keepsElements: () => true, isForeign: isBanObject };
                await nft.apply(changeTable(present, await this.compile(model), options));
                await this.remember();
            }
        });
    }

    /** Whether the own table is not what this plugin made of it. */
    hasDrifted(): Promise<boolean> {
        // A change under way would look like a change by others.
        return this.#mutex.run(async () => {
            const { store, nft } = this.#options;
            const { fingerprint } = await store.read();
            return (await nft.fingerprint()) !== fingerprint;
        });
    }

    /** Records how the table looks now, after a change by this plugin. Where `nft` cannot say it, the table counts as changed by others. */
    async remember(): Promise<void> {
        const { store, nft, ctx } = this.#options;
        try {
            await store.write({ fingerprint: await nft.fingerprint() });
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            ctx.log.warn('The own table could not be read', { reason: error.reason, error: error.message });
        }
    }

    /** Records how the table looks before anything else is done to it. The caller of an apply need not wait for that. */
    #rememberNext(): void {
        void this.#mutex
            .run(() => this.remember())
            .catch((error: unknown) => {
                if (!this.#options.ctx.signal.aborted) {
                    this.#options.ctx.log.warn('The look of the own table was not recorded', { error });
                }
            });
    }

    /** Whether the draft is not what is applied. */
    async differs(): Promise<boolean> {
        const { applied } = await this.#options.store.read();
        return !isDeepStrictEqual(applied?.model ?? null, await this.#options.draft.model());
    }

    /** Connections that the first rules would cut, since the kernel does not follow them yet. */
    async #connections(present: Present | null): Promise<readonly LiveConnection[]> {
        return present?.chains.has('input') === true ? [] : listConnections(this.#options.ctx);
    }

    async #revertCommands(
        present: Present | null,
        before: Ruleset | null,
        next: Ruleset
    ): Promise<CommandDocument> {
        if (present !== null) {
            return revertCommands(present, before, next, isBanObject);
        }
        return before === null ? removeTable : wholeTable([before, await this.#options.bans.ruleset()]);
    }

    /** Records the trial, starts its guard, and only then changes the kernel: dying at any moment leaves a way back. */
    async #try(
        { seconds, ...trial }: Omit<Trial, 'id' | 'until'> & { readonly seconds: number },
        back: CommandDocument,
        change: CommandDocument
    ): Promise<TrialView> {
        const { store, guard, nft, machine } = this.#options;
        const made: Trial = { id: randomUUID(), until: machine.now() + seconds * 1000, ...trial };
        await store.write({ trial: made });
        try {
            await guard.arm(made.id, seconds, back);
            await nft.apply(change);
        } catch (error) {
            await guard.disarm(made.id).catch(() => undefined);
            await store.write({ trial: null });
            throw error;
        }
        this.#deadline.wait(made);
        this.#rememberNext();
        return { trialId: made.id, until: new Date(made.until).toISOString() };
    }

    async #finishConfirm(trial: Trial): Promise<void> {
        const { store, guard, machine, nft } = this.#options;
        this.#deadline.clear();
        const applied =
            trial.model === null || trial.version === null
                ? null
                : { version: trial.version, model: trial.model };
        await store.write(
            { applied, trial: null, lastOutcome: 'confirmed', isOff: applied === null },
            { trial, at: machine.now() }
        );
        await guard.disarm(trial.id);
        await this.#tidy(applied === null ? null : await this.compile(applied.model), await nft.present());
        await this.remember();
        await this.#options.onConfirm();
    }

    async #finishRevert(trial: Trial, outcome: Outcome): Promise<void> {
        const { store, guard, machine, nft, bans } = this.#options;
        this.#deadline.clear();
        if ((await guard.mark(trial.id)) !== 'reverted') {
            const back = await guard.revertCommands(trial.id);
            // Without its files the machine was started anew, and nothing of the trial is left.
            if (back !== null) {
                await nft.apply(back);
            }
        }
        await store.write({ trial: null, lastOutcome: outcome }, { trial, at: machine.now() });
        await guard.disarm(trial.id);
        await bans.resync();
        await this.remember();
    }

    /** Removes sets and counters that the way back no longer needs. */
    async #tidy(ruleset: Ruleset | null, present: Present | null): Promise<void> {
        if (ruleset === null || present === null) {
            return;
        }
        await this.#options.nft.apply(
            changeTable(present, ruleset, {
                isFinal: true,
                keepsElements: () => true,
                isForeign: isBanObject
            })
        );
    }

    /** After a boot or a flush the table is gone: the applied ruleset is set again. A table that differs is left alone. */
    async #restore(): Promise<void> {
        const { store, nft, bans, ctx } = this.#options;
        const { applied, trial, isOff } = await store.read();
        if (trial !== null || isOff) {
            return;
        }
        try {
            if (applied !== null && (await nft.present()) === null) {
                const ruleset = await this.compile(applied.model, await this.#connections(null));
                await nft.apply(wholeTable([ruleset, await bans.ruleset()]));
                await this.remember();
                ctx.log.info('The rules were set again: the table was gone');
            } else {
                await bans.resync();
            }
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            ctx.log.error('The rules could not be set again', { reason: error.reason, error: error.message });
        }
    }
}

function refusePending(trial: Trial | null): void {
    if (trial !== null) {
        throw fail.TRIAL_PENDING();
    }
}

/** What `nft` is to check: rules, chains and sets. Elements were read and written by this plugin, and would double the time. */
function withoutElements(ruleset: Ruleset, present: Present | null): CommandDocument {
    const sets = ruleset.sets.map((set) => ({ ...set, elements: [] }));
    return changeTable(
        present ?? absent,
        { ...ruleset, sets },
        { isFinal: false, keepsElements: () => true, isForeign: isBanObject }
    );
}
