/** A dialog that looks at a package first, shows what it would do, and does it when the user says so. */
import { useEffect, useState } from 'preact/hooks';

import { type Answer, call } from '../../api/client.ts';
import { ApiFailure } from '../../api/failure.ts';
import { queries } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { Waiting } from '../../kit/page.tsx';
import { showTask } from '../../shell/tasks.tsx';
import { t } from '../../words/t.ts';
import type { Capabilities, InstallPreview } from './plugin-view.ts';
import { Preview } from './preview.tsx';

/** What is wanted: a package of the registry, an archive, or another version of what is there. */
export type Wanted =
    | { readonly kind: 'package'; readonly package: string; readonly version: string | null }
    | { readonly kind: 'archive'; readonly file: File }
    | {
          readonly kind: 'version';
          readonly name: string;
          readonly version: string;
          /** It lies before the present one. */
          readonly isBack: boolean;
      };

interface Choice {
    readonly dryRun?: true;
    readonly grants?: Capabilities;
    readonly restoreData?: true;
}

/** Shows the dialog that previews a change of a plugin, and then makes it. */
export function ChangeDialog({ wanted, onClose }: { readonly wanted: Wanted; readonly onClose: () => void }) {
    const [preview, setPreview] = useState<InstallPreview | null>(null);
    const [failure, setFailure] = useState<ApiFailure | null>(null);
    const [bringsData, setBringsData] = useState(false);
    const restore = bringsData ? { restoreData: true as const } : {};
    useEffect(() => {
        setFailure(null);
        send<InstallPreview>(wanted, { dryRun: true, ...restore }).then(
            ({ data }) => setPreview(data),
            (error: unknown) => (error instanceof ApiFailure ? setFailure(error) : onClose())
        );
    }, [wanted, bringsData]);
    const go = async (): Promise<void> => {
        try {
            const grants = preview?.capabilities.asked ?? {};
            const { data } = await send<{ id: number }>(wanted, { grants, ...restore });
            showTask(data.id);
            onClose();
        } catch (error) {
            toastFailure(error);
        }
        await queries.invalidateQueries();
    };
    const isBack = wanted.kind === 'version' && wanted.isBack;
    const asksMore = preview !== null && preview.capabilities.missing !== null;
    return (
        <Dialog
            title={preview === null ? t('Looking at the package …') : titleOf(preview)}
            onClose={onClose}
            isWide
        >
            {preview === null ? <Waiting error={failure} /> : <Preview preview={preview} />}
            {isBack ? <RestoreData isChosen={bringsData} onChange={setBringsData} /> : null}
            {wanted.kind === 'archive' && asksMore ? (
                <p class="dim">
                    {t('An archive is installed switched off. Enabling it asks you for what it may do.')}
                </p>
            ) : null}
            <footer>
                <Button onPress={onClose}>{t('Cancel')}</Button>
                <Button
                    look={asksMore || isBack ? 'danger' : 'primary'}
                    isDisabled={preview === null || preview.obstacles.length > 0}
                    onPress={go}
                >
                    {isBack
                        ? t('Go back')
                        : asksMore && wanted.kind !== 'archive'
                          ? t('Grant it and go on')
                          : t('Go on')}
                </Button>
            </footer>
        </Dialog>
    );
}

/** The way back, spelled out: what happens to the data. */
function RestoreData({
    isChosen,
    onChange
}: {
    readonly isChosen: boolean;
    readonly onChange: (isChosen: boolean) => void;
}) {
    return (
        <fieldset class="tiles">
            <legend>{t('What happens to its data?')}</legend>
            <label class="tile">
                <input type="radio" name="data" checked={!isChosen} onChange={() => onChange(false)} />
                <strong>{t('Keep the data of today')}</strong>
                <small>
                    {t('Nothing is lost. The old version may not be able to read them; then it refuses.')}
                </small>
            </label>
            <label class="tile">
                <input type="radio" name="data" checked={isChosen} onChange={() => onChange(true)} />
                <strong>{t('Bring back the data of then')}</strong>
                <small>{t('Everything that was written since the upgrade is lost.')}</small>
            </label>
        </fieldset>
    );
}

function titleOf({ title, version, kind }: InstallPreview): string {
    switch (kind) {
        case 'upgrade':
            return t('Upgrade {title} to {version}', { title, version });
        case 'rollback':
            return t('Go back to {title} {version}', { title, version });
        default:
            return t('Install {title} {version}', { title, version });
    }
}

/** The call of what is wanted. An archive is the body itself, so its choices are in the query. */
function send<T>(wanted: Wanted, choice: Choice): Promise<Answer<T>> {
    switch (wanted.kind) {
        case 'archive':
            return call<T>('POST', '/api/plugins', {
                bytes: wanted.file,
                headers: { 'content-type': 'application/gzip' },
                query: choice.dryRun === true ? { dryRun: true } : {}
            });
        case 'package': {
            const { package: name, version } = wanted;
            return call<T>('POST', '/api/plugins', {
                body: { package: name, ...(version === null ? {} : { version }), ...choice }
            });
        }
        case 'version':
            return call<T>('PUT', `/api/plugins/${wanted.name}`, {
                body: { version: wanted.version, ...choice }
            });
    }
}
