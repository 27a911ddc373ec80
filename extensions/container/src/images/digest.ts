/** By which digests a registry knows an image. */
import type { InspectedImage } from '../engine/documents.ts';
import { parseReference } from './reference.ts';

/**
 * The digests by which the registry of a name knows an image; empty for an image that came from no registry. Podman tells two of an image that came by a
 * list for several platforms: that of the image, and that of the list.
 */
export function digestsIn({ RepoDigests: digests }: InspectedImage, reference: string): readonly string[] {
    const repository = parseReference(reference)?.repository ?? reference;
    const names = [repository, `docker.io/${repository}`, `docker.io/library/${repository}`];
    return (digests ?? [])
        .map((each) => each.split('@'))
        .filter(([name = '']) => names.includes(name))
        .map(([, digest = '']) => digest);
}

/** The first of {@link digestsIn}; null where there is none. */
export const digestIn = (image: InspectedImage, reference: string): string | null =>
    digestsIn(image, reference)[0] ?? null;
