/** One line of text with its label. */
export function TextField({
    label,
    value,
    autocomplete,
    type = 'text',
    error = '',
    onChange
}: {
    readonly label: string;
    readonly value: string;
    /** What the browser may fill in, as HTML's `autocomplete` names it. */
    readonly autocomplete: string;
    readonly type?: 'text' | 'password';
    readonly error?: string;
    readonly onChange: (value: string) => void;
}) {
    return (
        <label class="field">
            <span>{label}</span>
            <input
                required
                type={type}
                autocomplete={autocomplete}
                aria-invalid={error !== ''}
                value={value}
                onInput={(event) => onChange(event.currentTarget.value)}
            />
            {error === '' ? null : <em role="alert">{error}</em>}
        </label>
    );
}
