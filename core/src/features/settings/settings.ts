/** The panel's settings: read from memory, written all or nothing. Settings of the engine are stored only if the engine takes them. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { isDeepStrictEqual } from 'node:util';

import { type Reply, reply } from '@portico/sdk';

import type { Change, Draft, Outcome, Plan, SettingsSource } from '../../engine/change.ts';
import type { EngineSettings } from '../../engine/site.ts';
import { parseRanges, type Range } from '../../platform/address/ip.ts';
import { authorOf, type Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { readRow } from '../../platform/database/rows.ts';
import { Writer } from '../../platform/database/writer.ts';
import { fail } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import type { Logger } from '../../platform/log/log.ts';
import { clientAddress } from './addresses/client-address.ts';
import { type AddressCandidate, addressCandidates } from './addresses/server-address.ts';
import {
    definitionOf,
    type EngineKey,
    engineKeys,
    isEngineKey,
    isSettingKey,
    type SettingKey,
    settingKeys,
    type SettingValues
} from './definitions.ts';
import { SettingEntity } from './entities.ts';
import { fixedBy, SettingsState, type SettingView, type Stored } from './state.ts';
import { textOf, valueOf } from './stored-value.ts';
import { checkChanges, checkPorts } from './validation.ts';

/** The queue of the engine, which settings get once the engine exists. */
export interface EngineQueue {
    change<T>(change: Change<T>): Promise<{ readonly value: T; readonly outcome: Outcome }>;
}

/** The addresses that the machine seems to have. */
export interface DetectedAddresses {
    /** The settings `server.ipv4` and `server.ipv6` as they are now. */
    readonly ipv4: string | null;
    readonly ipv6: string | null;
    readonly candidates: readonly AddressCandidate[];
}

/** Settings of an import, which are stored together with other changes. */
export interface IncomingSettings {
    /** Keys whose stored value would change now. */
    readonly changed: ReadonlySet<SettingKey>;
    /** Keys that the environment decides. */
    readonly fixed: ReadonlySet<SettingKey>;
    /** The engine's settings after the import. @throws VALIDATION_FAILED 40001 when they contradict one another */
    engine(settings: EngineSettings): EngineSettings;
    /** Writes the settings in the transaction of the import. */
    store(tx: Transaction): Promise<void>;
}

/** What {@link Settings} needs. */
export interface SettingsOptions {
    readonly db: Database;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly config: Config;
    readonly clock: Clock;
    readonly log: Logger;
    /** Default: the machine's own. */
    readonly interfaces?: () => NodeJS.Dict<readonly NetworkInterfaceInfo[]>;
}

type Changes = ReadonlyMap<SettingKey, unknown>;

const putSql =
    'insert into settings (key, value, version, updated_at) values (?, ?, ?, ?) on conflict (key) do update set value = excluded.value, version = excluded.version, updated_at = excluded.updated_at';

/** Reads, changes and announces the panel's settings. */
export class Settings implements SettingsSource {
    readonly #options: SettingsOptions;
    /** Runs listeners outside the transaction that they are told of. */
    readonly #outside = AsyncLocalStorage.snapshot();
    readonly #listeners = new Set<(keys: readonly SettingKey[]) => void>();
    #state: SettingsState;
    /** The state inside the open transaction. */
    #open: { readonly tx: Transaction; state: SettingsState } | null = null;
    #engine: EngineQueue | null = null;
    readonly #writer = new Writer();
    #proxies: readonly Range[];

    private constructor(options: SettingsOptions, state: SettingsState) {
        this.#options = options;
        this.#state = state;
        this.#proxies = parseRanges(state.get('panel.trustedProxies'));
    }

    /** Loads the stored settings. @throws Error when a secret cannot be opened with the key of the data folder */
    static async load(options: SettingsOptions): Promise<Settings> {
        const rows = await options.db.read((em) => em.find(SettingEntity, {}));
        const stored = new Map<SettingKey, Stored>();
        for (const { key, value, version } of rows) {
            if (isSettingKey(key)) {
                stored.set(key, {
                    value: readRow('settings', key, () => valueOf(key, value, options.keyring)),
                    version
                });
            } else {
                options.log.warn('A stored setting is not known to this version', { key });
            }
        }
        const version = rows.reduce((sum, row) => sum + row.version, 0);
        return new Settings(options, new SettingsState(stored, fixedBy(options.config), version));
    }

    /** The value of a setting as of the last commit. */
    get<K extends SettingKey>(key: K): SettingValues[K] {
        return this.#state.get(key);
    }

