/** Plugins of a document that are not installed here. Their settings and decisions wait, sealed, until they are installed. */
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Statement, Transaction } from '../../../platform/database/database.ts';
import { KeptPluginEntity } from '../entities.ts';
import type { MovedPlugin } from '../ports.ts';

/** What {@link KeptPlugins} works with. */
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

/** The table of plugins that wait to be installed, sealed. */
export class KeptPlugins {
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #keyring: {
        seal(label: string, plain: string): string;
        open(label: string, sealed: string): string;
    };
    readonly #all: Statement<[], Row>;
    readonly #one: Statement<[string, string], Row>;

    constructor({ db, clock, keyring }: KeptPluginsOptions) {
        this.#db = db;
        this.#clock = clock;
        this.#keyring = keyring;
        this.#all = db.prepare<[], Row>(`select ${columns} from kept_plugins order by name`);
        this.#one = db.prepare<[string, string], Row>(
            `select ${columns} from kept_plugins where name = ? and package = ?`
        );
    }

    /** By name. */
    all(): readonly MovedPlugin[] {
        return this.#all.all().map((argument) => this.#movedOf(argument));
    }

    /** Null when nothing waits for this package. */
    find(name: string, packageName: string): MovedPlugin | null {
        const row = this.#one.get(name, packageName);
        return row === undefined ? null : this.#movedOf(row);
    }

    async keep(tx: Transaction, { settings, secrets, ...row }: MovedPlugin): Promise<void> {
        await tx.em.upsert(KeptPluginEntity, {
            ...row,
            sealed: this.#keyring.seal(label, JSON.stringify({ settings, secrets })),
            keptAt: this.#clock.now()
        });
    }

    /** Forgets what waits: it was taken over, or given up. */
    forget(name: string): Promise<void> {
        return this.#db.write((tx) => this.forgetIn(tx, name));
    }

    async forgetIn(tx: Transaction, name: string): Promise<void> {
        await tx.em.nativeDelete(KeptPluginEntity, { name });
    }

    #movedOf({ sealed, enabled, ...row }: Row): MovedPlugin {
        return {
            ...row,
            enabled: enabled === 1,
            ...(JSON.parse(this.#keyring.open(label, sealed)) as Pick<MovedPlugin, 'settings' | 'secrets'>)
        };
    }
}
