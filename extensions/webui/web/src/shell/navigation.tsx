/** The panel's navigation: the rooms of the core, then the plugins that run, in their groups. */
import { Link, useLocation } from 'wouter-preact';

import { useDocument } from '../api/document.ts';
import { logOut } from '../api/login.ts';
import { useMay, useMe } from '../api/queries.ts';
import { pagesAt } from '../frames/brought.ts';
import { Button } from '../kit/button.tsx';
import { Icon } from '../kit/icon.tsx';
import { LanguageButton } from '../kit/language.tsx';
import type { Tag } from '../schema/document.ts';
import { inWords } from '../schema/schema.ts';
import { t } from '../words/t.ts';

interface Place {
    readonly href: string;
    readonly title: string;
    readonly icon: string;
    readonly permission?: string;
}

const core = (): readonly Place[] => [
    { href: '/', title: t('Overview'), icon: 'overview' },
    { href: '/hosts', title: t('Hosts'), icon: 'globe', permission: 'hosts:read' },
    { href: '/certificates', title: t('Certificates'), icon: 'shield', permission: 'certificates:read' },
    { href: '/p/dns-providers', title: t('DNS providers'), icon: 'compass', permission: 'dns:read' },
    { href: '/engine', title: t('Engine'), icon: 'engine', permission: 'engine:read' }
];
const system = (): readonly Place[] => [
    { href: '/plugins', title: t('Plugins'), icon: 'puzzle', permission: 'plugins:read' },
    { href: '/users', title: t('Users'), icon: 'users', permission: 'users:read' },
    { href: '/audit', title: t('Audit log'), icon: 'history', permission: 'audit:read' },
    { href: '/tasks', title: t('Tasks'), icon: 'tasks' },
    { href: '/notifications', title: t('Notifications'), icon: 'bell', permission: 'settings:read' },
    { href: '/exchange', title: t('Import and export'), icon: 'transfer', permission: 'export:run' },
    { href: '/settings', title: t('Settings'), icon: 'settings', permission: 'settings:read' }
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
                <Link href="/account">
                    <Icon name="user" />
                    {me?.username ?? ''}
                </Link>
                <span class="row">
                    <LanguageButton />
                    <Button look="quiet" label={t('Log out')} onPress={logOut}>
                        <Icon name="exit" />
                    </Button>
                </span>
            </footer>
        </nav>
    );
}

function Places({ title, places }: { readonly title?: string; readonly places: readonly Place[] }) {
    const [location] = useLocation();
    const isHere = (href: string): boolean =>
        location === href || (href !== '/' && location.startsWith(`${href}/`));
    if (places.length === 0) {
        return null;
    }
    return (
        <>
            {title === undefined ? null : <h2>{title}</h2>}
            <ul>
                {places.map(({ href, title: text, icon }) => (
                    <li key={href}>
                        <Link href={href} aria-current={isHere(href) ? 'page' : undefined}>
                            <Icon name={icon} />
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
    const icon = tag['x-icon'] ?? tag.name;
    return pages.length === 0
        ? [{ href: `/p/${tag.name}`, title: t(tag['x-summary'] ?? inWords(tag.name)), icon }]
        : pages.map(({ page }) => ({
              href: `/p/${tag.name}/${page.id}`,
              title: t(page.title),
              icon: page.icon ?? icon
          }));
}
