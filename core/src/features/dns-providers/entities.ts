/** What is kept of DNS providers, and of the records that they hold for a challenge that is under way. */
import { defineEntity, type InferEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** The table of DNS providers; their credentials are sealed. */
export const DnsProviderEntity = defineEntity({
    name: 'DnsProvider',
    tableName: 'dns_provider',
    properties: (p) => ({
        id: p.integer().primary(),
        name: p.string(),
        type: p.string(),
        /** JSON of the fields, sealed under the label `dns-providers`. */
        sealedCredentials: p.text(),
        isDefault: p.boolean(),
        version: p.integer(),
        createdAt: p.string(),
        updatedAt: p.string()
    })
});

/** A row of the table. */
export type DnsProviderRow = Readonly<Omit<InferEntity<typeof DnsProviderEntity>, symbol>>;

/** A record that was or will be written and is not known to be gone. */
export const DnsChallengeEntity = defineEntity({
    name: 'DnsChallenge',
    tableName: 'dns_challenge',
    properties: (p) => ({
        id: p.integer().primary(),
        providerId: p.integer(),
        /** JSON of what removing it takes, sealed under the label `dns-providers`. */
        sealedRecord: p.text(),
        createdAt: p.string()
    })
});

/** The tables of this feature. */
export const dnsEntities = [DnsProviderEntity, DnsChallengeEntity] as const;

class CreateDnsTables extends Migration {
    override up(): void {
        this.addSql(`create table dns_provider (
            id integer primary key autoincrement not null,
            name text not null unique,
            type text not null,
            sealed_credentials text not null,
            is_default integer not null,
            version integer not null,
            created_at text not null,
            updated_at text not null
        )`);
        this.addSql(
            'create unique index dns_provider_default on dns_provider (is_default) where is_default = 1'
        );
        this.addSql(`create table dns_challenge (
            id integer primary key autoincrement not null,
            provider_id integer not null references dns_provider (id) on delete cascade,
            sealed_record text not null,
            created_at text not null
        )`);
    }
}

/** The migrations of this feature, in order. */
export const dnsMigrations: readonly MigrationObject[] = [
    { name: '0001-dns-providers', class: CreateDnsTables }
];
