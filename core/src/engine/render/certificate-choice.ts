import type { SiteCertificate } from '../site.ts';

/** A name and the certificate that its host wants. Needed when several loaded certificates cover the name: the engine would take any of them. */
export interface CertificateChoice {
    readonly name: string;
    /** Of the certificate. Certificates with the same fingerprint are the same. */
    readonly fingerprint: string;
}

/** Certificates by the names that they cover. */
export class Coverage {
    readonly #byName = new Map<string, Set<SiteCertificate>>();

    constructor(certificates: Iterable<SiteCertificate> = []) {
        for (const certificate of certificates) {
            this.add(certificate);
        }
    }

    add(certificate: SiteCertificate): void {
        for (const name of certificate.names) {
            this.#byName.set(name, (this.#byName.get(name) ?? new Set()).add(certificate));
        }
    }

    delete(certificate: SiteCertificate): void {
        for (const name of certificate.names) {
            const holders = this.#byName.get(name);
            holders?.delete(certificate);
            if (holders?.size === 0) {
                this.#byName.delete(name);
            }
        }
    }

    /** Whether another certificate covers this name too. @param counts - which certificates to look at; all by default */
    isContested(
        { name, fingerprint }: CertificateChoice,
        counts: (certificate: SiteCertificate) => boolean = () => true
    ): boolean {
        const isRival = (certificate: SiteCertificate): boolean =>
            certificate.fingerprint !== fingerprint && counts(certificate);
        return [name, coveringWildcard(name)].some((each) =>
            [...(this.#byName.get(each) ?? [])].some(isRival)
        );
    }
}

/** The wildcard whose certificate the engine would take for this name. */
export const coveringWildcard = (name: string): string =>
    `*${name.slice(name.indexOf('.') < 0 ? name.length : name.indexOf('.'))}`;

/** Compares two objects by name, in the order of code units, for `sort`. */
export const byName = (a: { readonly name: string }, b: { readonly name: string }): number =>
    a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
