/** Makes the writer of a provider. It first removes records that an earlier run could not remove. */
import { getServers } from 'node:dns';

import { type Clock, systemClock } from '../../../platform/clock.ts';
import { fail } from '../../../platform/errors.ts';
import type { DnsProviderRow } from '../entities.ts';
import type { Lego } from '../lego/command.ts';
import { LegoWriter } from '../lego/writer.ts';
import { type NameServer, serverName } from '../rfc2136/dns-client.ts';
import { createRfc2136Writer, type Place, ZoneUpdater } from '../rfc2136/rfc2136.ts';
import type { TsigAlgorithm } from '../rfc2136/tsig.ts';
import type { DnsProviderStore } from '../store.ts';
import { legoTool, rfc2136Type } from '../types.ts';
import { readServer, type Seen } from './name-servers.ts';
import { type Challenge, type ChallengeWriter, recordName, WriterFailure } from './solver.ts';
import { untilVisible } from './visibility.ts';

/** What {@link Writers} works with. */
export interface WritersOptions {
    readonly store: DnsProviderStore;
    readonly lego: Lego;
    readonly clock: Clock;
    /** Name servers of the settings, as addresses with a port or without; those of the system without any. */
    nameservers(): readonly string[];
    /** How long a record may take until every name server has it. Milliseconds, default 180,000. */
    readonly visibleMs?: number;
}

/** Hears how far the work on a record is. */
export interface Watcher {
    readonly limitMs?: number;
    /** Called with what the name servers say, each time that they are asked. */
    saw?(seen: readonly Seen[]): void;
    /** The record is written. */
    wrote?(): void;
    /** The record is gone. */
    removed?(): void;
}

/** What removing a record takes: where it is, or how it came to be. */
type Left =
    | { readonly place: Place; readonly value: string }
    | { readonly challenge: Challenge; readonly key: string };

const defaultVisibleMs = 180_000;
/** After a week of failed removals a record is given up. */
const givenUpMs = 7 * 86_400_000;

/** Makes writers of challenge records, and removes records that an earlier run left. */
export class Writers {
    readonly #store: DnsProviderStore;
    readonly #lego: Lego;
    readonly #clock: Clock;
    readonly #nameservers: WritersOptions['nameservers'];
    readonly #options: Omit<WritersOptions, 'store' | 'lego' | 'clock' | 'nameservers'>;
    /** Records that are being worked with: those of other runs are left over from a panel that was killed. */
    readonly #live = new Set<number>();

    constructor({ store, lego, clock, nameservers, ...options }: WritersOptions) {
        this.#store = store;
        this.#lego = lego;
        this.#clock = clock;
        this.#nameservers = nameservers;
        this.#options = options;
    }

    /** @throws TOOL_MISSING 50302 */
    async of(provider: DnsProviderRow, watcher: Watcher = {}): Promise<ChallengeWriter> {
        if (provider.type === rfc2136Type.type) {
            return this.#rfc2136(provider, watcher);
        }
        const types = await this.#lego.types();
        if (types.length === 0) {
            throw fail.TOOL_MISSING(legoTool, {
                message: `lego is not installed: the DNS provider ${provider.name} needs it`
            });
        }
        return this.#foreign(provider, watcher);
    }

