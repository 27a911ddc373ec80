/** Makes the writer of a provider, and sees to what an earlier one had to leave behind. */
import { getServers } from 'node:dns';

import { type Clock, systemClock } from '../../platform/clock.ts';
import { fail } from '../../platform/errors.ts';
import { readServer, type Seen } from './authority.ts';
import type { DnsProviderRow } from './entities.ts';
import type { Lego } from './lego/command.ts';
import { createLegoWriter } from './lego/writer.ts';
import { type NameServer, serverName } from './rfc2136/dns-client.ts';
import { createRfc2136Writer, createZoneUpdater, type Place, type ZoneUpdater } from './rfc2136/rfc2136.ts';
import type { TsigAlgorithm } from './rfc2136/tsig.ts';
import { type Challenge, type ChallengeWriter, recordName, WriterFailure } from './solver.ts';
import type { Store } from './store.ts';
import { legoTool, rfc2136Type } from './types.ts';
import { untilVisible } from './visibility.ts';

export interface WritersOptions {
    readonly store: Store;
    readonly lego: Lego;
    readonly clock: Clock;
    /** Name servers of the settings, as addresses with a port or without; those of the system without any. */
    nameservers(): readonly string[];
    /** How long a record may take until every name server has it. Milliseconds, default 180,000. */
    readonly visibleMs?: number;
}

export interface Watcher {
    readonly limitMs?: number;
    /** Called with what the name servers say, each time that they are asked. */
    saw?(seen: readonly Seen[]): void;
    /** The record is written. */
    wrote?(): void;
    /** The record is gone. */
    removed?(): void;
}

export interface Writers {
    /** @throws TOOL_MISSING 50302 */
    of(provider: DnsProviderRow, watcher?: Watcher): Promise<ChallengeWriter>;
}

/** What removing a record takes: where it is, or how it came to be. */
type Left =
    | { readonly place: Place; readonly value: string }
    | { readonly challenge: Challenge; readonly key: string };

const defaultVisibleMs = 180_000;
/** After a week of refusals the record is somebody else's business. */
const givenUpMs = 7 * 86_400_000;

export function createWriters({ store, lego, clock, nameservers, ...options }: WritersOptions): Writers {
    const resolvers = (): readonly NameServer[] => {
        const own = nameservers();
        return (own.length > 0 ? own : getServers()).flatMap((text) => {
            const server = readServer(text);
            return server === null ? [] : [{ address: server.host, port: server.port }];
        });
    };
    /** Records that are being worked with: those of other runs are left over from a panel that was killed. */
    const live = new Set<number>();

    function memoryOf(provider: DnsProviderRow, watcher: Watcher) {
        return {
            async add(record: Left): Promise<number> {
                const id = await store.addRecord(provider.id, record, new Date(clock.now()).toISOString());
                live.add(id);
                return id;
            },
            async removed(id: number): Promise<void> {
                await store.removeRecord(id);
                live.delete(id);
                watcher.removed?.();
            }
        };
    }

    const visibility = (watcher: Watcher) => ({
        resolvers,
        limitMs: watcher.limitMs ?? options.visibleMs ?? defaultVisibleMs
    });

    function updaterOf(provider: DnsProviderRow): ZoneUpdater {
        // The name server holds the signature's time against its own clock: the machine's is meant, whatever the panel is told.
        const {
            nameserver = '',
            zone = null,
            keyName = '',
            keySecret = '',
            algorithm = 'hmac-sha256'
        } = store.open(provider);
        return createZoneUpdater({
            nameserver,
            zone,
            keyName,
            keySecret,
            algorithm: algorithm as TsigAlgorithm,
            clock: systemClock,
            resolvers
        });
    }

    function rfc2136(provider: DnsProviderRow, watcher: Watcher): ChallengeWriter {
        const updater = updaterOf(provider);
        const memory = memoryOf(provider, watcher);
        const writer = createRfc2136Writer(
            updater,
            {
                written: (challenge, place) => memory.add({ place, value: challenge.value }),
                removed: memory.removed
            },
            async (place, value, signal) => {
                watcher.wrote?.();
                await untilVisible(
                    visibility(watcher),
                    { name: place.name, value, fallback: await updater.servers() },
                    signal,
                    watcher.saw
                );
            }
        );
        return {
            async solve(work, written) {
                await forgetting(provider, async (left) => {
                    if ('place' in left) {
                        work.log(`Removing the TXT record at ${left.place.name} that was left behind`);
                        await updater.remove(left.place, left.value, work.signal);
                    }
                });
                await writer.solve(work, written);
            }
        };
    }

    function foreign(provider: DnsProviderRow, watcher: Watcher): ChallengeWriter {
        const memory = memoryOf(provider, watcher);
        const legoWriter = (
            visible: (challenge: Challenge, signal: AbortSignal) => Promise<void>
        ): ChallengeWriter =>
            createLegoWriter({
                lego,
                type: provider.type,
                credentials: store.open(provider),
                visible,
                resolvers: () =>
                    nameservers().length === 0
                        ? []
                        : resolvers().map((server) =>
                              server.port === 53 ? `${serverName(server)}:53` : serverName(server)
                          ),
                memory: {
                    written: (challenge, key) => memory.add({ challenge, key }),
                    removed: memory.removed
                }
            });
        return {
            async solve(work, written) {
                await forgetting(provider, async (left) => {
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
                        visibility(watcher),
                        { name: recordName(challenge.domain), value: challenge.value, fallback: [] },
                        signal,
                        watcher.saw
                    );
                }).solve(work, written);
            }
        };
    }

    /** What cannot be removed now stays on record, and does not keep the present work from being done. */
    async function forgetting(
        provider: DnsProviderRow,
        remove: (left: Left) => Promise<void>
    ): Promise<void> {
        for (const { id, record, createdAt } of store
            .records(provider.id)
            .filter((each) => !live.has(each.id))) {
            live.add(id);
            try {
                await remove(record as Left);
                await store.removeRecord(id);
            } catch (error) {
                if (!(error instanceof WriterFailure)) {
                    throw error;
                }
                if (clock.now() - Date.parse(createdAt) > givenUpMs) {
                    await store.removeRecord(id);
                }
                if (error.reason === 'DNS_UNREACHABLE') {
                    return; // The others would take as long.
                }
            } finally {
                live.delete(id);
            }
        }
    }

    return {
        async of(provider, watcher = {}) {
            if (provider.type === rfc2136Type.type) {
                return rfc2136(provider, watcher);
            }
            const types = await lego.types();
            if (types.length === 0) {
                throw fail.TOOL_MISSING(legoTool, {
                    message: `lego is not installed: the DNS provider ${provider.name} needs it`
                });
            }
            return foreign(provider, watcher);
        }
    };
}