    engine(): EngineSettings {
        return engineSettings(this.#state);
    }

    autoReload(): boolean {
        return this.#state.get('engine.autoReload');
    }

    driftRepair(): boolean {
        return this.#state.get('engine.driftRepair');
    }

    fixed(): Partial<EngineSettings> {
        return Object.fromEntries(
            settingKeys
                .filter(isEngineKey)
                .filter((key) => this.#state.isFixed(key))
                .map((key) => [engineKeys[key], this.#state.get(key)])
        );
    }

    async write(tx: Transaction, settings: EngineSettings): Promise<void> {
        const state = this.#stateIn(tx);
        const changed = settingKeys
            .filter(isEngineKey)
            .filter(
                (key) => !state.isFixed(key) && !isDeepStrictEqual(state.get(key), settings[engineKeys[key]])
            );
        await this.#store(tx, new Map(changed.map((key) => [key, settings[engineKeys[key]] ?? undefined])));
    }

    /** All settings. Their version is that of the whole list. */
    list(): Reply<readonly SettingView[]> {
        return listOf(this.#state);
    }

    /** @throws NOT_FOUND 40400 */
    read(key: string): SettingView {
        return this.#state.view(known(key));
    }

    /**
     * Writes all or nothing; null resets a setting to its default.
     *
     * @throws VALIDATION_FAILED 40001, STEP_UP_REQUIRED 40301, VERSION_STALE 41200; ENGINE_REJECTED 42200 or ENGINE_UNAVAILABLE 50301, and nothing is stored
     */
    async update(
        changes: Readonly<Record<string, unknown>>,
        call: Call
    ): Promise<Reply<readonly SettingView[]>> {
        return this.#change(changes, call, (state) => checkMatch(call, state.tag), listOf, null);
    }

    /**
     * Writes one setting; `undefined` keeps it. `version` is compared like If-Match.
     *
     * @throws NOT_FOUND 40400, and as `update`
     */
    async updateOne(key: string, value: unknown, call: Call, version?: number): Promise<Reply<SettingView>> {
        const name = known(key);
        const checkVersion = (state: SettingsState): void => {
            const now = state.versionOf(name);
            if (version !== undefined && version !== now) {
                throw fail.VERSION_STALE({ version: now });
            }
            checkMatch(call, String(now));
        };
        return this.#change(
            value === undefined ? {} : { [name]: value },
            call,
            checkVersion,
            (state) => reply.with(state.view(name), {}),
            name
        );
    }

    /** Stores a public address of each family, found on this machine's interfaces; private ones are only candidates. */
    async detect(call: Call): Promise<DetectedAddresses> {
        const candidates = addressCandidates((this.#options.interfaces ?? networkInterfaces)());
        const found = (family: string): string | undefined =>
            candidates.find((each) => each.public && each.family === family)?.address;
        const [ipv4, ipv6] = [found('ipv4'), found('ipv6')];
        const changes = {
            ...(ipv4 === undefined ? {} : { 'server.ipv4': ipv4 }),
            ...(ipv6 === undefined ? {} : { 'server.ipv6': ipv6 })
        };
        const { data } = await this.#change(
            changes,
            call,
            () => undefined,
            (state) =>
                reply.with(
                    { ipv4: state.get('server.ipv4'), ipv6: state.get('server.ipv6'), candidates },
                    {}
                ),
            null
        );
        return data;
    }

    /** Calls back after a commit, in an async context of its own. Returns how to stop. */
    onChange(listener: (keys: readonly SettingKey[]) => void): () => void {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
    }

    /** From now on, changes of engine settings go through the queue of the engine. */
    attach(engine: EngineQueue): void {
        this.#engine = engine;
    }

    /**
     * Prepares settings of an import. Settings that the environment decides are left as they are.
     *
     * @throws VALIDATION_FAILED 40001
     */
    incoming(wanted: Readonly<Record<string, unknown>>): IncomingSettings {
        const fixed = new Set(
            Object.keys(wanted)
                .filter(isSettingKey)
                .filter((key) => this.#state.isFixed(key))
        );
        const changes = checkChanges(
            Object.fromEntries(Object.entries(wanted).filter(([key]) => !fixed.has(key as SettingKey))),
            this.#state
        );
        return {
            changed: new Set(differing(changes, this.#state).keys()),
            fixed,
            engine(settings) {
                const after = planned(settings, changes);
                checkPorts(after);
                return after;
            },
            store: async (tx) => void (await this.#store(tx, differing(changes, this.#stateIn(tx))))
        };
    }

    /** The address of the client behind trusted proxies. */
    clientAddress(peer: string, forwardedFor: string | undefined): string {
        return clientAddress(this.#proxies, peer, forwardedFor);
    }

    async #change<T>(
        wanted: Readonly<Record<string, unknown>>,
        call: Call,
        checkVersion: (state: SettingsState) => void,
        answer: (state: SettingsState) => Reply<T>,
        one: SettingKey | null
    ): Promise<Reply<T>> {
        const changes = checkChanges(wanted, this.#state);
        requireFreshFor(changes, this.#state, call);
        checkVersion(this.#state);
        const commit = async (
            tx: Transaction,
            headers: Readonly<Record<string, string>>
        ): Promise<Reply<T>> => {
            const before = this.#stateIn(tx);
            checkVersion(before);
            const real = differing(changes, before);
            if ([...real.keys()].some(isEngineKey)) {
                checkPorts(engineSettings(before.with(real)));
            }
            const after = await this.#store(tx, real);
            const made = answer(after);
            const values = (state: SettingsState): object =>
                Object.fromEntries([...real.keys()].map((key) => [key, state.get(key)]));
            return call.complete(tx, {
                reply: { ...made, headers: { ...made.headers, ...headers } },
                action: 'update',
                resource: 'settings',
                resourceId: one ?? (real.size === 1 ? ([...real.keys()][0] ?? null) : null),
                before: values(before),
                after: values(after)
            });
        };
        const engine = this.#engine;
        if (engine === null || ![...changes.keys()].some(isEngineKey)) {
            return this.#options.db.write((tx) => commit(tx, {}));
        }
        const { value } = await engine.change({
            by: authorOf(call),
            plan: (draft: Draft): Plan => {
                const settings = planned(draft.settings, changes);
                checkPorts(settings);
                return { settings };
            },
            commit: (tx, outcome) => commit(tx, { 'x-engine-reload': String(outcome.reloaded) })
        });
        return value;
    }

    #stateIn(tx: Transaction): SettingsState {
        return this.#open?.tx === tx ? this.#open.state : this.#state;
    }

    /** Writes rows in the transaction; the state in memory follows after the commit. */
    async #store(tx: Transaction, changes: Changes): Promise<SettingsState> {
        const before = this.#stateIn(tx);
        const after = before.with(changes);
        const { keyring, clock } = this.#options;
        const put = await this.#writer.statement(tx, putSql);
        for (const [key, value] of changes) {
            put.run(key, textOf(key, value, keyring), after.versionOf(key), clock.now());
        }
        this.#open = { tx, state: after };
        tx.afterCommit(() => this.#follow(after, [...changes.keys()]));
        tx.afterRollback(() => {
            this.#open = null;
        });
        return after;
    }

    #follow(state: SettingsState, keys: readonly SettingKey[]): void {
        this.#open = null;
        this.#state = state;
        this.#proxies = parseRanges(state.get('panel.trustedProxies'));
        if (keys.length > 0) {
            this.#outside(() => setImmediate(() => this.#tell(keys)));
        }
    }

    #tell(keys: readonly SettingKey[]): void {
        for (const listener of this.#listeners) {
            try {
                listener(keys);
            } catch (error) {
                this.#options.log.error('A listener of settings failed', { error });
            }
        }
    }
}

/** The changes that make a difference to what is stored. */
function differing(changes: Changes, state: SettingsState): Changes {
    return new Map([...changes].filter(([key, value]) => !isDeepStrictEqual(state.stored(key), value)));
}

/** @throws STEP_UP_REQUIRED 40301 for settings that need a fresh session */
function requireFreshFor(changes: Changes, state: SettingsState, { actor }: Call): void {
    const differs = ([key, value]: readonly [SettingKey, unknown]): boolean =>
        !isDeepStrictEqual(state.get(key), value ?? definitionOf(key).default);
    if (!actor.fresh && [...changes].some((each) => definitionOf(each[0]).stepUp && differs(each))) {
        throw fail.STEP_UP_REQUIRED();
    }
}

/** @throws VERSION_STALE 41200 */
function checkMatch({ ifMatch }: Call, version: string): void {
    if (ifMatch !== null && ifMatch !== '*' && ifMatch !== version) {
        throw fail.VERSION_STALE({ version: /^\d+$/.test(version) ? Number(version) : version });
    }
}

/** @throws NOT_FOUND 40400 */
function known(key: string): SettingKey {
    if (!isSettingKey(key)) {
        throw fail.NOT_FOUND();
    }
    return key;
}

function listOf(state: SettingsState): Reply<readonly SettingView[]> {
    return reply.with(state.views(), { version: state.tag });
}

function engineSettings(state: SettingsState): EngineSettings {
    return planned({} as EngineSettings, new Map(settingKeys.map((key) => [key, state.get(key)])));
}

function planned(settings: EngineSettings, changes: Changes): EngineSettings {
    const named = [...changes].filter((change): change is [EngineKey, unknown] => isEngineKey(change[0]));
    return {
        ...settings,
        ...Object.fromEntries(
            named.map(([key, value]) => [engineKeys[key], value ?? definitionOf(key).default])
        )
    };
}
