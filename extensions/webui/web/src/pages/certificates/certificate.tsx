/** One certificate: what it covers and until when, which hosts use it, and what went wrong. */
import { useState } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { downloadFrom, downloadHere } from '../../api/download.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { CopyButton } from '../../kit/copy.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Menu } from '../../kit/menu.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { filled } from '../../schema/changes.ts';
import { SchemaForm } from '../../schema/form.tsx';
import { showTask } from '../../shell/tasks.tsx';
import { fullTime, relativeTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import type { CertificateView } from './certificate-view.ts';
import { Life } from './certificates.tsx';
import { replacement } from './new-certificate.tsx';

/** Shows the screen of one certificate. */
export default function Certificate({ id }: { readonly id: string }) {
    const { data, error } = useRead<CertificateView>(`/api/certificates/${id}`);
    return (
        <Page
            title={data?.name ?? t('Certificate')}
            lead={<Link href="/certificates">← {t('Certificates')}</Link>}
            actions={data === undefined ? null : <Actions certificate={data} />}
        >
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <LastError certificate={data} />
                    <div class="columns wide">
                        <Span certificate={data} />
                        <Covers certificate={data} />
                    </div>
                    <Facts certificate={data} />
                </>
            )}
        </Page>
    );
}

function Actions({ certificate }: { readonly certificate: CertificateView }) {
    const { id, name, source, usedBy, notAfter } = certificate;
    const isThere = notAfter !== null;
    const may = useMay();
    const [isOpen, setOpen] = useState(false);
    const [, navigate] = useLocation();
    const path = `/api/certificates/${id}`;
    const canWrite = may('certificates:write') && source !== 'engine';
    const renew = (): Promise<void> =>
        call<{ id: number }>('POST', `${path}/renew`).then(({ data }) => showTask(data.id), toastFailure);
    const download = (key: boolean): Promise<void> =>
        (key ? downloadHere(`${path}/download`, { key: true }) : downloadFrom(`${path}/download`)).catch(
            toastFailure
        );
    const remove = async (): Promise<void> => {
        if (await confirm(t('Remove {name}? Its key is gone then.', { name }), t('Remove'))) {
            await call('DELETE', path).then(() => navigate('/certificates'), toastFailure);
            await invalidate('/api/certificates');
        }
    };
    return (
        <>
            {canWrite && source === 'acme' ? (
                <Button look="primary" onPress={renew}>
                    {t('Renew now')}
                </Button>
            ) : null}
            {canWrite && source === 'upload' ? (
                <Button look="primary" onPress={() => setOpen(true)}>
                    {t('Replace it')}
                </Button>
            ) : null}
            {isThere ? (
                <Button onPress={() => download(false)}>
                    <Icon name="download" />
                    {t('Download')}
                </Button>
            ) : null}
            <Menu label={t('Actions for {name}', { name })}>
                {isThere && may('certificates:secrets') ? (
                    <Button onPress={() => download(true)}>{t('Download with its key')}</Button>
                ) : null}
                {canWrite ? (
                    <Button look="danger" isDisabled={usedBy.length > 0} onPress={remove}>
                        {usedBy.length > 0 ? t('In use: it cannot be removed') : t('Remove')}
                    </Button>
                ) : null}
            </Menu>
            {isOpen ? <Replace id={id} onClose={() => setOpen(false)} /> : null}
        </>
    );
}

function Replace({ id, onClose }: { readonly id: number; readonly onClose: () => void }) {
    return (
        <Dialog title={t('Replace certificate and key')} onClose={onClose} isWide>
            <p>{t('The hosts that use it serve the new one at once.')}</p>
            <SchemaForm
                schema={replacement()}
                initial={{}}
                action={t('Replace it')}
                onCancel={onClose}
                onSend={async (value) => {
                    await call('PUT', `/api/certificates/${id}`, { body: filled(value) });
                    toast(t('Saved'));
                    await invalidate('/api/certificates');
                    onClose();
                }}
            />
        </Dialog>
    );
}

/** Its life as a bar: how much of it is over. */
function Span({ certificate }: { readonly certificate: CertificateView }) {
    const { notBefore, notAfter } = certificate;
    const [from, to] = [Date.parse(notBefore ?? ''), Date.parse(notAfter ?? '')];
    return (
        <section class="card">
            <header class="row spread">
                <h2>{t('Validity')}</h2>
                <Life certificate={certificate} />
            </header>
            {notBefore === null || notAfter === null ? (
                <p class="dim">{t('There is no certificate yet')}</p>
            ) : (
                <>
                    <p class="figure">{relativeTime(notAfter)}</p>
                    <meter
                        aria-label={t('How much of its life is over')}
                        min={from}
                        max={to}
                        value={Date.now()}
                    />
                    <p class="row spread dim">
                        <span>{fullTime(notBefore)}</span>
                        <span>{fullTime(notAfter)}</span>
                    </p>
                </>
            )}
        </section>
    );
}

function Covers({ certificate: { domains, usedBy } }: { readonly certificate: CertificateView }) {
    return (
        <section class="card">
            <h2>{t('Covers')}</h2>
            <p class="row">
                {domains.map((name) => (
                    <span key={name} class="tag">
                        {name}
                    </span>
                ))}
            </p>
            <h3>{t('Used by')}</h3>
            {usedBy.length === 0 ? (
                <p class="dim">{t('No host')}</p>
            ) : (
                <ul class="bare">
                    {usedBy.slice(0, 20).map((id) => (
                        <li key={id}>
                            <HostLink id={id} />
                        </li>
                    ))}
                </ul>
            )}
        </section>
    );
}

function HostLink({ id }: { readonly id: number }) {
    const may = useMay();
    const { data } = useRead<{ domain: string }>(may('hosts:read') ? `/api/hosts/${id}` : null);
    return <Link href={`/hosts/${id}`}>{data?.domain ?? t('Host {id}', { id })}</Link>;
}

/** The problem document of the authority, and when it is tried again. */
function LastError({ certificate: { lastError, nextAttemptAt } }: { readonly certificate: CertificateView }) {
    return lastError === null ? null : (
        <div class="banner bad" role="alert">
            <Icon name="warning" />
            <div>
                <strong>{lastError.title ?? t('The authority refused')}</strong>
                <p>{lastError.detail}</p>
                <small>
                    {lastError.type}
                    {lastError.identifier === undefined ? '' : ` · ${lastError.identifier.value}`}
                    {' · '}
                    {relativeTime(lastError.at)}
                    {nextAttemptAt === null
                        ? ''
                        : ` · ${t('Next try {when}', { when: relativeTime(nextAttemptAt) })}`}
                </small>
            </div>
        </div>
    );
}

function Facts({
    certificate: { issuer, serial, fingerprint256, autoRenew }
}: {
    readonly certificate: CertificateView;
}) {
    const facts = [
        [t('Issued by'), issuer],
        [t('Serial number'), serial],
        [t('Renewed by itself'), autoRenew ? t('Yes') : t('No')]
    ] as const;
    return (
        <section class="card">
            <dl class="facts">
                {facts.map(([title, text]) => (
                    <div key={title}>
                        <dt>{title}</dt>
                        <dd>{text ?? '–'}</dd>
                    </div>
                ))}
                {fingerprint256 === null ? null : (
                    <div class="long">
                        <dt>{t('Fingerprint (SHA-256)')}</dt>
                        <dd class="row">
                            <code>{fingerprint256}</code>
                            <CopyButton text={fingerprint256} />
                        </dd>
                    </div>
                )}
            </dl>
        </section>
    );
}
