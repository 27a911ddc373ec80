/** Copies a text. On plain HTTP there is no `navigator.clipboard`, so an invisible field is selected and copied. */
export async function copyText(text: string): Promise<boolean> {
    const { clipboard } = navigator as { clipboard?: Clipboard };
    if (clipboard !== undefined) {
        return clipboard.writeText(text).then(
            () => true,
            () => false
        );
    }
    const field = document.createElement('textarea');
    field.value = text;
    field.className = 'offscreen';
    const dialog = document.querySelector('dialog[open]');
    (dialog ?? document.body).append(field);
    field.select();
    const isCopied = document.execCommand('copy');
    field.remove();
    return isCopied;
}
