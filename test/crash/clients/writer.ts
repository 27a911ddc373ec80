/** A client that makes one change after another and remembers the answers. The panel is compared with that history. */
import type { Answer, Client } from '../../support/panel/client.ts';
import type { Random } from '../random.ts';
import { type Material, nextOperation, type Operation } from './operations.ts';
import { differences, emptyWorld, type Fields, type World } from './world.ts';

export interface Acknowledged {
    readonly operation: Operation;
    readonly requestId: string;
    readonly answer: Answer;
}

export interface WriterOptions {
    readonly material: Material;
    readonly random: Random;
    readonly client: Client;
    /** Is called just before an operation is sent. */
    readonly sending: (operation: Operation) => void;
    readonly violation: (text: string) => void;
}

/** Codes of refusals that change nothing and that correct requests can get. */
const ordinary = new Set([40901, 41200, 50301]);
/** Codes that leave open whether the change was made: the panel was not ready, or the answer took too long. */
const unknownEnd = 50300;
const keptAnswers = 8;

export class Writer {
    readonly material: Material;
    readonly #options: WriterOptions;
    world: World = emptyWorld;
    /** The operation that was sent and not answered. */
    open: { readonly operation: Operation; readonly requestId: string } | null = null;
    /** Why the last operation has no known end. */
    cause = '';
    /** Whether the panel accepts no connections. */
    away = false;
    /** Number of acknowledged operations of this round. */
    acknowledged: Acknowledged[] = [];
    refused = new Map<number, number>();
    /** Answers to requests with an Idempotency-Key, which a retry must get again. */
    kept: Acknowledged[] = [];
    /** Secrets of API tokens by name, and the revoked ones. */
    readonly secrets = new Map<string, string>();
    readonly revoked: string[] = [];
    /** Names of hosts that were removed. */
    readonly gone = new Set<string>();
    #serial = 0;

    constructor(options: WriterOptions) {
        this.#options = options;
        this.material = options.material;
    }

    get client(): Client {
        return this.#options.client;
    }

    /** Writes until it is stopped or gets no answer. */
    async run(stopped: () => boolean): Promise<void> {
        this.away = false;
        while (!stopped() && !this.away && this.open === null) {
            await this.#step(nextOperation(this.world, this.material, this.#options.random));
        }
    }

    send(operation: Operation, requestId: string): Promise<Answer> {
        const headers = {
            'x-request-id': requestId,
            ...(operation.key === undefined ? {} : { 'idempotency-key': operation.key })
        };
        return this.client.call(operation.method, operation.path, { body: operation.body, headers });
    }

    /** Sets the world, and what follows from it. */
    take(world: World): void {
        for (const [name, host] of this.world.hosts) {
            for (const each of [name, ...(host['aliases'] as readonly string[])]) {
                this.gone.add(each);
            }
        }
        this.world = world;
        for (const [name, host] of world.hosts) {
            for (const each of [name, ...(host['aliases'] as readonly string[])]) {
                this.gone.delete(each);
            }
        }
        for (const [name, secret] of this.secrets) {
            if (!world.tokens.has(name)) {
                this.secrets.delete(name);
                this.revoked.push(secret);
            }
        }
    }

    /**
     * Compares the panel with the history: every acknowledged change is there, and the change without an answer is there wholly or not at all.
     * @returns whether the change without an answer was made; null when there was none
     */
    settle(actual: World): boolean | null {
        const { open } = this;
        const without = differences(this.world, actual);
        const acted = open === null ? [] : differences(open.operation.after(null), actual);
        if (without.length > 0 && (open === null || acted.length > 0)) {
            const half =
                open === null
                    ? ''
                    : `\n    or, had ${open.operation.name} (${open.requestId}) been done:\n    ${acted.join('\n    ')}`;
            this.#options.violation(
                `${this.material.prefix} finds not what it was told:\n    ${without.join('\n    ')}${half}`
            );
        }
        this.take(actual);
        return open === null ? null : without.length > 0;
    }

    async #step(operation: Operation): Promise<void> {
        const requestId = `${this.material.prefix}-${(this.#serial += 1)}`;
        this.open = { operation, requestId };
        this.#options.sending(operation);
        let answer: Answer;
        try {
            answer = await this.send(operation, requestId);
        } catch (error) {
            if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') {
                this.open = null; // It was never sent.
                this.away = true;
            }
            this.cause = String(error);
            return; // The panel is gone, and it is unknown whether the change was made.
        }
        if (answer.code === unknownEnd) {
            this.cause = answer.text;
            this.refused.set(answer.code, (this.refused.get(answer.code) ?? 0) + 1);
            return;
        }
        this.open = null;
        if (answer.code !== 0 || answer.status >= 300) {
            this.refused.set(answer.code, (this.refused.get(answer.code) ?? 0) + 1);
            if (!ordinary.has(answer.code)) {
                this.#options.violation(
                    `${operation.name} ${operation.path} ${JSON.stringify(operation.body)} was answered ${answer.status} ${answer.text}`
                );
            }
            return;
        }
        this.acknowledge({ operation, requestId, answer });
    }

    acknowledge(acknowledged: Acknowledged): void {
        const { operation, answer } = acknowledged;
        this.acknowledged.push(acknowledged);
        if (operation.key !== undefined) {
            this.kept = [...this.kept.slice(1 - keptAnswers), acknowledged];
        }
        const { name, token } = (answer.data ?? {}) as Fields;
        if (typeof token === 'string') {
            this.secrets.set(String(name), token);
        }
        this.take(operation.after(answer.data));
    }
}
