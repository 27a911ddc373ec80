/** How a file looks, as far as a page of a plugin may show it: a text or a picture. */
import { useEffect, useState } from 'preact/hooks';

import { Card } from '../kit/card.tsx';
import { type At, panel, textOf } from '../panel.ts';
import { t } from '../words.ts';

const mostPictureBytes = 20_000_000;

interface Shown {
    readonly text?: string;
    readonly picture?: string;
}

/** Shows a text or a picture; says so where a file is neither. */
export function Preview(at: At) {
    const [shown, setShown] = useState<Shown | null>(null);
    useEffect(() => {
        let address = '';
        void look(at).then(
            (found) => {
                address = found.picture ?? '';
                setShown(found);
            },
            (error: unknown) => setShown({ text: textOf(error) })
        );
        return () => URL.revokeObjectURL(address);
    }, []);
    return (
        <Card title={t('Preview')}>
            {shown?.text === undefined ? null : (
                <pre tabIndex={0} role="group" aria-label={t('Preview')}>
                    {shown.text}
                </pre>
            )}
            {shown?.picture === undefined ? null : <img src={shown.picture} alt={at.path} />}
            {shown !== null && shown.text === undefined && shown.picture === undefined ? (
                <p class="dim">{t('This is no text and no picture: download it.')}</p>
            ) : null}
        </Card>
    );
}

async function look(query: At): Promise<Shown> {
    const { kind, type, text } = (await panel.call('filemanager.preview', { query })).data;
    if (text !== null) {
        return { text };
    }
    if (kind !== 'image') {
        return {};
    }
    const { data } = await panel.call('filemanager.read', { query });
    return data.size > mostPictureBytes ? {} : { picture: URL.createObjectURL(new Blob([data], { type })) };
}
