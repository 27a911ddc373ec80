import { Link, useLocation, useSearchParams } from 'wouter-preact';

/** One tab: the part of a screen that the address's `tab` names. */
export interface Tab {
    readonly id: string;
    readonly title: string;
}

/** The tab that the address names; the first where it names none. */
export function useTab(tabs: readonly Tab[]): string {
    const [search] = useSearchParams();
    const wanted = search.get('tab');
    return (tabs.find(({ id }) => id === wanted) ?? tabs[0])?.id ?? '';
}

/** Links to the parts of a screen. */
export function Tabs({ label, tabs }: { readonly label: string; readonly tabs: readonly Tab[] }) {
    const [location] = useLocation();
    const chosen = useTab(tabs);
    return (
        <nav class="tabs" aria-label={label}>
            {tabs.map(({ id, title }, index) => (
                <Link
                    key={id}
                    href={index === 0 ? location : `${location}?tab=${id}`}
                    aria-current={id === chosen ? 'page' : undefined}
                >
                    {title}
                </Link>
            ))}
        </nav>
    );
}
