import type { SiteCertificate } from '../../site.ts';
import { byName, Coverage, coveringWildcard } from '../certificate-choice.ts';
import type { CompiledSite, NameTls } from '../compile/site.ts';
import { certificateName, type TlsNames } from '../compile/tls.ts';

interface RunningTls {
    readonly internal: ReadonlySet<string>;
    readonly wildcards: ReadonlySet<string>;
    readonly managed: ReadonlySet<string>;
    /** `names` where they are known. */
    readonly certificates: ReadonlyMap<
        number,
        TlsNames['certificates'][number] & { readonly names?: readonly string[] }
    >;
    /** Name to fingerprint. */
    readonly choices: ReadonlyMap<string, string>;
}

/** Marks in `lacking` what the running configuration lacks, or has although it should not. Checks only what a change touched. */
export class TlsNeeds {
    readonly #lacking: Set<string>;
    readonly #names = { auto: new Set<string>(), internal: new Set<string>(), wildcard: new Set<string>() };
    readonly #certificates = new Map<number, SiteCertificate>();
    readonly #coverage = new Coverage();
    /** Name to the id of the certificate that its host wants for it. */
    readonly #chosen = new Map<string, number>();
    readonly #users = new Map<number, number>();
    /** Certificates that are still loaded and that no site uses any more. */
    readonly #left = new Map<number, readonly string[] | null>();
    #running: RunningTls | null = null;

    constructor(lacking: Set<string>) {
        this.#lacking = lacking;
    }

    get certificates(): ReadonlyMap<number, SiteCertificate> {
        return this.#certificates;
    }

