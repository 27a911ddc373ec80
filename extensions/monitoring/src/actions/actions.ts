/** Actions: a rule calls a route of the panel when an alert begins, in the name of the person who authorized it. */
import { isFailure } from '@portico/sdk';

import type { AlertJournal } from '../alerts/journal.ts';
import type { AlertRow, RuleRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import { ActionEntity, type ActionRow } from './entities.ts';
import type { RuleAction } from './rule-action.ts';

const dayMs = 86_400_000;
/** Actions of a rule that are kept. */
const mostKept = 1_000;
/** The mandate was revoked or has expired, or was never given. */
const notAuthorized = 40103;
const longestMs = 10 * 60_000;

/** How an action ended. `limited`: it was not called, since one runs, or too many did. */
export type ActionState = 'done' | 'failed' | 'limited';

/** Calls actions: one at a time for each rule, and at most once for an alert. */
export class RuleActions {
    readonly #ctx: Ctx;
    readonly #journal: AlertJournal;
    readonly #now: () => number;
    readonly #running = new Map<number, Promise<void>>();
    readonly #end = new AbortController();

    constructor(ctx: Ctx, journal: AlertJournal, now: () => number) {
        this.#ctx = ctx;
        this.#journal = journal;
        this.#now = now;
    }

    /** Begins the actions that are due. It does not wait for their ends. @param rule - finds a rule as it is now */
    begin(rule: (id: number) => RuleRow | undefined): void {
        for (const alert of this.#journal.firing().filter((row) => row.actionDue && row.silencedBy == null)) {
            const row = rule(alert.rule);
            this.#journal.clearAction(alert);
            if (row?.action == null) {
                continue;
            }
            if (this.#running.has(row.id)) {
                this.#track(
                    alert.rule,
                    this.#record(alert, 'limited', null).then(() => undefined)
                );
                continue;
            }
            this.#track(row.id, this.#run(alert, row, row.action));
        }
    }

    /** Ends the calls under way, and resolves when they are over. */
    async stop(): Promise<void> {
        this.#end.abort();
        await Promise.all(this.#running.values());
    }

    /** The actions of a rule, newest first. */
    async list(rule: number, before: number | null, limit: number): Promise<readonly ActionRow[]> {
        return this.#ctx.db.read((em) =>
            em.find(
                ActionEntity,
                { rule, ...(before === null ? {} : { id: { $lt: before } }) },
                { orderBy: { id: 'desc' }, limit }
            )
        );
    }

    #track(rule: number, work: Promise<void>): void {
        const before = this.#running.get(rule);
        const all = Promise.all([before, work])
            .catch((error: unknown) =>
                this.#ctx.log.warn('An action could not be recorded', { rule, error: String(error) })
            )
            .then(() => {
                if (this.#running.get(rule) === all) {
                    this.#running.delete(rule);
                }
            });
        this.#running.set(rule, all);
    }

    async #run(alert: AlertRow, rule: RuleRow, action: RuleAction): Promise<void> {
        if (await this.#isLimited(rule.id, action)) {
            await this.#record(alert, 'limited', null);
            return;
        }
        // Written before the call: after a crash it says failed, and is not called a second time.
        const id = await this.#record(alert, 'failed', null);
        const code = rule.mandate == null ? notAuthorized : await this.#call(rule.mandate, action);
        await this.#conclude(id, code === 0 ? 'done' : 'failed', code);
        if (code !== 0) {
            this.#ctx.log.warn('An action failed', {
                rule: rule.id,
                alert: alert.id,
                route: action.route,
                code
            });
        }
    }

    /** Resolves with the code of the answer; null when the call was ended. */
    async #call(mandate: number, { route, params, query, payload }: RuleAction): Promise<number | null> {
        const signal = AbortSignal.any([this.#end.signal, AbortSignal.timeout(longestMs)]);
        try {
            const { code } = await this.#ctx.mandates.use(mandate, (actor) =>
                this.#ctx.api.call(actor, {
                    id: route,
                    params,
                    query,
                    ...(payload === null ? {} : { payload }),
                    signal
                })
            );
            return code;
        } catch (error) {
            return isFailure(error) ? error.code : null;
        }
    }

    async #isLimited(rule: number, { cooldownSeconds, perDay }: RuleAction): Promise<boolean> {
        const now = this.#now();
        const rows = await this.#ctx.db.read((em) =>
            em.find(ActionEntity, {
                rule,
                state: { $ne: 'limited' },
                at: { $gt: now - Math.max(dayMs, cooldownSeconds * 1000) }
            })
        );
        return (
            rows.some(({ at }) => at > now - cooldownSeconds * 1000) ||
            rows.filter(({ at }) => at > now - dayMs).length >= perDay
        );
    }

    /** Records an action with its alert, and resolves with its number; null where nothing can be written, as when the disk is full. */
    async #record(alert: AlertRow, state: ActionState, code: number | null): Promise<number | null> {
        try {
            return await this.#ctx.db.write(async (em) => {
                await em.execute('update alerts set action_due = 0 where id = ?', [alert.id], 'run');
                const id = Number(
                    await em.insert(ActionEntity, {
                        rule: alert.rule,
                        alert: alert.id,
                        at: this.#now(),
                        state,
                        code
                    })
                );
                await em.execute(
                    'delete from actions where rule = ? and id <= (select id from actions where rule = ? order by id desc limit 1 offset ?)',
                    [alert.rule, alert.rule, mostKept],
                    'run'
                );
                return id;
            });
        } catch (error) {
            this.#ctx.log.warn('An action could not be recorded', { alert: alert.id, error: String(error) });
            return null;
        }
    }

    async #conclude(id: number | null, state: ActionState, code: number | null): Promise<void> {
        if (id !== null) {
            await this.#ctx.db.write((em) => em.nativeUpdate(ActionEntity, { id }, { state, code }));
        }
    }
}
