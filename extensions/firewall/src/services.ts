/** The services of one generation of the plugin. */
import { Bans } from './bans/bans.ts';
import { LoginWatch } from './bans/logins.ts';
import { Documents } from './draft/documents.ts';
import { Draft } from './draft/draft.ts';
import type { Model } from './draft/model.ts';
import { DraftObjects } from './draft/objects/objects.ts';
import { Evaluator } from './evaluate/evaluator.ts';
import { Foreign } from './foreign/foreign.ts';
import { Intrusion } from './intrusion.ts';
import { Nft } from './kernel/nft.ts';
import { Contents } from './lists/contents.ts';
import { Lists } from './lists/lists.ts';
import type { Machine } from './machine.ts';
import { Persistence } from './persistence.ts';
import { rulesetText } from './ruleset/text.ts';
import type { Ctx } from './settings.ts';
import { Firewall } from './trial/firewall.ts';
import { Guard } from './trial/guard.ts';
import { StateStore } from './trial/state.ts';

/** What routes, hooks and health checks work with. */
export interface Services {
    readonly machine: Machine;
    readonly nft: Nft;
    readonly draft: Draft;
    readonly objects: DraftObjects;
    readonly contents: Contents;
    readonly lists: Lists;
    readonly documents: Documents;
    readonly foreign: Foreign;
    readonly intrusion: Intrusion;
    readonly persistence: Persistence;
    readonly bans: Bans;
    readonly logins: LoginWatch;
    readonly store: StateStore;
    readonly firewall: Firewall;
    /** An evaluator of a model with the sets and bans of now. */
    evaluator(model: Model): Promise<Evaluator>;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx, machine: Machine): Services {
    const nft = new Nft(ctx);
    const draft = new Draft(ctx);
    const store = new StateStore(ctx);
    const contents = new Contents(ctx, () => machine.now());
    const bans: Bans = new Bans({
        ctx,
        machine,
        nft,
        isInForce: async () => {
            const { trial, isOff } = await store.read();
            return trial === null ? !isOff : trial.model !== null;
        },
        onChange: () => persistence.invalidate(),
        onTableChange: () => firewall.remember()
    });
    const firewall = new Firewall({
        ctx,
        machine,
        nft,
        draft,
        contents,
        bans,
        guard: new Guard(ctx),
        store,
        onConfirm: () => persistence.write()
    });
    const persistence: Persistence = new Persistence(ctx, store, async () => {
        const { applied } = await store.read();
        return applied === null
            ? null
            : rulesetText([await firewall.compile(applied.model), await bans.ruleset(true)]);
    });
    const lists = new Lists({
        ctx,
        draft,
        contents,
        nft,
        store,
        now: () => machine.now(),
        limitMs: () => machine.listMs,
        onChange: () => persistence.invalidate()
    });
    return {
        machine,
        nft,
        draft,
        objects: new DraftObjects(ctx, draft),
        contents,
        lists,
        documents: new Documents(ctx, draft, contents, lists),
        foreign: new Foreign(ctx, nft),
        intrusion: new Intrusion(ctx, bans),
        persistence,
        bans,
        logins: new LoginWatch(ctx, machine, bans),
        store,
        firewall,
        evaluator: async (model) =>
            new Evaluator({
                model,
                now: machine.now(),
                intervals: await contents.intervals(model.sets),
                ban: await bans.finder()
            })
    };
}
