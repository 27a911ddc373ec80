import { t } from '../../words/t.ts';

/** The sections of an export, with their titles. */
export const sectionTitles = (): Readonly<Record<string, string>> => ({
    settings: t('Settings'),
    roles: t('Roles'),
    users: t('Users'),
    channels: t('Notifications'),
    dnsProviders: t('DNS providers'),
    certificates: t('Certificates'),
    hosts: t('Hosts'),
    plugins: t('Plugins')
});
