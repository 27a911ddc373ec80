/** Images that a caller binds services to, by digest instead of by tag. */
import { errors } from '@portico/sdk';

import type { Inventory } from '../../engine/inventory.ts';
import type { Digests, ServiceImage } from '../source.ts';

const form = /^sha256:[0-9a-f]{64}$/;

/** The name of an image without tag and digest. */
export const repositoryOf = (image: string): string => image.replace(/(:[^:/]*)?(@.*)?$/, '');

/**
 * The images that services are bound to. One that is not there yet has no id, and comes by its digest.
 *
 * @throws VALIDATION_FAILED 40001 for what is no digest, or names no service
 */
export async function bindDigests(
    digests: Digests,
    services: readonly { readonly name: string; readonly image: string }[],
    inventory: Inventory
): Promise<ReadonlyMap<string, ServiceImage>> {
    const bound = new Map<string, ServiceImage>();
    for (const [service, digest] of Object.entries(digests)) {
        const image = services.find(({ name }) => name === service)?.image;
        if (image === undefined || !form.test(digest)) {
            const message = image === undefined ? 'There is no such service' : 'A digest is sha256:…';
            throw errors.invalid([{ path: `digests.${service}`, message }]);
        }
        const built = await inventory.image(digest);
        const pulled = built ?? (await inventory.image(`${repositoryOf(image)}@${digest}`));
        bound.set(service, {
            image,
            imageId: pulled?.Id ?? null,
            digest: built?.Id === digest ? null : digest
        });
    }
    return bound;
}
