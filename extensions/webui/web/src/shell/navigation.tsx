/** The panel's navigation: the rooms of the core, then the plugins that run, in their groups. */
import { Link, useLocation } from 'wouter-preact';

import { useDocument } from '../api/document.ts';
import { logOut } from '../api/login.ts';
import { useMay, useMe } from '../api/queries.ts';
import { pagesAt } from '../frames/brought.ts';
import { Button } from '../kit/button.tsx';
import { LanguageButton } from '../kit/language.tsx';
import type { Tag } from '../schema/document.ts';
import { inWords } from '../schema/schema.ts';
import { t } from '../words/t.ts';

interface Place {
    readonly href: string;
    readonly title: string;
    readonly permission?: string;
}

const core = (): readonly Place[] => [
    { href: '/', title: t('Overview') },
    { href: '/p/hosts', title: t('Hosts'), permission: 'hosts:read' },
    { href: '/p/certificates', title: t('Certificates'), permission: 'certificates:read' },
    { href: '/p/dns-providers', title: t('DNS providers'), permission: 'dns:read' },
    { href: '/p/proxyengine', title: t('Engine'), permission: 'engine:read' }
];
const system = (): readonly Place[] => [
    { href: '/plugins', title: t('Plugins'), permission: 'plugins:read' },
    { href: '/p/users', title: t('Users'), permission: 'users:read' },
    { href: '/p/audit', title: t('Audit log'), permission: 'audit:read' },
    { href: '/p/tasks', title: t('Tasks') },
    { href: '/settings', title: t('Settings'), permission: 'settings:read' }
];

/** The list of places, and the user. */
export function Navigation() {
    const may = useMay();
    const me = useMe();
    // A small part of the document: its tags name all plugins that run.
    const { data } = useDocument('panel');
    const plugins = (data?.tags ?? []).filter((tag) => tag['x-kind'] === 'nav' && tag.name !== 'webui');
    const groups = Map.groupBy(plugins, (tag) => tag['x-parent'] ?? '');
    const permitted = (places: readonly Place[]): readonly Place[] =>
        places.filter(({ permission }) => may(permission));
    return (
        <nav class="navigation" aria-label={t('Panel')}>
            <Link class="brand" href="/">
                <img src="/favicon.svg" alt="" width="24" height="24" /> Portico
            </Link>
            <Places places={permitted(core())} />
            {[...groups].map(([group, tags]) => (
                <Places
                    key={group}
                    title={group === '' ? t('Extensions') : t(group)}
                    places={tags
                        .filter((tag) => may(`${tag.name}:read`))
                        .flatMap((tag) => placesOf(tag, may))}
                />
            ))}
            <Places title={t('System')} places={permitted(system())} />
            <footer>
                <Link href="/account">{me?.username ?? ''}</Link>
                <LanguageButton />
                <Button look="quiet" onPress={logOut}>
                    {t('Log out')}
                </Button>
            </footer>
        </nav>
    );
}

function Places({ title, places }: { readonly title?: string; readonly places: readonly Place[] }) {
    const [location] = useLocation();
    if (places.length === 0) {
        return null;
    }
    return (
        <>
            {title === undefined ? null : <h2>{title}</h2>}
            <ul>
                {places.map(({ href, title: text }) => (
                    <li key={href}>
                        <Link href={href} aria-current={location === href ? 'page' : undefined}>
                            {text}
                        </Link>
                    </li>
                ))}
            </ul>
        </>
    );
}

/** The pages that a plugin brings for the navigation; without any, the one that is generated for it. */
function placesOf(tag: Tag, may: (permission: string) => boolean): readonly Place[] {
    const pages = pagesAt([tag], 'nav', may);
    return pages.length === 0
        ? [{ href: `/p/${tag.name}`, title: t(tag['x-summary'] ?? inWords(tag.name)) }]
        : pages.map(({ page }) => ({ href: `/p/${tag.name}/${page.id}`, title: t(page.title) }));
}
