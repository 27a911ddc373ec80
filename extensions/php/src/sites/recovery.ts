/** What a start of the plugin takes up again: sites that were being made or removed, and what a boot of the machine took away. */
import type { Configurations } from '../config/configurations.ts';
import type { Masters } from '../fpm/masters.ts';
import type { Ctx } from '../settings.ts';
import type { Slots } from '../switching/slots.ts';
import type { Switches } from '../switching/switches.ts';
import type { Releases } from '../versions/releases.ts';
import type { Creation } from './creation/creation.ts';
import { takeBackDatabase } from './data/database.ts';
import type { Accounts } from './machine/accounts.ts';
import type { Site } from './site.ts';
import type { Store } from './store.ts';

/** What the recovery of sites after a start works with. */
export interface RecoveryParts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly releases: Releases;
    readonly accounts: Accounts;
    readonly configurations: Configurations;
    readonly masters: Masters;
    readonly creation: Creation;
    readonly slots: Slots;
    readonly switches: Switches;
}

const atOnce = 8;

/** Brings all sites to where the database says that they are. A site that cannot be brought there keeps no other one from it. */
export async function recoverSites(parts: RecoveryParts): Promise<void> {
    const waiting = [...(await parts.store.all())];
    const work = async (): Promise<void> => {
        for (let site = waiting.shift(); site !== undefined; site = waiting.shift()) {
            await recover(site, parts).catch((error: unknown) =>
                parts.ctx.log.error(`The site ${site?.name ?? ''} could not be brought back`, {
                    error: String(error)
                })
            );
        }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
}

async function recover(
    site: Site,
    { ctx, accounts, configurations, creation, masters, releases, slots, switches }: RecoveryParts
) {
    if (site.phase !== 'ready') {
        ctx.log.warn(
            `The site ${site.name} was being ${site.phase === 'creating' ? 'made' : 'removed'}: it is taken away`
        );
        if (site.phase === 'creating' && site.database !== null) {
            await takeBackDatabase(ctx, site.name, site.database, null);
        }
        await creation.takeBack(site);
        return;
    }
    await switches.recover(site);
    const { slot, revision } = site;
    const account = await accounts.own(site.account, site.token);
    const release = await releases.get(site.release);
    const target = { site, slot, release, revision, account };
    const isPlaced = await configurations.isPlaced(target);
    if (!isPlaced && (await masters.info(site, slot))?.state === 'running') {
        await slots.replace(site, site, {});
        return;
    }
    if (!isPlaced) {
        await configurations.place(target);
    }
    const { state } = await masters.put(site, slot, release);
    await slots.connect(site);
    if (!isPlaced && state === 'failed') {
        await masters.restart(site, slot);
    }
}
