/** A text of the server or of a plugin: text nodes, and `code` between backticks as the only mark-up. */
export function Text({ text }: { readonly text: string }) {
    return (
        <>
            {text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}
        </>
    );
}
