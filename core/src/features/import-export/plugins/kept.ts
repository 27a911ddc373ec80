/** Plugins of a document that are not installed here: what was decided about them waits, sealed, until they are. */
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { KeptPluginEntity } from '../entities.ts';
import type { MovedPlugin } from '../ports.ts';

export interface KeptPlugins {
    /** By name. */
    all(): readonly MovedPlugin[];
    /** Null when nothing waits for this package. */
    find(name: string, packageName: string): MovedPlugin | null;
    keep(tx: Transaction, plugin: MovedPlugin): Promise<void>;
    /** They were taken over, or given up. */
    forget(name: string): Promise<void>;
    forgetIn(tx: Transaction, name: string): Promise<void>;
}

export interface KeptPluginsOptions {
    readonly db: Database;
    readonly clock: Clock;
    readonly keyring: {
        seal(label: string, plain: string): string;
        open(label: string, sealed: string): string;
    };
}

interface Row {
    readonly name: string;
    readonly package: string;
    readonly version: string;
    readonly enabled: number;
    readonly sealed: string;
}

const label = 'import-export plugins';
const columns = 'name, package, version, enabled, sealed';

export function createKeptPlugins({ db, clock, keyring }: KeptPluginsOptions): KeptPlugins {
    const all = db.prepare<[], Row>(`select ${columns} from kept_plugins order by name`);
    const one = db.prepare<[string, string], Row>(
        `select ${columns} from kept_plugins where name = ? and package = ?`
    );
    const movedOf = ({ sealed, enabled, ...row }: Row): MovedPlugin => ({
        ...row,
        enabled: enabled === 1,
        ...(JSON.parse(keyring.open(label, sealed)) as Pick<MovedPlugin, 'settings' | 'secrets'>)
    });
    const forgetIn: KeptPlugins['forgetIn'] = async (tx, name) => {
        await tx.em.nativeDelete(KeptPluginEntity, { name });
    };
    return {
        all: () => all.all().map(movedOf),
        find(name, packageName) {
            const row = one.get(name, packageName);
            return row === undefined ? null : movedOf(row);
        },
        async keep(tx, { settings, secrets, ...row }) {
            await tx.em.upsert(KeptPluginEntity, {
                ...row,
                sealed: keyring.seal(label, JSON.stringify({ settings, secrets })),
                keptAt: clock.now()
            });
        },
        forget: (name) => db.write((tx) => forgetIn(tx, name)),
        forgetIn
    };
}