    #resolvers(): readonly NameServer[] {
        const own = this.#nameservers();
        return (own.length > 0 ? own : getServers()).flatMap((text) => {
            const server = readServer(text);
            return server === null ? [] : [{ address: server.host, port: server.port }];
        });
    }

    #memoryOf(provider: DnsProviderRow, watcher: Watcher) {
        return {
            add: async (record: Left): Promise<number> => {
                const id = await this.#store.addRecord(
                    provider.id,
                    record,
                    new Date(this.#clock.now()).toISOString()
                );
                this.#live.add(id);
                return id;
            },
            removed: async (id: number): Promise<void> => {
                await this.#store.removeRecord(id);
                this.#live.delete(id);
                watcher.removed?.();
            }
        };
    }

    #visibility(watcher: Watcher) {
        return {
            resolvers: () => this.#resolvers(),
            limitMs: watcher.limitMs ?? this.#options.visibleMs ?? defaultVisibleMs
        };
    }

    #updaterOf(provider: DnsProviderRow): ZoneUpdater {
        // The name server holds the signature's time against its own clock: the machine's is meant, whatever the panel is told.
        const {
            nameserver = '',
            zone = null,
            keyName = '',
            keySecret = '',
            algorithm = 'hmac-sha256'
        } = this.#store.open(provider);
        return new ZoneUpdater({
            nameserver,
            zone,
            keyName,
            keySecret,
            algorithm: algorithm as TsigAlgorithm,
            clock: systemClock,
            resolvers: () => this.#resolvers()
        });
    }

    #rfc2136(provider: DnsProviderRow, watcher: Watcher): ChallengeWriter {
        const updater = this.#updaterOf(provider);
        const memory = this.#memoryOf(provider, watcher);
        const writer = createRfc2136Writer(
            updater,
            {
                written: (challenge, place) => memory.add({ place, value: challenge.value }),
                removed: memory.removed
            },
            async (place, value, signal) => {
                watcher.wrote?.();
                await untilVisible(
                    this.#visibility(watcher),
                    { name: place.name, value, fallback: await updater.servers() },
                    signal,
                    watcher.saw
                );
            }
        );
        return {
            solve: async (work, written) => {
                await this.#forgetting(provider, async (left) => {
                    if ('place' in left) {
                        work.log(`Removing the TXT record at ${left.place.name} that was left behind`);
                        await updater.remove(left.place, left.value, work.signal);
                    }
                });
                await writer.solve(work, written);
            }
        };
    }

    #foreign(provider: DnsProviderRow, watcher: Watcher): ChallengeWriter {
        const memory = this.#memoryOf(provider, watcher);
        const legoWriter = (
            visible: (challenge: Challenge, signal: AbortSignal) => Promise<void>
        ): ChallengeWriter =>
            new LegoWriter({
                lego: this.#lego,
                type: provider.type,
                credentials: this.#store.open(provider),
                visible,
                resolvers: () =>
                    this.#nameservers().length === 0
                        ? []
                        : this.#resolvers().map((server) =>
                              server.port === 53 ? `${serverName(server)}:53` : serverName(server)
                          ),
                memory: {
                    written: (challenge, key) => memory.add({ challenge, key }),
                    removed: memory.removed
                }
            });
        return {
            solve: async (work, written) => {
                await this.#forgetting(provider, async (left) => {
                    if ('challenge' in left) {
                        work.log(`Removing the TXT record for ${left.challenge.domain} that was left behind`);
                        await legoWriter(async () => undefined).solve(
                            { ...work, challenges: [left.challenge], key: { pem: left.key } },
                            async () => undefined
                        );
                    }
                });
                await legoWriter(async (challenge, signal) => {
                    watcher.wrote?.();
                    await untilVisible(
                        this.#visibility(watcher),
                        { name: recordName(challenge.domain), value: challenge.value, fallback: [] },
                        signal,
                        watcher.saw
                    );
                }).solve(work, written);
            }
        };
    }

    /** What cannot be removed now stays on record, and does not keep the present work from being done. */
    async #forgetting(provider: DnsProviderRow, remove: (left: Left) => Promise<void>): Promise<void> {
        for (const { id, record, createdAt } of this.#store
            .records(provider.id)
            .filter((each) => !this.#live.has(each.id))) {
            this.#live.add(id);
            try {
                await remove(record as Left);
                await this.#store.removeRecord(id);
            } catch (error) {
                if (!(error instanceof WriterFailure)) {
                    throw error;
                }
                if (this.#clock.now() - Date.parse(createdAt) > givenUpMs) {
                    await this.#store.removeRecord(id);
                }
                if (error.reason === 'DNS_UNREACHABLE') {
                    return; // The others would take as long.
                }
            } finally {
                this.#live.delete(id);
            }
        }
    }
}
