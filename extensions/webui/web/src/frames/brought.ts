/** The pages that plugins bring, by their places. */
import type { BroughtPage, Tag } from '../schema/document.ts';

/** A page with the plugin that brings it. */
export interface Brought {
    readonly plugin: string;
    readonly page: BroughtPage;
}

/** The pages of all tags that the user may see, at one place. */
export function pagesAt(
    tags: readonly Tag[],
    place: BroughtPage['place'],
    may: (permission: string) => boolean
): readonly Brought[] {
    return tags.flatMap(({ name, 'x-pages': pages = [] }) =>
        pages
            .filter((page) => page.place === place && may(page.access))
            .map((page) => ({ plugin: name, page }))
    );
}
