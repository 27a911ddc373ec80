/** A field for one file: what it may be and how large is said before it is sent, and how far it is while it is sent. */
import { useId } from 'preact/hooks';

import { quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';

/** What a file may be. */
interface FileRule {
    /** Media types. */
    readonly accepts: readonly string[];
    readonly maxBytes: number;
}

const anyBytes = 'application/octet-stream';

/** The field with its progress. */
export function FileField({
    rule: { accepts, maxBytes },
    file,
    error,
    sent,
    onChange
}: {
    readonly rule: FileRule;
    readonly file: File | null;
    readonly error: string | null;
    /** Bytes that were sent; null before the first. */
    readonly sent: number | null;
    readonly onChange: (file: File | null) => void;
}) {
    const id = useId();
    const types = accepts.filter((type) => type !== '*/*' && type !== anyBytes);
    const help = [
        ...(Number.isFinite(maxBytes) ? [t('At most {size}', { size: quantity(maxBytes, 'byte') })] : []),
        ...types
    ];
    return (
        <div class="field">
            <label for={id}>{t('File')}</label>
            <input
                id={id}
                type="file"
                aria-invalid={error !== null}
                aria-describedby={`${id}-help ${id}-error`}
                onChange={(event) => onChange(event.currentTarget.files?.[0] ?? null)}
            />
            <small id={`${id}-help`}>{help.join(' · ')}</small>
            {error === null ? null : (
                <em id={`${id}-error`} role="alert">
                    {error}
                </em>
            )}
            {sent === null || file === null ? null : (
                <progress aria-label={t('Sent')} max={file.size} value={Math.min(sent, file.size)} />
            )}
        </div>
    );
}

/** Why a file cannot be sent; null where it can. */
export function fitting(file: File | null, { maxBytes }: FileRule): string | null {
    if (file === null) {
        return t('Choose a file');
    }
    return file.size <= maxBytes
        ? null
        : t('This file has {size}, which is more than {most}', {
              size: quantity(file.size, 'byte'),
              most: quantity(maxBytes, 'byte')
          });
}

/** The media type that a file is sent as: its own where the panel takes it, else one that the panel takes. */
export function typeOf(file: File | null, accepts: readonly string[]): string {
    const own = file?.type ?? '';
    const isTaken = own !== '' && (accepts.includes(own) || accepts.includes('*/*'));
    const [first = anyBytes] = accepts;
    return isTaken ? own : accepts.includes(anyBytes) || first === '*/*' ? anyBytes : first;
}
