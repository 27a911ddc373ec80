/** Which digest each image of an app must have. */
import type { AppDocument } from '../../catalogue/app-document.ts';
import { fail } from '../../errors.ts';
import { repositoryOf } from './exposure.ts';

/** An image of a plan. */
export interface PlannedImage {
    readonly service: string;
    readonly image: string;
    readonly digest: string | null;
}

/** An image with its registry, its repository and its tag. */
function wholeName(image: string): string {
    const [, tag = 'latest'] = /:([^:/@]+)(?:@.*)?$/.exec(image) ?? [];
    return `${repositoryOf(image)}:${tag}`;
}

/**
 * The digests of a plan's images by service.
 *
 * @param pinned - digests by service that an unsigned app was pinned to; a signed one names them itself
 * @throws DIGEST_MISMATCH 42252 for an image of a signed app without one
 */
export function digestsOf(
    images: readonly PlannedImage[],
    { images: named }: Pick<AppDocument, 'images'>,
    { isSigned, pinned }: { readonly isSigned: boolean; readonly pinned: Readonly<Record<string, string>> }
): Readonly<Record<string, string>> {
    const byName = new Map(Object.entries(named).map(([image, digest]) => [wholeName(image), digest]));
    const digests: Record<string, string> = {};
    for (const { service, image } of images) {
        const [, written] = /@(sha256:[0-9a-f]{64})$/.exec(image) ?? [];
        const digest = written ?? byName.get(wholeName(image)) ?? (isSigned ? undefined : pinned[service]);
        if (digest !== undefined) {
            digests[service] = digest;
        } else if (isSigned) {
            throw fail.DIGEST_MISMATCH({ image, service, why: 'the app names no digest for it' });
        }
    }
    return digests;
}
