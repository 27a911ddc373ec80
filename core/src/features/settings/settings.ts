/** The panel's settings: read from memory, written all or nothing, and what the engine is configured by only together with the engine. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { BlockList } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { isDeepStrictEqual } from 'node:util';

import { type Reply, reply } from '@portico/sdk';

import type { Change, Draft, Outcome, Plan, SettingsSource } from '../../engine/change.ts';
import type { EngineSettings } from '../../engine/site.ts';
import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keyring.ts';
import type { Logger } from '../../platform/log.ts';
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
import { clientAddress, proxyList } from './proxies.ts';
import { type AddressCandidate, addressCandidates } from './server-address.ts';
import { fixedBy, SettingsState, type SettingView, type Stored } from './state.ts';
import { checkChanges, checkPorts } from './validation.ts';

/** The engine as settings need it; handed over when it exists. */
export interface EngineQueue {
    change<T>(change: Change<T>): Promise<{ readonly value: T; readonly outcome: Outcome }>;
}

export interface DetectedAddresses {
    /** The settings `server.ipv4` and `server.ipv6` as they are now. */
    readonly ipv4: string | null;
    readonly ipv6: string | null;
    readonly candidates: readonly AddressCandidate[];
}

export interface Settings extends SettingsSource {
    get<K extends SettingKey>(key: K): SettingValues[K];
    list(): Reply<readonly SettingView[]>;
    /** @throws NOT_FOUND 40400 */
    read(key: string): SettingView;
    /**
     * Writes all or nothing; null puts a setting back to its default.
     * @throws VALIDATION_FAILED 40001; VERSION_STALE 41200; ENGINE_REJECTED 42200 or ENGINE_UNAVAILABLE 50301, and nothing is stored
     */
    update(changes: Readonly<Record<string, unknown>>, call: Call): Promise<Reply<readonly SettingView[]>>;
    /** One setting; `undefined` keeps it. `version` is held against the setting's as If-Match is. @throws NOT_FOUND 40400, and as `update` */
    updateOne(key: string, value: unknown, call: Call, version?: number): Promise<Reply<SettingView>>;
    /** Looks at this machine's own interfaces and stores a public address of each family; a private one is only a candidate. */
    detect(call: Call): Promise<DetectedAddresses>;
    /** Calls back after a commit, in an async context of its own. Returns how to stop. */
    onChange(listener: (keys: readonly SettingKey[]) => void): () => void;
    /** From now on what the engine is configured by goes through its queue. */
    attach(engine: EngineQueue): void;
    /**
     * Writes that arrive with others: what they change, what the engine's settings become, and how they are stored in the transaction.
     * What the environment decides is left as it is.
     * @throws VALIDATION_FAILED 40001
     */
    incoming(wanted: Readonly<Record<string, unknown>>): IncomingSettings;
    /** The client behind trusted proxies. */
    clientAddress(peer: string, forwardedFor: string | undefined): string;
}

/** Settings on their way in, with changes of others. */
export interface IncomingSettings {
    /** Keys whose stored value becomes another one, as of now. */
    readonly changed: ReadonlySet<SettingKey>;
    /** Keys that the environment decides. */
    readonly fixed: ReadonlySet<SettingKey>;
    /** @throws VALIDATION_FAILED 40001 where the whole would not hold together */
    engine(settings: EngineSettings): EngineSettings;
    store(tx: Transaction): Promise<void>;
}

export interface SettingsOptions {
    readonly db: Database;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly config: Config;
    readonly clock: Clock;
    readonly log: Logger;
    /** Default: those of this machine. */
    readonly interfaces?: () => NodeJS.Dict<readonly NetworkInterfaceInfo[]>;
}

const label = 'settings';

/** Loads what is stored. @throws Error when a secret cannot be opened with the data folder's key */
export async function createSettings(options: SettingsOptions): Promise<Settings> {
    const rows = await options.db.read((em) => em.find(SettingEntity, {}));
    const stored = new Map<SettingKey, Stored>();
    for (const { key, value, version } of rows) {
        if (isSettingKey(key)) {
            stored.set(key, {
                value:
                    value === null || value === undefined
                        ? undefined
                        : JSON.parse(definitionOf(key).secret ? options.keyring.open(label, value) : value),
                version
            });
        } else {
            options.log.warn('A stored setting is not known to this version', { key });
        }
    }
    return new Service(
        options,
        new SettingsState(
            stored,
            fixedBy(options.config),
            rows.reduce((sum, { version }) => sum + version, 0)
        )
    );
}

