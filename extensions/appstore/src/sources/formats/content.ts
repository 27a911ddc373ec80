/** What a source offers, as it was read: the same for every kind of source. */
import type { AppDocument } from '../../catalogue/app-document.ts';
import type { Template } from '../../catalogue/index-document.ts';
import type { Texts } from '../../catalogue/texts.ts';
import type { FileRow } from '../../entities.ts';

/** What lists show of an app. */
export interface AppAbout {
    readonly title: Texts;
    readonly tagline: Texts;
    readonly categories: readonly string[];
    readonly architectures: readonly string[];
    readonly website: string | null;
}

/** An app that was read. */
export interface ReadApp {
    readonly id: string;
    readonly version: string;
    readonly about: AppAbout;
    /** SHA-256 of its document; null where it cannot be taken over. */
    readonly document: string | null;
    readonly icon: string | null;
    readonly why: string | null;
}

/** A category of a catalogue, with its title by language. */
export interface Category {
    readonly id: string;
    readonly title: Texts;
}

/** What was read of a source. */
export interface SourceContent {
    /** SHA-256 of the index, or the commit: the same again means that nothing changed. */
    readonly taken: string;
    readonly sequence: number | null;
    readonly commit: string | null;
    readonly expiresAt: number | null;
    /** The key that signed it; null for kinds without signatures. */
    readonly publicKey: string | null;
    readonly nextKey: string | null;
    readonly categories: readonly Category[];
    readonly templates: readonly Template[];
    readonly apps: readonly ReadApp[];
    /** Documents and icons that were not there yet. */
    readonly files: readonly FileRow[];
}

/** What lists show of an app with this document. */
export const aboutOf = (document: AppDocument): AppAbout => ({
    title: document.title,
    tagline: document.tagline,
    categories: document.categories,
    architectures: document.architectures,
    website: document.website || null
});
