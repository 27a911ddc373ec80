/** What a page of a plugin is told of the panel around it. */
import type { BroughtPage } from '../schema/document.ts';
import { language } from '../words/language.ts';

/** What `connect()` of the SDK gets first, and again whenever it changes. */
export interface FrameContext {
    readonly colors: Readonly<Record<string, string>>;
    readonly scheme: 'light' | 'dark';
    readonly language: string;
    readonly permissions: readonly string[];
    readonly visible: boolean;
    readonly place: BroughtPage['place'];
    readonly host: number | null;
    readonly location: string;
}

const colors = [
    'ground',
    'surface',
    'raised',
    'line',
    'text',
    'dim',
    'accent',
    'accent-ground',
    'good',
    'warning',
    'bad',
    'radius'
];
const dark = matchMedia('(prefers-color-scheme: dark)');

/** The context as it is now. */
export function contextOf(
    plugin: string,
    permissions: readonly string[],
    where: Pick<FrameContext, 'place' | 'host' | 'location'>
): FrameContext {
    const style = getComputedStyle(document.documentElement);
    const chosen = style.colorScheme;
    return {
        ...where,
        colors: Object.fromEntries(
            colors.map((name) => [`--portico-${name}`, style.getPropertyValue(`--${name}`).trim()])
        ),
        scheme: (chosen === 'light dark' || chosen === 'normal' ? dark.matches : chosen === 'dark')
            ? 'dark'
            : 'light',
        language: language(),
        permissions: permissions
            .filter((each) => each.startsWith(`${plugin}:`))
            .map((each) => each.slice(plugin.length + 1)),
        visible: !document.hidden
    };
}

/** Calls the listener when the scheme or the visibility changes. Returns what stops that. */
export function onContext(listener: () => void): () => void {
    dark.addEventListener('change', listener);
    document.addEventListener('visibilitychange', listener);
    return () => {
        dark.removeEventListener('change', listener);
        document.removeEventListener('visibilitychange', listener);
    };
}