type Changes = ReadonlyMap<SettingKey, unknown>;

class Service implements Settings {
    readonly #options: SettingsOptions;
    /** Listeners must not believe that they are inside of the transaction that they hear of. */
    readonly #outside = AsyncLocalStorage.snapshot();
    readonly #listeners = new Set<(keys: readonly SettingKey[]) => void>();
    #state: SettingsState;
    /** What the open transaction has made of the state. */
    #open: { readonly tx: Transaction; state: SettingsState } | null = null;
    #engine: EngineQueue | null = null;
    #proxies: BlockList;

    constructor(options: SettingsOptions, state: SettingsState) {
        this.#options = options;
        this.#state = state;
        this.#proxies = proxyList(state.get('panel.trustedProxies'));
    }

    get<K extends SettingKey>(key: K): SettingValues[K] {
        return this.#state.get(key);
    }

    engine(): EngineSettings {
        return engineSettings(this.#state);
    }

    autoReload(): boolean {
        return this.#state.get('engine.autoReload');
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
        const state = this.#open?.tx === tx ? this.#open.state : this.#state;
        const changed = settingKeys
            .filter(isEngineKey)
            .filter(
                (key) => !state.isFixed(key) && !isDeepStrictEqual(state.get(key), settings[engineKeys[key]])
            );
        await this.#store(tx, new Map(changed.map((key) => [key, settings[engineKeys[key]] ?? undefined])));
    }

    list(): Reply<readonly SettingView[]> {
        return listOf(this.#state);
    }

    read(key: string): SettingView {
        return this.#state.view(known(key));
    }

    async update(
        changes: Readonly<Record<string, unknown>>,
        call: Call
    ): Promise<Reply<readonly SettingView[]>> {
        return this.#change(changes, call, (state) => checkMatch(call, state.tag), listOf, null);
    }

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

    onChange(listener: (keys: readonly SettingKey[]) => void): () => void {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
    }

    attach(engine: EngineQueue): void {
        this.#engine = engine;
    }

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
        const real = (state: SettingsState): Changes =>
            new Map([...changes].filter(([key, value]) => !isDeepStrictEqual(state.stored(key), value)));
        return {
            changed: new Set(real(this.#state).keys()),
            fixed,
            engine(settings) {
                const after = planned(settings, changes);
                checkPorts(after);
                return after;
            },
            store: async (tx) =>
                void (await this.#store(tx, real(this.#open?.tx === tx ? this.#open.state : this.#state)))
        };
    }

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
        checkVersion(this.#state);
        const commit = async (
            tx: Transaction,
            headers: Readonly<Record<string, string>>
        ): Promise<Reply<T>> => {
            const before = this.#open?.tx === tx ? this.#open.state : this.#state;
            checkVersion(before);
            const real = new Map(
                [...changes].filter(([key, value]) => !isDeepStrictEqual(before.stored(key), value))
            );
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
            by: {
                id: call.actor.id,
                username: call.actor.username,
                tokenId: call.actor.tokenId,
                plugin: call.actor.plugin,
                requestId: call.id
            },
            plan: (draft: Draft): Plan => {
                const settings = planned(draft.settings, changes);
                checkPorts(settings);
                return { settings };
            },
            commit: (tx, outcome) => commit(tx, { 'x-engine-reload': String(outcome.reloaded) })
        });
        return value;
    }

    /** Writes rows inside the transaction; memory follows when that is durable. */
    async #store(tx: Transaction, changes: Changes): Promise<SettingsState> {
        const before = this.#open?.tx === tx ? this.#open.state : this.#state;
        const after = before.with(changes);
        for (const [key, value] of changes) {
            const text = value === undefined ? null : JSON.stringify(value);
            await tx.em.upsert(SettingEntity, {
                key,
                value:
                    text !== null && definitionOf(key).secret
                        ? this.#options.keyring.seal(label, text)
                        : text,
                version: after.versionOf(key),
                updatedAt: this.#options.clock.now()
            });
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
        this.#proxies = proxyList(state.get('panel.trustedProxies'));
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
