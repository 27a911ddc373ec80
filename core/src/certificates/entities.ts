/** What is kept of a certificate. The key is sealed; everything else can be read from the chain, and is kept beside it to be listed. */
import type { InferEntity, MigrationObject } from '@mikro-orm/core';
import { defineEntity } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

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
        version: p.integer(),
        createdAt: p.string(),
        updatedAt: p.string()
    })
});

export type CertificateRow = Readonly<Omit<InferEntity<typeof CertificateEntity>, symbol>>;

export const certificateEntities = [CertificateEntity] as const;

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

export const certificateMigrations: readonly MigrationObject[] = [{ name: '0001-certificates', class: CreateCertificate }];
