/** The engine does not run what the panel left: what differs, and the way to write over it. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { invalidate, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Differences } from '../../kit/display/difference.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';

interface Drift {
    readonly config: readonly {
        readonly path: string;
        readonly wanted?: unknown;
        readonly running?: unknown;
    }[];
    readonly table: readonly {
        readonly name: string;
        readonly wanted: string | null;
        readonly running: string | null;
    }[];
    readonly more: boolean;
}

/** The notice, with the way to look. */
export function DriftBanner({ canOverwrite }: { readonly canOverwrite: boolean }) {
    const [isOpen, setOpen] = useState(false);
    return (
        <>
            <div class="banner" role="alert">
                <Icon name="warning" />
                <div>{t('The engine does not run what the panel left. Another program changed it.')}</div>
                <Button onPress={() => setOpen(true)}>{t('See what differs')}</Button>
            </div>
            {isOpen ? <DriftDialog canOverwrite={canOverwrite} onClose={() => setOpen(false)} /> : null}
        </>
    );
}

function DriftDialog({
    canOverwrite,
    onClose
}: {
    readonly canOverwrite: boolean;
    readonly onClose: () => void;
}) {
    const { data, error } = useRead<Drift>('/api/proxyengine/drift');
    const overwrite = async (): Promise<void> => {
        await call('POST', '/api/proxyengine/drift/overwrite').then(
            () => toast(t('The engine runs what the panel has')),
            toastFailure
        );
        await invalidate('/api/proxyengine');
        onClose();
    };
    const all = [
        ...(data?.config ?? []).map(({ path, wanted, running }) => [path, wanted, running] as const),
        ...(data?.table ?? []).map(({ name, wanted, running }) => [name, wanted, running] as const)
    ];
    return (
        <Dialog title={t('What differs')} onClose={onClose} isWide>
            <p class="dim">{t('Green is what the panel has, red is what runs.')}</p>
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <Differences
                    before={Object.fromEntries(all.map(([path, , running]) => [path, running]))}
                    after={Object.fromEntries(all.map(([path, wanted]) => [path, wanted]))}
                    titles={Object.fromEntries(all.map(([path]) => [path, path]))}
                />
            )}
            {data?.more === true ? <p class="dim">{t('There is more.')}</p> : null}
            <footer>
                <Button onPress={onClose}>{t('Close')}</Button>
                {canOverwrite ? (
                    <Button look="primary" onPress={overwrite}>
                        {t('Write over it')}
                    </Button>
                ) : null}
            </footer>
        </Dialog>
    );
}