    add({ names, certificateId }: CompiledSite): void {
        names.forEach(({ name, tls }) => this.#setOf(tls)?.add(name));
        if (certificateId !== null) {
            names.forEach(({ name, tls }) => tls === 'certificate' && this.#chosen.set(name, certificateId));
            this.#users.set(certificateId, (this.#users.get(certificateId) ?? 0) + 1);
        }
    }

    remove({ names, certificateId }: CompiledSite): void {
        names.forEach(({ name, tls }) => {
            this.#setOf(tls)?.delete(name);
            this.#chosen.delete(name);
        });
        const users = certificateId === null ? 0 : (this.#users.get(certificateId) ?? 0) - 1;
        if (certificateId !== null && users > 0) {
            this.#users.set(certificateId, users);
        } else if (certificateId !== null) {
            this.#users.delete(certificateId);
        }
    }

    setCertificate(id: number, certificate: SiteCertificate | null): void {
        const before = this.#certificates.get(id);
        if (before !== undefined) {
            this.#coverage.delete(before);
            this.#certificates.delete(id);
        }

        if (certificate !== null) {
            this.#coverage.add(certificate);
            this.#certificates.set(id, certificate);
        }
    }

    /** The TLS part of a configuration, sorted. */
    names(): TlsNames {
        const { auto, internal, wildcard } = this.#names;
        const managed =
            wildcard.size === 0 ? [] : [...auto].filter((name) => wildcard.has(coveringWildcard(name)));
        return {
            internal: [...internal].sort(),
            wildcards: [...wildcard].sort(),
            managed: managed.sort(),
            certificates: [...this.#certificates.values()]
                .filter(({ id }) => this.#users.has(id))
                .sort((a, b) => a.id - b.id),
            choices: [...this.#chosen.keys()]
                .flatMap((name) => {
                    const fingerprint = this.#fingerprintFor(name);
                    return fingerprint !== undefined && this.#isContested(name, fingerprint)
                        ? [{ name, fingerprint }]
                        : [];
                })
                .sort(byName)
        };
    }

    /** The same, with harmless remains of earlier sites in a running configuration. */
    namesWith(found: Pick<TlsNames, 'internal' | 'certificates' | 'choices'>): TlsNames {
        const names = this.names();
        const wanted = new Set(names.choices.map(({ name }) => name));
        const spare = found.choices.filter(
            ({ name, fingerprint }) =>
                !wanted.has(name) &&
                !this.#names.auto.has(name) &&
                !this.#names.internal.has(name) &&
                (this.#fingerprintFor(name) ?? fingerprint) === fingerprint
        );
        const left = found.internal.filter(
            (name) => !this.#names.auto.has(name) && !this.#names.internal.has(name)
        );
        return {
            ...names,
            internal: [...names.internal, ...left].sort(),
            certificates: [
                ...names.certificates,
                ...found.certificates.filter(({ id }) => !this.#users.has(id))
            ].sort((a, b) => a.id - b.id),
            choices: [...names.choices, ...spare].sort(byName)
        };
    }

    /** The engine runs a configuration with these names. `lacking` is expected to be empty. */
    take(names: TlsNames): void {
        this.#running = {
            internal: new Set(names.internal),
            wildcards: new Set(names.wildcards),
            managed: new Set(names.managed),
            certificates: new Map(names.certificates.map((certificate) => [certificate.id, certificate])),
            choices: new Map(names.choices.map(({ name, fingerprint }) => [name, fingerprint]))
        };
        this.#left.clear();
        names.certificates.forEach(({ id }) => this.checkCertificate(id));
        if (this.#left.size > 0) {
            [...this.#names.auto, ...this.#names.internal, ...this.#chosen.keys()].forEach((name) =>
                this.#checkName(name)
            );
        }
    }

    check({ names, certificateId }: CompiledSite): void {
        if (certificateId !== null) {
            this.checkCertificate(certificateId);
        }

        names.forEach(({ name }) => this.#checkName(name));
    }

    checkCertificate(id: number): void {
        const running = this.#running?.certificates.get(id);
        const used = this.#users.has(id);
        const present = this.#certificates.get(id);
        // A loaded certificate that was removed or replaced must go, also when no site uses it: visitors who name it would be shown it.
        this.#mark(
            `certificate ${id}`,
            this.#running !== null &&
                (running === undefined
                    ? used && present !== undefined
                    : present === undefined || certificateName(running) !== certificateName(present))
        );
        if (running === undefined || used) {
            this.#left.delete(id);
        } else {
            this.#left.set(id, running.names ?? null);
        }

        for (const name of running?.names ?? []) {
            this.#checkName(name);
            if (name.startsWith('*.')) {
                this.#checkBelow(name);
            }
        }
    }

    /** Checks every name, after an uploaded wildcard was added or removed. That is rare, and costs a load anyway. */
    #checkBelow(wildcard: string): void {
        for (const name of [...this.#names.auto, ...this.#names.internal]) {
            if (coveringWildcard(name) === wildcard) {
                this.#checkName(name);
            }
        }
    }

    #checkName(name: string): void {
        const running = this.#running;
        if (running === null) {
            return;
        }

        const { auto, internal, wildcard } = this.#names;
        const covering = coveringWildcard(name);
        this.#mark(
            `name ${name}`,
            (internal.has(name) && !running.internal.has(name)) ||
                // The engine's own authority would sign for a name that wants a public certificate.
                (auto.has(name) &&
                    (running.internal.has(name) || (wildcard.has(covering) && !running.managed.has(name)))) ||
                // A wildcard's certificate stays in the engine's memory until the next load, and the engine would use it for every name below it.
                wildcard.has(name) !== running.wildcards.has(name) ||
                ((auto.has(name) || internal.has(name)) &&
                    (running.choices.has(name) || this.#isCoveredByLeft(name, covering))) ||
                this.#isShownAnother(name, running.choices.get(name))
        );
    }

    /** Whether the running engine would take another certificate than the one that the name's host wants, or any. */
    #isShownAnother(name: string, shown: string | undefined): boolean {
        const wanted = this.#fingerprintFor(name);
        return (
            wanted !== undefined &&
            (shown === undefined
                ? this.#isContested(name, wanted) || this.#isCoveredByLeft(name, coveringWildcard(name))
                : shown !== wanted)
        );
    }

    /** The fingerprint of the certificate that the name's host wants; undefined when it wants none or a missing one. */
    #fingerprintFor(name: string): string | undefined {
        return this.#certificates.get(this.#chosen.get(name) ?? 0)?.fingerprint;
    }

    #isContested(name: string, fingerprint: string): boolean {
        return this.#coverage.isContested({ name, fingerprint }, ({ id }) => this.#users.has(id));
    }

    /** Whether the engine would take a loaded certificate that no site uses any more for a name that wants another one. */
    #isCoveredByLeft(name: string, covering: string): boolean {
        for (const names of this.#left.values()) {
            if (names === null || names.some((other) => other === name || other === covering)) {
                return true;
            }
        }

        return false;
    }

    #setOf(tls: NameTls): Set<string> | null {
        return tls === 'auto' || tls === 'internal' || tls === 'wildcard' ? this.#names[tls] : null;
    }

    #mark(key: string, lacking: boolean): void {
        if (lacking) {
            this.#lacking.add(key);
        } else {
            this.#lacking.delete(key);
        }
    }
}
