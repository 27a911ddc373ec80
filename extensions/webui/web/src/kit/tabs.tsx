import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
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
        <TabBar label={label} chosen={chosen}>
            {tabs.map(({ id, title }, index) => (
                <Link
                    key={id}
                    href={index === 0 ? location : `${location}?tab=${id}`}
                    aria-current={id === chosen ? 'page' : undefined}
                >
                    {title}
                </Link>
            ))}
        </TabBar>
    );
}

/** What holds the links of tabs. On a narrow screen it scrolls, and the chosen one is brought into view. */
export function TabBar({
    label,
    chosen,
    children
}: {
    readonly label: string;
    /** Changes when another tab is chosen. */
    readonly chosen: string;
    readonly children: ComponentChildren;
}) {
    const bar = useRef<HTMLElement>(null);
    useEffect(() => {
        const link = bar.current?.querySelector<HTMLElement>('[aria-current=page]');
        if (bar.current !== null && link) {
            bar.current.scrollLeft = link.offsetLeft - bar.current.offsetLeft - 16;
        }
    }, [chosen]);
    return (
        <nav ref={bar} class="tabs" aria-label={label}>
            {children}
        </nav>
    );
}
