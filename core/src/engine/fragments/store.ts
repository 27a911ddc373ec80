import type { Database, Transaction } from '../../platform/database/database.ts';
import { EngineFragmentEntity } from '../entities.ts';
import type { Sealer } from '../revisions/revisions.ts';
import type { EngineFragments, PluginFragments } from '../site.ts';

const label = 'engine-fragments';

/** Fragments in the database. They are sealed, since the key of a service may be in them. */
export class FragmentStore {
    readonly #rows: ReturnType<typeof prepareRows>;
    readonly #sealer: Sealer;

    constructor(db: Database, sealer: Sealer) {
        this.#rows = prepareRows(db);
        this.#sealer = sealer;
    }

    load(): EngineFragments {
        return Object.fromEntries(
            this.#rows
                .all()
                .map(({ plugin, fragments }) => [
                    plugin,
                    JSON.parse(this.#sealer.open(label, fragments)) as PluginFragments
                ])
        );
    }

    /** @param fragments - null removes */
    async write(tx: Transaction, plugin: string, fragments: PluginFragments | null): Promise<void> {
        if (fragments === null) {
            await tx.em.nativeDelete(EngineFragmentEntity, { plugin });
        } else {
            await tx.em.upsert(
                EngineFragmentEntity,
                { plugin, fragments: this.#sealer.seal(label, JSON.stringify(fragments)) },
                { onConflictFields: ['plugin'], disableIdentityMap: true }
            );
        }
    }
}

const prepareRows = (db: Database) =>
    db.prepare<[], { plugin: string; fragments: string }>(
        'select plugin, fragments from engine_fragment order by plugin'
    );
