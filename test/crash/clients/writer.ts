/** A client that changes things one after another and remembers what it was told: the history that the panel is held against. */
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
    /** Called just before an operation is sent. */
    readonly sending: (operation: Operation) => void;
    readonly violation: (text: string) => void;
}

/** Refusals that leave everything as it was and can happen to a writer that does nothing wrong. */
const ordinary = new Set([40901, 41200, 50301]);
/** Not ready, or the answer took too long: says nothing of what became of the change. */
const unknownEnd = 50300;
const keptAnswers = 8;

export class Writer {
    readonly material: Material;
    readonly #options: WriterOptions;
    world: World = emptyWorld;
    /** Sent, and never answered. */
    open: { readonly operation: Operation; readonly requestId: string } | null = null;
    /** Why the last operation has no known end. */
    cause = '';
    /** The panel does not listen. */
    away = false;
    /** Of this round. */
    acknowledged: Acknowledged[] = [];
    refused = new Map<number, number>();
    /** Answers to requests with a key: a retry must get them again. */
    kept: Acknowledged[] = [];
    /** Secrets of API tokens by name, and those that were revoked. */
    readonly secrets = new Map<string, string>();
    readonly revoked: string[] = [];
    /** Names that no host has any more. */
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

    /** Takes a world over, with what follows from it. */
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
     * Holds what is there against the history: everything acknowledged, and the change without an answer wholly or not at all.
     * @returns whether that change was made; null when there was none
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
                this.open = null; // Never sent.
                this.away = true;
            }
            this.cause = String(error);
            return; // The panel is gone, and nobody knows what it had done.
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
