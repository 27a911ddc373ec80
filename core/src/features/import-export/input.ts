/** Checks what an export or an import asks for. */
import type { Section } from '../../engine/section.ts';
import type { Call } from '../../platform/call.ts';
import { fail, type Invalid, invalid } from '../../platform/errors.ts';
import type { ExportDocument } from './document/document.ts';
import { open, type SecretMap, Unsealed } from './document/vault.ts';

/** At most so many faults are listed. */
const mostFaults = 200;

/** Collects the faults of a document. */
export class Faults {
    readonly list: Invalid[] = [];

    add(path: string, message: string): void {
        if (this.list.length < mostFaults) {
            this.list.push({ path, message });
        }
    }

    /** @throws VALIDATION_FAILED when there is any */
    throw(): void {
        if (this.list.length > 0) {
            throw invalid(...this.list);
        }
    }
}

/** The sections that are named, and those that they need. Default: all that the caller may read. @throws VALIDATION_FAILED */
export function chooseSections(
    all: readonly Section[],
    names: readonly string[] | undefined,
    call: Call
): readonly Section[] {
    if (names === undefined) {
        return all.filter(({ permissions }) => call.actor.can(permissions.read));
    }
    const unknown = names.flatMap((name, at) =>
        all.some((section) => section.name === name)
            ? []
            : [
                  {
                      path: `sections.${at}`,
                      message: `There is no section ${name}; there are ${all.map((section) => section.name).join(', ')}`
                  }
              ]
    );
    if (unknown.length > 0) {
        throw invalid(...unknown);
    }
    const wanted = new Set(names);
    all.filter(({ name }) => names.includes(name)).forEach(({ needs = [] }) =>
        needs.forEach((name) => wanted.add(name))
    );
    return all.filter(({ name }) => wanted.has(name));
}

/** Opens the secrets of a document. @throws VALIDATION_FAILED for a missing or wrong passphrase, and for a document that was changed */
export async function openSecrets(
    { secrets, ...document }: ExportDocument,
    passphrase: string | undefined
): Promise<SecretMap | null> {
    if (secrets === undefined) {
        return null;
    }
    if (passphrase === undefined) {
        throw invalid({ path: 'passphrase', message: 'passphrase is required: the document has secrets' });
    }
    try {
        return await open(secrets, passphrase, document);
    } catch (error) {
        if (!(error instanceof Unsealed)) {
            throw error;
        }
        throw invalid(
            error.why === 'passphrase'
                ? { path: 'passphrase', message: 'passphrase is wrong' }
                : { path: 'document', message: 'document is damaged, or was changed after it was sealed' }
        );
    }
}

/** Refuses a caller without the permission. @throws FORBIDDEN 40300 */
export function requirePermission(call: Call, permission: string): void {
    if (!call.actor.can(permission)) {
        throw fail.FORBIDDEN({ permission });
    }
}

/** A secret that is JSON: undefined when there is none, null when it is damaged. */
export function parseSecret(text: string | undefined): unknown {
    try {
        return text === undefined ? undefined : (JSON.parse(text) as unknown);
    } catch {
        return null;
    }
}
