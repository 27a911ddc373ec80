/** The updates that wait, with what each of them changes, and the consent to one that exposes more. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { ApiFailure } from '../../api/failure.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { Waiting } from '../../kit/page.tsx';
import { showTask } from '../../shell/tasks.tsx';
import { t } from '../../words/t.ts';
import { base, type Plan, type Update } from './appstore-view.ts';
import { Changes } from './changes.tsx';
import { PlanView } from './plan.tsx';

/** An update that must be consented to, with what it comes to. */
interface Asked {
    readonly update: Update;
    readonly plan: Plan;
}

/** Shows the updates that installed apps could have. */
export function Updates() {
    const { data, error } = useRead<readonly Update[]>(`${base}/updates`);
    const may = useMay();
    const [asked, setAsked] = useState<Asked | null>(null);
    if (data === undefined) {
        return <Waiting error={error} />;
    }
    return (
        <>
            {data.length === 0 ? (
                <p class="empty">{t('All apps are up to date')}</p>
            ) : (
                <ul class="apps" aria-label={t('Updates')}>
                    {data.map((each) => (
                        <li key={each.name} class="card">
                            <h2>{each.name}</h2>
                            <p>
                                {each.from} → <strong>{each.to}</strong>
                            </p>
                            {each.diff === null ? null : <Changes difference={each.diff} />}
                            {each.why === null ? null : <p class="dim">{each.why}</p>}
                            {may(each.needsConsent ? 'appstore:write' : 'appstore:run') ? (
                                <Button look="primary" onPress={() => update(each, setAsked)}>
                                    {each.needsConsent ? t('Update …') : t('Update')}
                                </Button>
                            ) : null}
                        </li>
                    ))}
                </ul>
            )}
            {asked === null ? null : <Consent {...asked} onClose={() => setAsked(null)} />}
        </>
    );
}

function Consent({ update: { name, to }, plan, onClose }: Asked & { readonly onClose: () => void }) {
    const agree = async (): Promise<void> => {
        await begin(name, { version: to, consent: plan.consent }).catch(toastFailure);
        onClose();
    };
    return (
        <Dialog title={t('Update {name} to {version}?', { name, version: to })} onClose={onClose} isWide>
            <p>{t('This version asks for more than the one that runs.')}</p>
            <PlanView plan={plan} />
            <p class="dim">
                {t('If it does not become healthy, the version of now comes back with its data.')}
            </p>
            <footer class="row">
                <Button onPress={onClose}>{t('Cancel')}</Button>
                <Button look="primary" onPress={agree}>
                    {t('Agree and update')}
                </Button>
            </footer>
        </Dialog>
    );
}

/** Begins an update; its data are backed up before. One that exposes more is refused first, with the plan that the user then consents to. */
async function update(update: Update, ask: (asked: Asked) => void): Promise<void> {
    const { name, to, needsConsent } = update;
    if (
        !needsConsent &&
        !(await confirm(t('Update {name} to {version}?', { name, version: to }), t('Update')))
    ) {
        return;
    }
    await begin(name, { version: to }).catch((error: unknown) => {
        if (error instanceof ApiFailure && error.reason === 'APP_CONSENT_REQUIRED') {
            ask({ update, plan: error.data['plan'] as Plan });
        } else {
            toastFailure(error);
        }
    });
}

/** @throws ApiFailure, such as APP_CONSENT_REQUIRED with the plan */
async function begin(name: string, body: object): Promise<void> {
    const path = `${base}/installed/${encodeURIComponent(name)}/update`;
    showTask((await call<{ id: number }>('POST', path, { body })).data.id);
    await invalidate(base);
}
