/** One plugin: its health with remedies, what it may do, and its settings. */
import { Link } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { queries, useMay, useRead } from '../../api/queries.ts';
import { CopyButton } from '../../kit/copy.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { toast } from '../../kit/toast.tsx';
import { Badge } from '../../kit/value.tsx';
import { changed, initialValue } from '../../schema/changes.ts';
import { SchemaForm } from '../../schema/form.tsx';
import { t } from '../../words/t.ts';
import { type PluginView, remedyOf } from './plugin-view.ts';
import { CapabilityList, Switch } from './switch.tsx';

/** The screen. */
export default function Plugin({ name }: { readonly name: string }) {
    const { data, error } = useRead<PluginView>(`/api/plugins/${name}`);
    const may = useMay();
    if (data === undefined) {
        return (
            <Page title={name}>
                <Waiting error={error} />
            </Page>
        );
    }
    return (
        <Page
            title={data.title}
            lead={`${data.package ?? ''} ${data.version ?? ''}`}
            actions={may('plugins:manage') ? <Switch plugin={data} /> : null}
        >
            <p class="row">
                <Badge text={data.state} />
                {data.state === 'running' && may(`${name}:read`) ? (
                    <Link href={`/p/${name}`}>{t('Open its page')}</Link>
                ) : null}
            </p>
            {data.failure === null ? null : (
                <div class="failure" role="alert">
                    <p>{data.failure.message}</p>
                    <small>{data.failure.code}</small>
                </div>
            )}
            <Health plugin={data} />
            <div class="columns">
                <section class="card">
                    <h2>{t('What it may do')}</h2>
                    <CapabilityList capabilities={data.capabilities.granted} />
                </section>
                <section class="card">
                    <h2>{t('Permissions')}</h2>
                    <dl class="facts">
                        {data.permissions.map((each) => (
                            <div key={each.name}>
                                <dt>{each.name}</dt>
                                <dd>
                                    {each.title} <small>{each.roles.join(', ')}</small>
                                </dd>
                            </div>
                        ))}
                    </dl>
                </section>
            </div>
            {may('plugins:manage') ? <PluginSettings plugin={data} /> : null}
        </Page>
    );
}

function Health({ plugin: { health } }: { readonly plugin: PluginView }) {
    if (health === null || health.checks.length === 0) {
        return null;
    }
    return (
        <section class="card">
            <h2>{t('Health')}</h2>
            <ul class="checks">
                {health.checks.map((check) => {
                    const remedy = remedyOf(check);
                    return (
                        <li key={check.name}>
                            <Badge text={check.state} /> <strong>{check.name}</strong> {check.evidence}
                            {remedy === null ? null : (
                                <p class="row">
                                    <code>{remedy}</code>
                                    <CopyButton text={remedy} />
                                </p>
                            )}
                        </li>
                    );
                })}
            </ul>
        </section>
    );
}

function PluginSettings({ plugin }: { readonly plugin: PluginView }) {
    const { name, settings = {}, settingsSchema } = plugin;
    if (
        settingsSchema === null ||
        settingsSchema === undefined ||
        Object.keys(settingsSchema.properties ?? {}).length === 0
    ) {
        return null;
    }
    return (
        <section class="card">
            <h2>{t('Settings')}</h2>
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
