/** The fields of a certificate that concern its order at a CA. */
import { isFailure } from '@portico/sdk';

import { invalid } from '../../../platform/errors.ts';
import type { CertificateRow } from '../entities.ts';
import type { DnsWriters } from '../ports.ts';
import type { CertificateUpdate } from '../schema.ts';
import type { DatabaseCertificateStore } from '../store.ts';

/** The fields of a certificate that no CA issues to the panel. */
export const notOrdered = {
    dnsProviderId: null,
    directory: null,
    email: null,
    sealedEab: null,
    autoRenew: false,
    lastError: null,
    nextAttemptAt: null,
    failures: 0,
    warnedDays: null
} as const;

/** The fields after a change. @throws VALIDATION_FAILED, TOOL_MISSING */
export async function orderOf(
    before: CertificateRow,
    body: CertificateUpdate,
    store: Pick<DatabaseCertificateStore, 'openEab' | 'sealEab'>,
    dns: DnsWriters
): Promise<Pick<CertificateRow, 'autoRenew' | 'dnsProviderId' | 'directory' | 'email' | 'sealedEab'>> {
    const { autoRenew, dnsProviderId, directory, email, sealedEab } = before;
    if (before.source !== 'acme') {
        const named =
            (body.autoRenew ?? false)
                ? 'autoRenew'
                : (body.dnsProviderId ?? null) !== null
                  ? 'dnsProviderId'
                  : (body.acme ?? null) !== null
                    ? 'acme'
                    : null;
        if (named !== null) {
            throw invalid({
                path: named,
                message: `${named} is only for certificates of the source acme`
            });
        }
        return { autoRenew, dnsProviderId, directory, email, sealedEab };
    }
    if (body.certificate !== undefined || body.key !== undefined) {
        throw invalid({
            path: 'certificate',
            message: 'certificate comes from the CA: it is renewed, not replaced'
        });
    }
    const eab = body.acme?.eab;
    const kept = store.openEab(before);
    if (eab != null && eab.macKey === undefined && eab.keyId !== kept?.keyId) {
        throw invalid({
            path: 'acme.eab.macKey',
            message: 'acme.eab.macKey is required with another keyId'
        });
    }
    const provider = body.dnsProviderId ?? dnsProviderId;
    if (provider !== dnsProviderId) {
        await checkProvider(dns, provider);
    }
    return {
        autoRenew: body.autoRenew ?? autoRenew,
        dnsProviderId: provider,
        directory: body.acme?.directory ?? directory,
        email: body.acme?.email === undefined ? email : body.acme.email,
        sealedEab:
            eab === undefined || (eab?.macKey === undefined && eab !== null)
                ? sealedEab
                : store.sealEab(eab === null ? null : { keyId: eab.keyId, macKey: eab.macKey ?? '' })
    };
}

/** Refuses a provider that does not exist or cannot work here. @throws VALIDATION_FAILED, TOOL_MISSING */
export async function checkProvider(dns: DnsWriters, id: number | null): Promise<void> {
    if (id === null) {
        throw invalid({
            path: 'dnsProviderId',
            message: 'dnsProviderId is required: no DNS provider is the default'
        });
    }
    await dns.writer(id).catch((error: unknown) => {
        throw isFailure(error) && error.reason === 'NOT_FOUND'
            ? invalid({
                  path: 'dnsProviderId',
                  message: 'dnsProviderId must be the id of a DNS provider'
              })
            : error;
    });
}
