/** One app of the catalogue: what it is, its own form, and what an install comes to before it begins. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { useQueryValue } from '../../kit/forms/filter.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { filled } from '../../schema/changes.ts';
import { SchemaForm } from '../../schema/form.tsx';
import type { Schema } from '../../schema/schema.ts';
import { showTask } from '../../shell/tasks.tsx';
import { t } from '../../words/t.ts';
import { base, type Plan, schemaOf, type WholeApp } from './appstore-view.ts';
import { AppIcon } from './icon.tsx';
import { PlanView } from './plan.tsx';

/** The request of an install, as the plan was made for it. */
type Install = Readonly<Record<string, unknown>>;

/** The screen of the app that `key` in the address names. */
export default function AppPage() {
    const [key] = useQueryValue('key');
    const path = `${base}/apps/${key.split('/').map(encodeURIComponent).join('/')}`;
    const { data: app, error } = useRead<WholeApp>(path);
    const [planned, setPlanned] = useState<{ readonly install: Install; readonly plan: Plan } | null>(null);
    const may = useMay();
    return (
        <Page
            title={app?.title ?? t('App')}
            lead={<Link href="/appstore">← {t('Apps')}</Link>}
            actions={
                app?.website == null ? null : (
                    <a class="button" href={app.website} target="_blank" rel="noopener noreferrer">
                        {new URL(app.website).host}
                    </a>
                )
            }
        >
            {app === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <section class="card">
                        <p class="lead row">
                            <AppIcon app={app} size={48} />
                            {[app.tagline, t('Version {version}', { version: app.version })]
                                .filter(Boolean)
                                .join(' · ')}
                        </p>
                        <p class="prose">{app.description.markdown}</p>
                        {app.installed.length === 0 ? null : (
                            <p>{t('Installed as {names}', { names: app.installed.join(', ') })}</p>
                        )}
                        {app.why === null ? null : <p class="notice">{app.why}</p>}
                    </section>
                    {may('appstore:write') && app.why === null ? (
                        <section class="card">
                            <h2>{t('Install')}</h2>
                            {planned === null ? (
                                <InstallForm
                                    app={app}
                                    onPlan={(install, plan) => setPlanned({ install, plan })}
                                />
                            ) : (
                                <Summary {...planned} onBack={() => setPlanned(null)} />
                            )}
                        </section>
                    ) : null}
                </>
            )}
        </Page>
    );
}

function InstallForm({
    app,
    onPlan
}: {
    readonly app: WholeApp;
    readonly onPlan: (install: Install, plan: Plan) => void;
}) {
    const schema: Schema = {
        type: 'object',
        properties: {
            name: { type: 'string', title: t('Name'), default: app.id },
            domain: { type: 'string', title: t('Domain'), description: t('A host is made for it.') },
            ...(app.form.length === 0 ? {} : { values: { ...schemaOf(app.form), title: t('Its settings') } })
        },
        required: app.form.some(({ required }) => required) ? ['values'] : []
    };
    return (
        <SchemaForm
            schema={schema}
            initial={{}}
            action={t('Look at what it comes to')}
            onSend={async (values) => {
                const install = {
                    ...{ source: app.source, app: app.id, version: app.version },
                    ...filled(values),
                    ...(app.signed ? {} : { acknowledgeUnsigned: true })
                };
                onPlan(install, (await call<Plan>('POST', `${base}/plan`, { body: install })).data);
            }}
        />
    );
}

/** What the install comes to. It begins with the consent that belongs to exactly this. */
function Summary({
    install,
    plan,
    onBack
}: {
    readonly install: Install;
    readonly plan: Plan;
    readonly onBack: () => void;
}) {
    const { consent } = plan;
    const begin = async (): Promise<void> => {
        const body = { ...install, ...(consent === null ? {} : { consent }) };
        await call<{ id: number }>('POST', `${base}/installed`, { body }).then(({ data }) => {
            showTask(data.id);
            onBack();
        }, toastFailure);
        await invalidate(base);
    };
    return (
        <>
            <PlanView plan={plan} />
            <footer class="row">
                <Button onPress={onBack}>{t('Back')}</Button>
                <Button look="primary" onPress={begin}>
                    {consent === null ? t('Install') : t('Agree and install')}
                </Button>
            </footer>
        </>
    );
}
