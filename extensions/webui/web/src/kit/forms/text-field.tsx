import { useId } from 'preact/hooks';

/** One line of text with its label. */
export function TextField({
    label,
    value,
    autocomplete,
    type = 'text',
    error = '',
    help = '',
    isRequired = true,
    onChange
}: {
    readonly label: string;
    readonly value: string;
    /** What the browser may fill in, as HTML's `autocomplete` names it. */
    readonly autocomplete: string;
    readonly type?: 'text' | 'password';
    readonly error?: string;
    readonly help?: string;
    readonly isRequired?: boolean;
    readonly onChange: (value: string) => void;
}) {
    const id = useId();
    return (
        <div class="field">
            <label for={id}>{label}</label>
            <input
                id={id}
                required={isRequired}
                type={type}
                autocomplete={autocomplete}
                aria-invalid={error !== ''}
                aria-describedby={`${id}-help ${id}-error`}
                value={value}
                onInput={(event) => onChange(event.currentTarget.value)}
            />
            {help === '' ? null : <small id={`${id}-help`}>{help}</small>}
            {error === '' ? null : (
                <em id={`${id}-error`} role="alert">
                    {error}
                </em>
            )}
        </div>
    );
}
