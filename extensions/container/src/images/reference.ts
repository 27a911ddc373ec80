/** Names of images: registry, repository, tag and digest. */

/** The parts of a name. */
export interface Reference {
    /** `docker.io` where none is written. */
    readonly registry: string;
    /** With the registry, where one is written. */
    readonly repository: string;
    readonly tag: string | null;
    readonly digest: string | null;
}

const part = '[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*';
const domain = '(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\\[[0-9a-fA-F:]+\\])(?::\\d{1,5})?';
const shape = new RegExp(
    `^((?:${domain}/)?${part}(?:/${part})*)(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$`
);

const idShape = /^sha256:[0-9a-f]{64}$/;

/** Tells the name of an image, or the id of one. */
export const isReference = (text: string): boolean =>
    text.length <= 255 && (shape.test(text) || idShape.test(text));

/** The name as people write it: Podman writes the registry of Docker Hub out, Docker does not. */
export const familiarName = (name: string): string => name.replace(/^docker\.io\/(?:library\/)?/, '');

/** The parts of a name; null where it is none, such as an id, which has the shape of one. */
export function parseReference(text: string): Reference | null {
    const [, repository, tag = null, digest = null] = (idShape.test(text) ? null : shape.exec(text)) ?? [];
    if (repository === undefined) {
        return null;
    }
    const [first = '', ...rest] = repository.split('/');
    const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
    return { registry: hasRegistry ? first : 'docker.io', repository, tag, digest };
}
