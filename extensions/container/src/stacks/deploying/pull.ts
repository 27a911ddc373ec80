/** Brings the images of a stack before anything of it is touched. */
import { errors } from '@portico/sdk';

import type { Inventory } from '../../engine/inventory.ts';
import type { Images } from '../../images/images.ts';
import type { ServiceImage } from '../source.ts';
import type { WorkRun } from '../work.ts';
import { repositoryOf } from './digests.ts';

/**
 * The images that are to run, by service, after those that are missing came. `isNewer`: the name of the service's image is asked anew; else an image that a
 * revision is bound to comes by its digest.
 *
 * @throws REGISTRY_FAILED 50250; NOT_FOUND 40400 for an image that is gone and was in no registry
 */
export async function pullImages(
    wantedImages: ReadonlyMap<string, ServiceImage>,
    isNewer: (service: string) => boolean,
    {
        images,
        inventory,
        run
    }: { readonly images: Images; readonly inventory: Inventory; readonly run: WorkRun }
): Promise<ReadonlyMap<string, ServiceImage>> {
    const found = new Map<string, ServiceImage>();
    for (const [service, wanted] of wantedImages) {
        run.signal.throwIfAborted();
        const newer = isNewer(service);
        if (wanted.imageId !== null && !newer) {
            if ((await inventory.image(wanted.imageId)) === null) {
                if (wanted.digest === null) {
                    throw errors.notFound(`The image of ${service} is gone, and no registry had it`);
                }
                await images.pull(`${repositoryOf(wanted.image)}@${wanted.digest}`, run);
            }
            found.set(service, wanted);
            continue;
        }
        if (wanted.imageId === null && wanted.digest !== null && !newer) {
            const { id } = await images.pull(`${repositoryOf(wanted.image)}@${wanted.digest}`, run);
            found.set(service, { ...wanted, imageId: id });
            continue;
        }
        const { id, digest } = await images
            .ensure(wanted.image, newer ? 'always' : 'missing', run)
            .catch((error: unknown) => {
                // An image that was made on this machine is in no registry.
                if (newer && wanted.imageId !== null && wanted.digest === null) {
                    return { id: wanted.imageId, digest: null };
                }
                throw error;
            });
        found.set(service, { image: wanted.image, imageId: id, digest });
    }
    return found;
}
