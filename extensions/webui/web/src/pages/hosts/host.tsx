/** One host, or a new one: its form, the checklist, who gets in, and what the engine gets. */
import { useState } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { HostPages } from '../../frames/places.tsx';
import { Facts } from '../../generated/item/facts.tsx';
import { Button } from '../../kit/button.tsx';
import { writeOrAsk } from '../../kit/dialogs/conflict.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toast } from '../../kit/dialogs/toast.tsx';
import { Differences } from '../../kit/display/difference.tsx';
import { Badge, Json } from '../../kit/display/value.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { Tabs, useTab } from '../../kit/tabs.tsx';
import { t } from '../../words/t.ts';
import { Admission } from './admission.tsx';
import { Checklist } from './checklist.tsx';
import { HostForm } from './form/form.tsx';
import { hostTitles } from './form/schema.ts';
import type { HostRow } from './host-view.ts';
import { HostMenu } from './menu.tsx';

type Values = Readonly<Record<string, unknown>>;
type HostDetail = HostRow & Values & { readonly version: number };

/** The screen. @param id - `new`, or the host's */
export default function Host({ id }: { readonly id: string }) {
    return id === 'new' ? <NewHost /> : <OneHost id={id} />;
}

function NewHost() {
    const [, navigate] = useLocation();
    return (
        <Page title={t('New host')} lead={<Back />}>
            <HostForm
                host={null}
                onSend={async (body) => {
                    const { data } = await call<{ id: number; domain: string }>('POST', '/api/hosts', {
                        body
                    });
                    await invalidate('/api/hosts');
                    toast(t('Created: {name}', { name: data.domain }));
                    navigate(`/hosts/${data.id}?tab=check`);
                }}
            />
        </Page>
    );
}

function OneHost({ id }: { readonly id: string }) {
    const { data, error } = useRead<HostDetail>(`/api/hosts/${id}`);
    const may = useMay();
    const [edition, setEdition] = useState(0);
    const tabs = [
        { id: 'settings', title: t('Settings') },
        { id: 'check', title: t('Checklist') },
        { id: 'access', title: t('Who gets in') },
        { id: 'preview', title: t('For the engine') }
    ];
    const tab = useTab(tabs);
    if (data === undefined) {
        return (
            <Page title={t('Host')} lead={<Back />}>
                <Waiting error={error} />
            </Page>
        );
    }
    const isOwn = data.owner === null;
    return (
        <Page
            title={data.domain}
            lead={<Back />}
            actions={may('hosts:write') ? <Actions host={data} /> : null}
        >
            <p class="row">
                <Badge text={data.state} />
                <span class="tag">{t(data.type)}</span>
                {isOwn ? null : (
                    <span class="tag">{t('made by {plugin}', { plugin: data.owner ?? '' })}</span>
                )}
                {data.stateMessage === null ? null : <span class="failure">{data.stateMessage}</span>}
            </p>
            <Tabs label={data.domain} tabs={tabs} />
            {tab === 'check' ? <Checklist id={data.id} /> : null}
            {tab === 'access' ? <Admission id={data.id} /> : null}
            {tab === 'preview' ? <Preview id={data.id} /> : null}
            {tab !== 'settings' ? null : may('hosts:write') ? (
                <Edit key={edition} present={data} onTaken={() => setEdition(edition + 1)} />
            ) : (
                <section class="card">
                    <Facts row={data} schema={{}} />
                </section>
            )}
            {tab === 'settings' ? <HostPages host={data.id} /> : null}
        </Page>
    );
}

function Actions({ host }: { readonly host: HostDetail }) {
    return (
        <>
            {host.enabled && !host.domain.startsWith('*') ? (
                <a
                    class="button"
                    href={`${host.ssl ? 'https' : 'http'}://${host.domain}/`}
                    target="_blank"
                    rel="noopener noreferrer"
                >
                    {t('Visit')}
                </a>
            ) : null}
            <HostMenu host={host} />
        </>
    );
}

/** The form keeps the host as it was when it was opened: a change by another must not take away what the user writes. */
function Edit({ present, onTaken }: { readonly present: HostDetail; readonly onTaken: () => void }) {
    const [host] = useState(present);
    const [asked, setAsked] = useState<Values | null>(null);
    // The form waits for the answer to the question, so that a refusal stands at its field.
    const [answer, setAnswer] = useState<((isYes: boolean) => void) | null>(null);
    const [, navigate] = useLocation();
    const path = `/api/hosts/${host.id}`;
    const save = async (body: Values): Promise<void> => {
        const isWritten = await writeOrAsk({
            path,
            body,
            version: host.version,
            titles: hostTitles(),
            save: (version) => call('PUT', path, { body, version })
        });
        await invalidate('/api/hosts');
        if (isWritten) {
            toast(t('Saved'));
            navigate(`/hosts/${host.id}?tab=check`);
        } else {
            onTaken();
        }
    };
    const send = async (body: Values): Promise<void> => {
        const isYes = await new Promise<boolean>((resolve) => {
            setAsked(body);
            setAnswer(() => resolve);
        });
        setAsked(null);
        if (isYes) {
            await save(body);
        }
    };
    return (
        <>
            {present.version === host.version ? null : (
                <div class="banner" role="status">
                    <div>{t('Another user changed this host while you write.')}</div>
                    <Button onPress={onTaken}>{t('Show what is there now')}</Button>
                </div>
            )}
            <HostForm host={host} onSend={send} />
            {asked === null ? null : (
                <Dialog title={t('Save these changes?')} onClose={() => answer?.(false)} isWide>
                    <Differences
                        before={Object.fromEntries(Object.keys(asked).map((key) => [key, host[key]]))}
                        after={asked}
                        titles={hostTitles()}
                    />
                    <footer>
                        <Button onPress={() => answer?.(false)}>{t('Cancel')}</Button>
                        <Button look="primary" onPress={() => answer?.(true)}>
                            {t('Save')}
                        </Button>
                    </footer>
                </Dialog>
            )}
        </>
    );
}

function Preview({ id }: { readonly id: number }) {
    const { data, error } = useRead<unknown>(`/api/hosts/${id}/preview`);
    return (
        <section class="card">
            <h2>{t('What the engine gets for this host')}</h2>
            <p class="dim">{t('Secrets are hidden.')}</p>
            {data === undefined ? <Waiting error={error} /> : <Json value={data} />}
        </section>
    );
}

function Back() {
    return <Link href="/hosts">← {t('Hosts')}</Link>;
}
