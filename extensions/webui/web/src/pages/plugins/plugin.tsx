/** One plugin: its state, what it may do, its settings, its log and its versions. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { queries, useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Log } from '../../kit/display/log.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { Tabs, useTab } from '../../kit/tabs.tsx';
import { changed, initialValue } from '../../schema/changes.ts';
import { SchemaForm } from '../../schema/form.tsx';
import { fullTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { ChangeDialog, type Wanted } from './change-dialog.tsx';
import { Health, Refusals, Released } from './facts.tsx';
import type { PluginDetail } from './plugin-view.ts';
import { Removal } from './removal.tsx';
import { CapabilityList, Switch } from './switch.tsx';
import { Versions } from './versions.tsx';

/** Shows the screen of one plugin. */
export default function Plugin({ name }: { readonly name: string }) {
    const { data, error } = useRead<PluginDetail>(`/api/plugins/${name}`);
    const may = useMay();
    const [wanted, setWanted] = useState<Wanted | null>(null);
    const canManage = may('plugins:manage');
    const hasSettings = Object.keys(data?.settingsSchema?.properties ?? {}).length > 0;
    const tabs = [
        { id: 'overview', title: t('Overview') },
        ...(canManage && hasSettings ? [{ id: 'settings', title: t('Settings') }] : []),
        ...(canManage
            ? [
                  { id: 'log', title: t('Log') },
                  { id: 'versions', title: t('Versions') }
              ]
            : [])
    ];
    const tab = useTab(tabs);
    if (data === undefined) {
        return (
            <Page title={name}>
                <Waiting error={error} />
            </Page>
        );
    }
    return (
        <Page
            title={t(data.title)}
            lead={<Link href="/plugins">← {t('Plugins')}</Link>}
            actions={
                canManage ? (
                    <>
                        <Switch plugin={data} />
                        <Removal plugin={data} />
                    </>
                ) : null
            }
        >
            <p class="row">
                <Badge text={data.state} />
                <span class="tag">
                    {data.package ?? ''} {data.version ?? ''}
                </span>
                {data.state === 'running' && may(`${name}:read`) ? (
                    <Link href={`/p/${name}`}>{t('Open its page')}</Link>
                ) : null}
            </p>
            <Banners plugin={data} canManage={canManage} onChoose={setWanted} />
            <Tabs label={data.title} tabs={tabs} />
            {tab === 'overview' ? <Overview plugin={data} /> : null}
            {tab === 'settings' ? <PluginSettings plugin={data} /> : null}
            {tab === 'log' ? (
                <section class="card">
                    <h2>{t('Its lines in the log of the panel')}</h2>
                    <Log path={`/api/plugins/${name}/logs?lines=200&follow=true`} title={t('Log')} />
                </section>
            ) : null}
            {tab === 'versions' ? <Versions plugin={data} onChoose={setWanted} /> : null}
            {wanted === null ? null : <ChangeDialog wanted={wanted} onClose={() => setWanted(null)} />}
        </Page>
    );
}

/** What asks for a decision. */
function Banners({
    plugin: { name, failure, quarantinedAt, available, adoptable },
    canManage,
    onChoose
}: {
    readonly plugin: PluginDetail;
    readonly canManage: boolean;
    readonly onChoose: (wanted: Wanted) => void;
}) {
    const adopt = (): Promise<void> =>
        call('PUT', `/api/plugins/${name}`, { body: { adopt: true } })
            .then(() => queries.invalidateQueries())
            .catch(toastFailure);
    return (
        <>
            {failure === null ? null : (
                <div class="banner bad" role="alert">
                    <Icon name="warning" />
                    <div>
                        <strong>{failure.message}</strong> <small>{failure.code}</small>
                    </div>
                </div>
            )}
            {quarantinedAt === null ? null : (
                <div class="banner" role="status">
                    <Icon name="shield" />
                    <div>
                        {t(
                            'In quarantine since {when}: it failed too often, so the panel no longer starts it by itself. Mend the cause or choose another version, then try it again.',
                            {
                                when: fullTime(quarantinedAt)
                            }
                        )}
                    </div>
                </div>
            )}
            {adoptable === null || !canManage ? null : (
                <div class="banner" role="status">
                    <div>
                        {t('The package {package} has the same name. It can take over settings and data.', {
                            package: adoptable
                        })}
                    </div>
                    <Button onPress={adopt}>{t('Let it take over')}</Button>
                </div>
            )}
            {available === null || !canManage ? null : (
                <div class="banner good" role="status">
                    <div>{t('Version {version} is there.', { version: available })}</div>
                    <Button
                        look="primary"
                        onPress={() => onChoose({ kind: 'version', name, version: available, isBack: false })}
                    >
                        {t('Upgrade …')}
                    </Button>
                </div>
            )}
        </>
    );
}

function Overview({ plugin }: { readonly plugin: PluginDetail }) {
    const { capabilities, permissions } = plugin;
    return (
        <>
            <Health plugin={plugin} />
            <div class="columns wide">
                <section class="card">
                    <h2>{t('What it may do')}</h2>
                    <CapabilityList capabilities={capabilities.granted} />
                </section>
                <section class="card">
                    <h2>{t('Permissions')}</h2>
                    <ul class="bare lined">
                        {permissions.map(({ name, title, roles }) => (
                            <li key={name}>
                                <div class="fill">
                                    {t(title)}
                                    <br />
                                    <small>{name}</small>
                                </div>
                                {roles.map((role) => (
                                    <span key={role} class="tag">
                                        {role}
                                    </span>
                                ))}
                            </li>
                        ))}
                    </ul>
                </section>
                <Refusals plugin={plugin} />
                <Released plugin={plugin} />
            </div>
        </>
    );
}

function PluginSettings({ plugin }: { readonly plugin: PluginDetail }) {
    const { name, settings = {}, settingsSchema } = plugin;
    if (settingsSchema === null || settingsSchema === undefined) {
        return null;
    }
    return (
        <section class="card">
            <SchemaForm
                key={JSON.stringify(settings)}
                schema={settingsSchema}
                initial={initialValue(settingsSchema, settings)}
                action={t('Save')}
                onSend={async (value) => {
                    await call('PUT', `/api/plugins/${name}`, {
                        body: { settings: changed(settingsSchema, settings, value) }
                    });
                    toast(t('Saved'));
                    await queries.invalidateQueries();
                }}
            />
        </section>
    );
}
