import { copyText } from '../browser/clipboard.ts';
import { t } from '../words/t.ts';
import { Button } from './button.tsx';
import { toast } from './dialogs/toast.tsx';

/** Copies a text, and says whether that worked. */
export function CopyButton({ text }: { readonly text: string }) {
    const copy = async (): Promise<void> =>
        toast((await copyText(text)) ? t('Copied') : t('It could not be copied'));
    return (
        <Button look="quiet" onPress={copy}>
            {t('Copy')}
        </Button>
    );
}
