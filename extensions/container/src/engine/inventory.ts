/** What the engine has, as the services ask for it. */
import { errors } from '@portico/sdk';

import { familiarName } from '../images/reference.ts';
import { specOf } from '../spec/from-inspect.ts';
import { isReservedLabel, labelOf, type Spec } from '../spec/spec.ts';
import { type Adopted, withStack } from './adopted.ts';
import type {
    EngineNetwork,
    EngineVolume,
    InspectedContainer,
    InspectedImage,
    Labels,
    ListedContainer,
    ListedImage
} from './documents.ts';
import type { Engine } from './engine.ts';

/** A container with its spec. */
export interface KnownContainer {
    readonly container: InspectedContainer;
    readonly spec: Spec;
}

/** So many digits of an id the engines show. */
const shortIdLength = 12;

/** Tells an id or a name of a container; anything else would be a path or a query. */
const isContainerId = (text: string): boolean => /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$/.test(text);

/** The engine also takes the first digits of an id: another container would answer to the name `bad`. */
const isMeant = ({ Id: id, Name: name }: InspectedContainer, text: string): boolean =>
    name.replace(/^\//, '') === text || (text.length >= shortIdLength && id.startsWith(text));

/** Reads containers, volumes, networks and images of the engine. */
export class Inventory {
    readonly #engine: Engine;
    readonly #adopted: Adopted;

    constructor(engine: Engine, adopted: Adopted) {
        this.#engine = engine;
        this.#adopted = adopted;
    }

    /** All containers, or those of one stack. */
    async list(stack?: string): Promise<readonly ListedContainer[]> {
        const adopted = await this.#adopted.read();
        const asked = stack === undefined || adopted.size > 0 ? null : `${labelOf.project}=${stack}`;
        return (await this.#list(asked))
            .map((each) => ({
                ...each,
                Image: familiarName(each.Image),
                Labels: withStack(given(each.Labels), adopted.get(each.Id))
            }))
            .filter(
                ({ Labels: labels }) =>
                    labels[labelOf.helper] === undefined &&
                    (stack === undefined || labels[labelOf.project] === stack)
            );
    }

    /** Containers that were made to reach volumes. */
    helpers(): Promise<readonly ListedContainer[]> {
        return this.#list(labelOf.helper);
    }

    async #list(label: string | null): Promise<readonly ListedContainer[]> {
        return this.#engine.call('GET', '/containers/json', {
            query: {
                all: true,
                ...(label === null ? {} : { filters: JSON.stringify({ label: [label] }) })
            }
        });
    }

    /** @throws NOT_FOUND 40400 */
    async container(id: string): Promise<InspectedContainer> {
        const found = isContainerId(id) ? await this.findContainer(id) : null;
        if (found === null) {
            throw errors.notFound('There is no container of that name');
        }
        return found;
    }

    /** A container by its name, its id, or at least the first twelve digits of it. */
    async findContainer(id: string): Promise<InspectedContainer | null> {
        const found = await this.#engine.find<InspectedContainer>(
            `/containers/${encodeURIComponent(id)}/json`
        );
        const adopted = await this.#adopted.read();
        return found === null || !isMeant(found, id)
            ? null
            : {
                  ...found,
                  Config: {
                      ...found.Config,
                      ...(found.Config.Image === undefined
                          ? {}
                          : { Image: familiarName(found.Config.Image) }),
                      Labels: withStack(given(found.Config.Labels ?? null), adopted.get(found.Id))
                  }
              };
    }

    /** A container with its spec. @throws NOT_FOUND 40400 */
    async known(id: string): Promise<KnownContainer> {
        const container = await this.container(id);
        return { container, spec: await this.specOf(container) };
    }

    /** The spec of a container that was inspected. */
    async specOf(container: InspectedContainer): Promise<Spec> {
        const mounted = (container.Mounts ?? []).flatMap(({ Type, Name }) =>
            Type === 'volume' && Name !== undefined ? [Name] : []
        );
        const [image, volumes, networks] = await Promise.all([
            this.image(container.Image),
            mounted.length === 0 ? new Map<string, EngineVolume>() : this.volumes(),
            this.networks()
        ]);
        return specOf({ container, image, volumes, networks });
    }

    async image(reference: string): Promise<InspectedImage | null> {
        const found = await this.#engine.find<InspectedImage>(
            `/images/${encodeURIComponent(reference)}/json`
        );
        return found === null ? null : withFamiliarNames(found);
    }

    /** All images, also those without a name. */
    async images(): Promise<readonly ListedImage[]> {
        return (await this.#engine.call<readonly ListedImage[]>('GET', '/images/json')).map(
            withFamiliarNames
        );
    }

    /** Volumes by name. */
    async volumes(): Promise<ReadonlyMap<string, EngineVolume>> {
        const volumes = (await this.#volumes()).filter(({ Labels: labels }) => !isDraft(labels));
        return new Map(volumes.map((volume) => [volume.Name, volume]));
    }

    /** Volumes whose content is to take the place of another's. */
    async drafts(): Promise<readonly EngineVolume[]> {
        return (await this.#volumes()).filter(({ Labels: labels }) => isDraft(labels));
    }

    async #volumes(): Promise<readonly EngineVolume[]> {
        const { Volumes: volumes } = await this.#engine.call<{ Volumes: readonly EngineVolume[] | null }>(
            'GET',
            '/volumes'
        );
        return volumes ?? [];
    }

    /** Networks by name. */
    async networks(): Promise<ReadonlyMap<string, EngineNetwork>> {
        const networks = await this.#engine.call<readonly EngineNetwork[]>('GET', '/networks');
        return new Map(networks.map((network) => [network.Name, network]));
    }
}

const isDraft = (labels: Labels | null | undefined): boolean => labels?.[labelOf.helper] !== undefined;

function withFamiliarNames<T extends InspectedImage | ListedImage>(image: T): T {
    return {
        ...image,
        RepoTags: image.RepoTags?.map(familiarName) ?? null,
        RepoDigests: image.RepoDigests?.map(familiarName) ?? null
    };
}

/** Labels without those that are reserved and empty: they only hide what an image says. */
function given(labels: Labels | null): Labels {
    return Object.fromEntries(
        Object.entries(labels ?? {}).filter(([name, value]) => value !== '' || !isReservedLabel(name))
    );
}
