/** The tables of certificates and of accounts at CAs. Keys are sealed; names and times are stored beside the chain so that lists are fast. */
import { defineEntity, type InferEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** One certificate, or one that is only ordered. */
export const CertificateEntity = defineEntity({
    name: 'Certificate',
    tableName: 'certificate',
    properties: (p) => ({
        id: p.integer().primary().autoincrement(false),
        name: p.string(),
        source: p.string(),
        /** JSON array of DNS names. */
        domains: p.text(),
        issuer: p.string(),
        serial: p.string(),
        /** RFC 3339, UTC, milliseconds. */
        notBefore: p.string(),
        notAfter: p.string(),
        /** SHA-256 of the leaf, lower-case hexadecimal. */
        fingerprint: p.string(),
        /** PEM, the leaf first. */
        chain: p.text(),
        /** PEM, sealed under the label `certificates`. */
        sealedKey: p.text(),
        /** For orders: the DNS provider that writes the records; below, the CA and the account. */
        dnsProviderId: p.integer().nullable(),
        directory: p.string().nullable(),
        email: p.string().nullable(),
        /** JSON of key id and MAC key, sealed. */
        sealedEab: p.text().nullable(),
        autoRenew: p.boolean(),
        /** JSON of the problem that the last attempt met. */
        lastError: p.text().nullable(),
        /** Milliseconds since 1970. */
        nextAttemptAt: p.integer().nullable(),
        /** Attempts in a row that failed. */
        failures: p.integer(),
        /** The last warning that was sent, in days before the end. */
        warnedDays: p.integer().nullable(),
        /** The plugin that made it; null for people. */
        owner: p.string().nullable(),
        version: p.integer(),
        createdAt: p.string(),
        updatedAt: p.string()
    })
});

type Inferred = Omit<InferEntity<typeof CertificateEntity>, symbol>;
/** A row of the table. */
export type CertificateRow = { readonly [K in keyof Inferred]-?: Exclude<Inferred[K], undefined> };

/** An account at a CA: one for each directory and address. */
export const AcmeAccountEntity = defineEntity({
    name: 'AcmeAccount',
    tableName: 'acme_account',
    properties: (p) => ({
        id: p.integer().primary(),
        directory: p.string(),
        /** Empty: none was given. */
        email: p.string(),
        /** The id of the CA's own account that it is bound to; empty: none. */
        eabKeyId: p.string(),
        /** PEM, sealed. */
        sealedKey: p.text(),
        /** Where the CA keeps it; empty until it is known. */
        url: p.string(),
        createdAt: p.string()
    })
});

/** The tables of this feature. */
export const certificateEntities = [CertificateEntity, AcmeAccountEntity] as const;

class CreateCertificate extends Migration {
    override up(): void {
        // AUTOINCREMENT: the number of a certificate that is gone is never given to another.
        this.addSql(`create table certificate (
            id integer primary key autoincrement not null,
            name text not null,
            source text not null,
            domains text not null,
            issuer text not null,
            serial text not null,
            not_before text not null,
            not_after text not null,
            fingerprint text not null,
            chain text not null,
            sealed_key text not null,
            version integer not null,
            created_at text not null,
            updated_at text not null
        )`);
    }
}

class AddAcme extends Migration {
    override up(): void {
        for (const column of [
            'dns_provider_id integer',
            'directory text',
            'email text',
            'sealed_eab text',
            'auto_renew integer not null default 0',
            'last_error text',
            'next_attempt_at integer',
            'failures integer not null default 0',
            'warned_days integer'
        ]) {
            this.addSql(`alter table certificate add column ${column}`);
        }
        this.addSql(`create table acme_account (
            id integer primary key autoincrement not null,
            directory text not null,
            email text not null,
            eab_key_id text not null,
            sealed_key text not null,
            url text not null,
            created_at text not null,
            unique (directory, email, eab_key_id)
        )`);
    }
}

class AddOwner extends Migration {
    override up(): void {
        this.addSql('alter table certificate add column owner text');
    }
}

/** The migrations of this feature, in order. */
export const certificateMigrations: readonly MigrationObject[] = [
    { name: '0001-certificates', class: CreateCertificate },
    { name: '0002-acme', class: AddAcme },
    { name: '0003-certificate-owner', class: AddOwner }
];
