/** What a stack is made of, and how it is deployed. */

/** A compose text with its environment. */
export interface StackSource {
    readonly compose: string;
    readonly env: string;
}

/** The image that a service runs. */
export interface ServiceImage {
    readonly image: string;
    /** Null while it is not there. */
    readonly imageId: string | null;
    readonly digest: string | null;
}

/** By service: the digest by which a registry knows the image, or the id of an image that was built here; both are `sha256:…`. */
export type Digests = Readonly<Record<string, string>>;

/** How a deploy is done. */
export interface DeployInput {
    readonly start: boolean;
    readonly waitSeconds: number;
    readonly onFailure: 'rollback' | 'keep';
    readonly consent: string | null;
    /** Images that services are bound to; without one the tag says which. */
    readonly digests?: Digests | undefined;
}

/** How a stack updates by itself. */
export interface AutoUpdate {
    readonly mode: 'off' | 'check' | 'apply';
    readonly everyHours: number;
}

/** What the name of a stack is made of. */
export const stackNameWords = 'small letters, digits, _ and -';
/** The form of a stack's name. */
export const stackNameForm = /^[a-z0-9][a-z0-9_-]{0,62}$/;
/** Tells the name of a stack. */
export const isStackName = (text: string): boolean => stackNameForm.test(text);
