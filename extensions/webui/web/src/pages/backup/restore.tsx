/** The question before parts of a snapshot come back: where to, and what happens to what is there. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { TextField } from '../../kit/forms/text-field.tsx';
import { showTask } from '../../shell/tasks.tsx';
import { t } from '../../words/t.ts';
import { keyOf, type RestoreItem } from './backup-view.ts';

const conflicts = (): readonly (readonly [string, string])[] => [
    ['refuse', t('Restore nothing of the item')],
    ['skip', t('Keep what is there')],
    ['overwrite', t('Replace what is there')]
];

/** The dialog. @param path - of the snapshot's routes */
export function RestoreDialog({
    path,
    items,
    onClose
}: {
    readonly path: string;
    readonly items: readonly RestoreItem[];
    readonly onClose: () => void;
}) {
    const [isInPlace, setInPlace] = useState(false);
    const [folder, setFolder] = useState('');
    const [conflict, setConflict] = useState('refuse');
    const begin = async (dryRun: boolean): Promise<void> => {
        const place = isInPlace ? { inPlace: true, conflict } : { folder };
        await call<{ readonly id: number }>('POST', `${path}/restore`, {
            body: { items, ...place, dryRun }
        }).then(({ data }) => {
            showTask(data.id);
            if (!dryRun) {
                onClose();
            }
        }, toastFailure);
    };
    return (
        <Dialog title={t('Restore')} onClose={onClose}>
            <ul class="bare mono">
                {items.map((each) => (
                    <li key={keyOf(each)}>{each.path ?? each.plugin ?? t('The panel')}</li>
                ))}
            </ul>
            <fieldset>
                <legend>{t('Where to')}</legend>
                <label class="check">
                    <input
                        type="radio"
                        name="place"
                        checked={!isInPlace}
                        onChange={() => setInPlace(false)}
                    />
                    {t('To a folder that is new or empty')}
                </label>
                <label class="check">
                    <input type="radio" name="place" checked={isInPlace} onChange={() => setInPlace(true)} />
                    {t('To where it came from')}
                </label>
            </fieldset>
            {isInPlace ? (
                <ConflictChoice value={conflict} onChange={setConflict} />
            ) : (
                <TextField
                    label={t('Folder')}
                    value={folder}
                    autocomplete="off"
                    help={t('/a/b comes as the folder with /a/b in it.')}
                    onChange={setFolder}
                />
            )}
            <footer>
                <Button onPress={onClose}>{t('Cancel')}</Button>
                <Button onPress={() => begin(true)}>{t('Only try')}</Button>
                <Button
                    look={isInPlace && conflict === 'overwrite' ? 'danger' : 'primary'}
                    onPress={() => begin(false)}
                >
                    {t('Restore')}
                </Button>
            </footer>
        </Dialog>
    );
}

/** What happens to a file that is there. */
function ConflictChoice({
    value: chosen,
    onChange
}: {
    readonly value: string;
    readonly onChange: (value: string) => void;
}) {
    return (
        <div class="field">
            <label for="restore-conflict">{t('When a file is there')}</label>
            <select
                id="restore-conflict"
                value={chosen}
                onChange={(event) => onChange(event.currentTarget.value)}
            >
                {conflicts().map(([value, title]) => (
                    <option key={value} value={value}>
                        {title}
                    </option>
                ))}
            </select>
        </div>
    );
}
