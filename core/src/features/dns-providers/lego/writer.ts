/** Writes TXT records through the `lego` command. lego writes records only as part of an ACME order, so each run gets an order of a local CA. */
import { createPrivateKey } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

import { type Challenge, type ChallengeWriter, type Work, WriterFailure } from '../challenges/solver.ts';
import { LegoAuthority } from './authority.ts';
import type { Lego, LegoProcess } from './command.ts';

/** What a {@link LegoWriter} works with. */
export interface LegoWriterOptions {
    readonly lego: Lego;
    /** lego's code of the provider, as `cloudflare`. */
    readonly type: string;
    /** Environment variables for lego, by name. */
    readonly credentials: Readonly<Record<string, string>>;
    /** Recursive name servers that lego asks, as `192.0.2.1:53`. With an empty list lego chooses by itself. */
    resolvers(): readonly string[];
    readonly memory: LegoMemory;
    /** Resolves when all name servers of the zone show the record. */
    visible(challenge: Challenge, signal: AbortSignal, log: (text: string) => void): Promise<void>;
}

/** Remembers records from before they are written until after they are removed, so that a killed panel can remove them later. */
export interface LegoMemory {
    /** @returns the id under which the record is remembered */
    written(challenge: Challenge, key: string): Promise<number>;
    removed(id: number): Promise<void>;
}

/** The longest run of lego. Providers that hold one record at a time take minutes. */
const runMs = 30 * 60_000;
/** Time that lego gets to remove its records after the work was cancelled. */
const removalMs = 60_000;
const address = 'panel@localhost.localdomain';
const keptLines = 12;

/** Writes the records of challenges at a provider that lego supports, one run of lego for each call of `solve`. */
export class LegoWriter implements ChallengeWriter {
    readonly #lego: Lego;
    readonly #type: string;
    readonly #credentials: Readonly<Record<string, string>>;
    readonly #resolvers: LegoWriterOptions['resolvers'];
    readonly #memory: LegoMemory;
    readonly #visible: LegoWriterOptions['visible'];

    constructor({ lego, type, credentials, resolvers, memory, visible }: LegoWriterOptions) {
        this.#lego = lego;
        this.#type = type;
        this.#credentials = credentials;
        this.#resolvers = resolvers;
        this.#memory = memory;
        this.#visible = visible;
    }

    async solve(
        { challenges, key, signal, log }: Work,
        written: (challenge: Challenge) => Promise<void>
    ): Promise<void> {
        signal.throwIfAborted();
        const ids = new Map<Challenge, number>();
        for (const challenge of challenges) {
            ids.set(challenge, await this.#memory.written(challenge, key.pem));
        }
        const failures: unknown[] = [];
        const halted = new AbortController();
        const work = AbortSignal.any([signal, halted.signal]);
        const authority = await LegoAuthority.open({
            challenges,
            key: key.pem,
            written: async (challenge) => {
                try {
                    work.throwIfAborted();
                    log(`lego wrote the TXT record for ${challenge.domain}`);
                    await unlessAborted(this.#visible(challenge, work, log), work);
                    await unlessAborted(written(challenge), work);
                } catch (error) {
                    failures.push(error);
                    // The order has failed: the other challenges end too, so that lego removes every record.
                    halted.abort(error);
                    throw error;
                }
            }
        });
        const output = new Output(log);
        try {
            await ended(this.#start(authority, challenges, key.pem, output), signal);
        } finally {
            authority.close();
        }
        if (output.isClean) {
            for (const id of ids.values()) {
                await this.#memory.removed(id);
            }
        }
        signal.throwIfAborted();
        if (failures.length > 0) {
            throw failures[0];
        }
        if (!authority.done) {
            throw new WriterFailure(
                'DNS_PROVIDER_FAILED',
                `lego could not write the records: ${output.complaint}`
            );
        }
    }

    #start(
        authority: LegoAuthority,
        challenges: readonly Challenge[],
        key: string,
        output: Output
    ): LegoProcess {
        const names = challenges.map(({ domain }, at) =>
            challenges.findIndex((other) => other.domain === domain) === at ? domain : `*.${domain}`
        );
        return this.#lego.start({
            arguments: [
                '--accept-tos',
                '--email',
                address,
                '--server',
                authority.directory,
                '--key-type',
                'ec256',
                '--dns',
                this.#type,
                '--dns.disable-cp',
                ...this.#resolvers().flatMap((server) => ['--dns.resolvers', server]),
                ...names.flatMap((name) => ['--domains', name]),
                'run'
            ],
            environment: this.#credentials,
            files: {
                [`lego/accounts/${authority.folder}/${address}/keys/${address}.key`]: createPrivateKey(
                    key
                ).export({ type: 'sec1', format: 'pem' }) as string
            },
            line: (text) => output.add(text)
        });
    }
}

/** What lego prints: passed on to the log, the last lines kept to explain a failure. */
class Output {
    readonly #log: (text: string) => void;
    readonly #last: string[] = [];
    #isClean = true;

    constructor(log: (text: string) => void) {
        this.#log = log;
    }

    /** False after lego reported that it could not remove a record. */
    get isClean(): boolean {
        return this.#isClean;
    }

    /** The line that most likely explains a failure. */
    get complaint(): string {
        const complaint =
            this.#last.findLast((line) =>
                /error|could not|failed|missing|unable|denied|invalid/i.test(line)
            ) ??
            this.#last.at(-1) ??
            'it said nothing';
        return complaint.slice(0, 500);
    }

    add(text: string): void {
        const plain = text.replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '');
        this.#isClean &&= !/clean(?:ing|ed)?[ -]?up failed|error cleaning up/i.test(plain);
        this.#last.push(plain);
        this.#last.splice(0, this.#last.length - keptLines);
        this.#log(`lego: ${plain}`);
    }
}

/** Waits until lego has ended by itself and so removed its records. Kills it, with its child processes, when it takes too long. */
async function ended(
    run: { readonly ended: Promise<number | null>; kill(): void },
    signal: AbortSignal
): Promise<void> {
    const over = new AbortController();
    const limit = async (): Promise<void> => {
        const late = new Promise<void>((resolve) => {
            signal.addEventListener('abort', () => resolve(), { once: true });
            if (signal.aborted) {
                resolve();
            }
        });
        await Promise.race([wait(runMs, undefined, { signal: over.signal }), late]);
        await wait(removalMs, undefined, { signal: over.signal });
        run.kill();
    };
    limit().catch(() => undefined);
    try {
        await run.ended;
    } finally {
        over.abort();
    }
}

/** Rejects as soon as the signal aborts: lego would wait for an authorization that stays open. */
function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
        const aborted = (): void => reject(signal.reason as Error);
        signal.addEventListener('abort', aborted, { once: true });
        if (signal.aborted) {
            aborted();
        }
        work.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
    });
}
