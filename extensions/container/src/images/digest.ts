/** By which digest a registry knows an image. */
import type { InspectedImage } from '../engine/documents.ts';
import { parseReference } from './reference.ts';

/** The digest by which the registry of a name knows an image; null for an image that came from no registry. */
export function digestIn({ RepoDigests: digests }: InspectedImage, reference: string): string | null {
    const repository = parseReference(reference)?.repository ?? reference;
    const found = (digests ?? []).find((each) => {
        const name = each.split('@')[0] ?? '';
        return (
            name === repository ||
            name === `docker.io/${repository}` ||
            name === `docker.io/library/${repository}`
        );
    });
    return found?.split('@')[1] ?? null;
}
