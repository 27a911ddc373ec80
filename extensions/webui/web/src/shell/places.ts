/** The places of the panel: the rooms of the core, and the plugins that run in their groups, as far as the user may see them. */
import { useDocument } from '../api/document.ts';
import { useMay } from '../api/queries.ts';
import { pagesAt } from '../frames/brought.ts';
import type { Tag } from '../schema/document.ts';
import { inWords } from '../schema/schema.ts';
import { t } from '../words/t.ts';

/** One screen of the menu, and who may see it. */
export interface Place {
    readonly href: string;
    /** Another address that belongs to the same place. */
    readonly also?: string;
    readonly title: string;
    readonly icon: string;
    readonly permission?: string;
}

const core = (): readonly Place[] => [
    { href: '/', title: t('Overview'), icon: 'overview' },
    { href: '/hosts', title: t('Hosts'), icon: 'globe', permission: 'hosts:read' },
    { href: '/certificates', title: t('Certificates'), icon: 'shield', permission: 'certificates:read' },
    { href: '/dns-providers', title: t('DNS providers'), icon: 'compass', permission: 'dns:read' },
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

/** Plugins whose first screen is made by hand. What is generated for them is linked from there. */
const handMade: Readonly<Record<string, string>> = {
    ai: '/assistant',
    appstore: '/appstore',
    backup: '/backup',
    container: '/containers',
    database: '/database',
    deploy: '/deploy',
    mcpserver: '/agents',
    monitoring: '/monitoring'
};

/** Groups that many plugins name, in the order of the menu; others follow by their names, and last what has no group. */
const groupOrder = ['Sites', 'Machine', 'Automation'];
const rank = (group: string): number => {
    const at = groupOrder.indexOf(group);
    return group === '' ? groupOrder.length + 1 : at === -1 ? groupOrder.length : at;
};

/** Screens under one heading; null: without one. */
export interface Group {
    readonly title: string | null;
    readonly places: readonly Place[];
}

/** All places that the user may see, in the order of the navigation. */
export function usePlaces(): readonly Group[] {
    const may = useMay();
    // A small part of the document: its tags name all plugins that run.
    const { data } = useDocument('panel');
    const plugins = (data?.tags ?? []).filter((tag) => tag['x-kind'] === 'nav' && tag.name !== 'webui');
    const permitted = (places: readonly Place[]): readonly Place[] =>
        places.filter(({ permission }) => may(permission));
    const groups = [...Map.groupBy(plugins, (tag) => tag['x-parent'] ?? '')].toSorted(
        ([left], [right]) => rank(left) - rank(right) || left.localeCompare(right)
    );
    return [
        { title: null, places: permitted(core()) },
        ...groups.map(([group, tags]) => ({
            title: group === '' ? t('Extensions') : t(group),
            places: tags.filter((tag) => may(`${tag.name}:read`)).flatMap((tag) => placesOf(tag, may))
        })),
        { title: t('System'), places: permitted(system()) }
    ];
}

/** The pages that a plugin brings for the navigation; without any, the one that is generated for it. */
function placesOf(tag: Tag, may: (permission: string) => boolean): readonly Place[] {
    const pages = pagesAt([tag], 'nav', may);
    const icon = tag['x-icon'] ?? tag.name;
    return pages.length === 0
        ? [
              {
                  href: handMade[tag.name] ?? `/p/${tag.name}`,
                  also: `/p/${tag.name}`,
                  title: t(tag['x-summary'] ?? inWords(tag.name)),
                  icon
              }
          ]
        : pages.map(({ page }) => ({
              href: `/p/${tag.name}/${page.id}`,
              title: t(page.title),
              icon: page.icon ?? icon
          }));
}
