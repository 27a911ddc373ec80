/** Images that partners pull and build. */
import type { ContainerContract } from '../contract.ts';
import { fail } from '../errors.ts';
import type { Services } from '../services.ts';
import { labelOf } from '../spec/spec.ts';
import { buildSchema, checked, pullSchema } from './input.ts';

/** The methods of builds. */
export function createBuildMethods({
    builds,
    images,
    inventory
}: Services): Pick<ContainerContract, 'buildBegin' | 'buildWrite' | 'build' | 'removeImage' | 'pull'> {
    return {
        async pull(input, { signal }) {
            const { image, missing } = checked(pullSchema, input);
            return images.ensure(image, missing ? 'missing' : 'always', {
                signal,
                progress: () => undefined,
                log: () => undefined
            });
        },
        async buildBegin(input, { plugin }) {
            const { target = null, memoryBytes = null, cpus = null, ...rest } = checked(buildSchema, input);
            return builds.begin({ ...rest, target, memoryBytes, cpus }, plugin);
        },
        async buildWrite({ id, chunk }, { plugin }) {
            return { bytes: await builds.write(id, plugin, one(chunk)) };
        },
        build: ({ id }, { plugin, signal }) => builds.run(id, plugin, signal),
        async removeImage({ image }, { plugin }) {
            const found = await inventory.image(image);
            if (found === null) {
                return { removed: false };
            }
            const owner = found.Config?.Labels?.[labelOf.owner] ?? '';
            if (owner !== plugin) {
                throw fail.STACK_OWNED({ owner: owner === '' ? 'none' : owner });
            }
            await images.remove(found.Id, true);
            return { removed: true };
        }
    };
}

async function* one(chunk: Uint8Array): AsyncGenerator<Uint8Array> {
    yield chunk;
}
