/** What is kept of requests with an Idempotency-Key. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** A claimed key. `id` is the hash of actor and key: what a client chose as its key is not kept. */
export const IdempotencyKeyEntity = defineEntity({
    name: 'IdempotencyKey',
    tableName: 'idempotency_keys',
    properties: (p) => ({
        id: p.string().primary(),
        actor: p.string(),
        fingerprint: p.string(),
        /** Milliseconds since 1970. */
        claimedAt: p.integer(),
        /** The answer, sealed; null while the request has no known end. */
        answer: p.text().nullable()
    })
});

/** Every entity of this part. */
export const idempotencyEntities = [IdempotencyKeyEntity] as const;

class CreateIdempotencyTable extends Migration {
    override up(): void {
        this.addSql(`create table idempotency_keys (
            id text primary key not null,
            actor text not null,
            fingerprint text not null,
            claimed_at integer not null,
            answer text
        ) without rowid`);
        this.addSql('create index idempotency_keys_actor on idempotency_keys (actor, claimed_at)');
        this.addSql('create index idempotency_keys_claimed_at on idempotency_keys (claimed_at)');
    }
}

/** The tables of this part, in the order in which they were added. */
export const idempotencyMigrations: readonly MigrationObject[] = [
    { name: '0001-idempotency', class: CreateIdempotencyTable }
];
