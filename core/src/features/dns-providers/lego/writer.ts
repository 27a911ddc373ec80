/** Records at whichever provider the `lego` command knows, written and removed by it as a part of an order that it believes in. */
import { createPrivateKey } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

import { type Challenge, type ChallengeWriter, WriterFailure } from '../solver.ts';
import { openLegoAuthority } from './authority.ts';
import type { Lego } from './command.ts';

export interface LegoWriterOptions {
    readonly lego: Lego;
    readonly type: string;
    readonly credentials: Readonly<Record<string, string>>;
    /** Recursive name servers that the command is to use, as `192.0.2.1:53`; its own choice without any. */
    resolvers(): readonly string[];
    readonly memory: LegoMemory;
    /** Resolves when everybody can see the record. */
    visible(challenge: Challenge, signal: AbortSignal, log: (text: string) => void): Promise<void>;
}

/** What is told before a record is written and after it is gone. */
export interface LegoMemory {
    written(challenge: Challenge, key: string): Promise<number>;
    removed(id: number): Promise<void>;
}

/** A whole run; providers that hold one record at a time take minutes. */
const runMs = 30 * 60_000;
/** What the command gets to remove its records after the work was cancelled. */
const removalMs = 60_000;
const address = 'panel@localhost.localdomain';
const keptLines = 12;

export function createLegoWriter({
    lego,
    type,
    credentials,
    resolvers,
    memory,
    visible
}: LegoWriterOptions): ChallengeWriter {
    return {
        async solve({ challenges, key, signal, log }, written) {
            signal.throwIfAborted();
            const ids = new Map<Challenge, number>();
            for (const challenge of challenges) {
                ids.set(challenge, await memory.written(challenge, key.pem));
            }
            const failures: unknown[] = [];
            const halted = new AbortController();
            const work = AbortSignal.any([signal, halted.signal]);
            const authority = await openLegoAuthority({
                challenges,
                key: key.pem,
                async written(challenge) {
                    try {
                        work.throwIfAborted();
                        log(`lego wrote the TXT record for ${challenge.domain}`);
                        await unlessAborted(visible(challenge, work, log), work);
                        await unlessAborted(written(challenge), work);
                    } catch (error) {
                        failures.push(error);
                        // The others are in vain then: they end too, and every record goes.
                        halted.abort(error);
                        throw error;
                    }
                }
            });
            const last: string[] = [];
            let dirty = false;
            try {
                const names = challenges.map(({ domain }, at) =>
                    challenges.findIndex((other) => other.domain === domain) === at ? domain : `*.${domain}`
                );
                const run = lego.start({
                    arguments: [
                        '--accept-tos',
                        '--email',
                        address,
                        '--server',
                        authority.directory,
                        '--key-type',
                        'ec256',
                        '--dns',
                        type,
                        '--dns.disable-cp',
                        ...resolvers().flatMap((server) => ['--dns.resolvers', server]),
                        ...names.flatMap((name) => ['--domains', name]),
                        'run'
                    ],
                    environment: credentials,
                    files: {
                        [`lego/accounts/${authority.folder}/${address}/keys/${address}.key`]:
                            createPrivateKey(key.pem).export({ type: 'sec1', format: 'pem' }) as string
                    },
                    line(text) {
                        const plain = text.replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '');
                        dirty ||= /clean(?:ing|ed)?[ -]?up failed|error cleaning up/i.test(plain);
                        last.push(plain);
                        last.splice(0, last.length - keptLines);
                        log(`lego: ${plain}`);
                    }
                });
                await ended(run, signal);
            } finally {
                authority.close();
            }
            if (!dirty) {
                for (const id of ids.values()) {
                    await memory.removed(id);
                }
            }
            signal.throwIfAborted();
            if (failures.length > 0) {
                throw failures[0];
            }
            if (!authority.done) {
                throw new WriterFailure(
                    'DNS_PROVIDER_FAILED',
                    `lego could not write the records: ${complaintOf(last)}`
                );
            }
        }
    };
}

/** Lets it end by itself, which removes the records; one that does not is killed with whatever it started. */
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

/** An authorization whose work was cancelled ends at once, or the command would wait for it. */
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

function complaintOf(lines: readonly string[]): string {
    const complaint =
        lines.filter((line) => /error|could not|failed|missing|unable|denied|invalid/i.test(line)).at(-1) ??
        lines.at(-1) ??
        'it said nothing';
    return complaint.slice(0, 500);
}
