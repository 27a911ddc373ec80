/** Signed dynamic updates of a zone (RFC 2136, RFC 8945). Records are added and removed by value, so that other records of the same name stay. */
import type { Clock } from '../../../platform/clock.ts';
import { firstOf, follow, serversOf, zoneOf } from '../challenges/name-servers.ts';
import { type Challenge, type ChallengeWriter, recordName, WriterFailure } from '../challenges/solver.ts';
import { DnsFailure, exchange, type NameServer, newId, rcodes, serverName } from './dns-client.ts';
import { classes, DnsFormatError, encodeText, encodeUpdate, recordTypes } from './dns-message.ts';
import { signMessage, type TsigAlgorithm, TsigError, type TsigKey, verifyReply } from './tsig.ts';

/** What a {@link ZoneUpdater} works with. */
export interface Rfc2136Options {
    /** The zone's primary: a name or an address, with or without a port. */
    readonly nameserver: string;
    /** Null: the zone is found by the SOA record that the name server answers. */
    readonly zone: string | null;
    readonly keyName: string;
    /** Base64. */
    readonly keySecret: string;
    readonly algorithm: TsigAlgorithm;
    readonly clock: Clock;
    /** Resolvers that are asked where a CNAME leads. When none answers, the name server itself is asked. */
    resolvers(): readonly NameServer[];
}

/** Where a record goes. */
export interface Place {
    readonly name: string;
    readonly zone: string;
}

const ttl = 60;
/** Milliseconds that a removal may take after the work was cancelled. */
const removalMs = 20_000;

/** Sends signed dynamic updates to the primary of a zone (RFC 2136, RFC 8945). */
export class ZoneUpdater {
    readonly #options: Rfc2136Options;
    readonly #key: TsigKey;

    constructor(options: Rfc2136Options) {
        this.#options = options;
        this.#key = {
            name: options.keyName.replace(/\.$/, ''),
            secret: Buffer.from(options.keySecret, 'base64'),
            algorithm: options.algorithm
        };
    }

    /** Finds the place where a challenge of this domain must be written. @throws WriterFailure, or the signal's reason */
    place(domain: string, signal: AbortSignal): Promise<Place> {
        return translated(async () => {
            const own = await this.servers();
            const asked = recordName(domain);
            const name = await follow(this.#options.resolvers(), asked, true, signal).catch(
                (error: unknown) => {
                    if (error instanceof DnsFailure) {
                        return follow(own, asked, false, signal);
                    }
                    throw error;
                }
            );
            const zone =
                this.#options.zone?.toLowerCase().replace(/\.$/, '') ??
                (await zoneOf(own, name, false, signal));
            if (name !== zone && !name.endsWith(`.${zone}`)) {
                throw new WriterFailure(
                    'DNS_ZONE',
                    `${name}${name === asked ? '' : `, where ${asked} leads,`} is not in the zone ${zone}`
                );
            }
            return { name, zone };
        });
    }

    add(place: Place, value: string, signal: AbortSignal): Promise<void> {
        return this.#update(place, classes.in, ttl, value, signal);
    }

    remove(place: Place, value: string, signal: AbortSignal): Promise<void> {
        return this.#update(place, classes.none, 0, value, signal);
    }

    /** The servers that show whether a record was written. */
    servers(): Promise<readonly NameServer[]> {
        return serversOf(this.#options.nameserver);
    }

    async #update(
        place: Place,
        dnsClass: number,
        recordTtl: number,
        value: string,
        signal: AbortSignal
    ): Promise<void> {
        await translated(async () => {
            const message = encodeUpdate(newId(), place.zone, [
                {
                    name: place.name,
                    type: recordTypes.TXT,
                    class: dnsClass,
                    ttl: recordTtl,
                    data: encodeText(value)
                }
            ]);
            await firstOf(await this.servers(), async (server) => {
                const seconds = Math.floor(this.#options.clock.now() / 1000);
                const signed = signMessage(message, this.#key, seconds);
                const reply = await exchange(server, signed.bytes, signal);
                const code = rcodes[reply.rcode] ?? String(reply.rcode);
                try {
                    verifyReply(reply, this.#key, signed.mac, Math.floor(this.#options.clock.now() / 1000));
                } catch (error) {
                    // A server without the key cannot sign. Its refusal is believed, its success is not.
                    throw new WriterFailure(
                        'DNS_SIGNATURE',
                        `${serverName(server)} answers ${reply.rcode === 0 ? 'NOERROR' : code}, but ${(error as Error).message}`,
                        { cause: error, refused: reply.rcode !== 0 }
                    );
                }
                if (reply.rcode !== 0) {
                    throw new WriterFailure(
                        'DNS_UPDATE_REFUSED',
                        `${serverName(server)} refuses to update ${place.name} in the zone ${place.zone}: ${code}${hints[code] ?? ''}`,
                        { refused: true }
                    );
                }
            });
        });
    }
}

/** Is told before a record is written and after it is removed, so that the next start knows of a crash in between. */
export interface Memory {
    written(challenge: Challenge, place: Place): Promise<number>;
    removed(id: number): Promise<void>;
}

/** Makes a writer of challenge records on top of a {@link ZoneUpdater}. */
export function createRfc2136Writer(
    updater: ZoneUpdater,
    memory: Memory,
    visible: (place: Place, value: string, signal: AbortSignal, log: (text: string) => void) => Promise<void>
): ChallengeWriter {
    return {
        async solve({ challenges, signal, log }, written) {
            const present: { readonly id: number; readonly place: Place; readonly value: string }[] = [];
            try {
                for (const challenge of challenges) {
                    signal.throwIfAborted();
                    const place = await updater.place(challenge.domain, signal);
                    const id = await memory.written(challenge, place);
                    try {
                        await updater.add(place, challenge.value, signal);
                    } catch (error) {
                        // A refused record was not written. After any other error it may have been.
                        if (error instanceof WriterFailure && error.refused) {
                            await memory.removed(id);
                        } else {
                            present.push({ id, place, value: challenge.value });
                        }
                        throw error;
                    }
                    present.push({ id, place, value: challenge.value });
                    log(`Wrote a TXT record at ${place.name} in the zone ${place.zone}`);
                }
                await Promise.all(present.map(({ place, value }) => visible(place, value, signal, log)));
                // All writes have ended before the first record is removed.
                const outcomes = await Promise.allSettled(challenges.map(written));
                const failed = outcomes.find((outcome) => outcome.status === 'rejected');
                if (failed !== undefined) {
                    throw failed.reason;
                }
            } finally {
                for (const { id, place, value } of present) {
                    await updater.remove(place, value, AbortSignal.timeout(removalMs)).then(
                        async () => {
                            log(`Removed the TXT record at ${place.name}`);
                            await memory.removed(id);
                        },
                        (error: unknown) =>
                            log(
                                `The TXT record at ${place.name} could not be removed and will be at the next attempt: ${(error as Error).message}`
                            )
                    );
                }
            }
        }
    };
}

const hints: Readonly<Record<string, string>> = {
    REFUSED: ' (the key may not write there, or the server takes no updates for this zone)',
    NOTAUTH: " (it is not this zone's primary)",
    NOTZONE: ' (the name is not in this zone)'
};

async function translated<T>(work: () => Promise<T>): Promise<T> {
    try {
        return await work();
    } catch (error) {
        throw error instanceof DnsFailure
            ? new WriterFailure('DNS_UNREACHABLE', error.message, { cause: error })
            : error instanceof DnsFormatError || error instanceof TsigError
              ? new WriterFailure('DNS_MALFORMED', error.message, { cause: error })
              : error;
    }
}
